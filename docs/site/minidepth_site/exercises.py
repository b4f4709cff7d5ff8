"""Exercises that tell the learner whether they are right.

    # %% tags=["exercise"]      a stub, with `...` where the learner's work goes
    letter = ...

    # %% [markdown] tags=["hint"]

    # %% tags=["answer"]        the same, solved; folded on the page, not in a downloaded notebook
    letter = "d"

    # %% tags=["check"]         what is true of an answer, and what to say where it is not
    @exercises.check
    def four_hops():
        assert letter in ring, f"{letter} is no letter of the ring"
        assert letter == "d", f"{letter} is {ring.index(letter)} hops from a, not four"

The build of the site runs each check twice: the stub must not pass it, and the answer must.
"""

RIGHT = "Right."
NOT_YET = "Not yet:"


def check(conditions):
    """Run the conditions, a function without arguments, and print whether they hold. What an
    `assert` says is printed as it stands; any other error with its name, as the learner's own code
    raised it. If a name that they use is still `...`, they are not run, and the name is printed.
    Nothing is raised, so that a notebook runs to its end."""
    if empty := still_empty(conditions):
        print(NOT_YET, "fill in", ", ".join(empty))
        return conditions
    try:
        conditions()
    except AssertionError as error:
        print(NOT_YET, error if str(error) else "this is not right")
    except Exception as error:
        print(NOT_YET, f"your answer gives {type(error).__name__}: {error}")
    else:
        print(RIGHT)
    return conditions


def still_empty(conditions):
    """The global names that a function uses and that are `...`, in the order of their use."""
    names = conditions.__code__.co_names
    return [name for name in names if conditions.__globals__.get(name) is ...]
