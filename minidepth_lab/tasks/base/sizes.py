"""What --sizes means: the sizes of a depth task or a loader by name, as `pairs=8`."""

MOST_SIZE = 10**6  # what is drawn with it is to fit into memory


def by_name(sizes):
    """("pairs=8", …) → {"pairs": "8", …}"""
    return dict(size.partition("=")[::2] for size in sizes)


def with_sizes(settings, study, **own):
    """The sizes among a row's `settings`, ("pairs=8", …), and those that the rows of a study set;
    ValueError for one that is given already."""
    given = settings.get("sizes", ())
    for name in own:
        if name in by_name(given):
            wrong = f"--sizes {name} has no effect with --study {study}"
            raise ValueError(f"{wrong}, whose rows set it")
    return (*given, *(f"{name}={value}" for name, value in own.items()))


def sizes_of(given, known, whose):
    """All sizes of a task or loader: `known`, {name: default}, changed by `given`, ("pairs=8", …),
    each read as what its default is. ValueError for a name that is unknown, or a value that does
    not fit: whole numbers from 1, or from 0 where that is the default, numbers from 0, one of
    several words; and for a default of which nobody knows what is read as one."""
    for name, default in known.items():
        parts = default if isinstance(default, tuple) else (default,)
        if not parts or any(type(part) not in (int, float, str) for part in parts):
            wanted = "give it a whole number, a number, a word, or a tuple of one of these"
            raise ValueError(f"{whose}: the default of {name} is {default!r:.40}; {wanted}")
    sizes = dict(known)
    for name, text in by_name(given).items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ValueError(f"sizes {name} is none of {whose}'s; it has {names}")
        sizes[name] = read_size(name, text, known[name])
    return sizes


def read_size(name, text, default):
    """One size from its text, of the kind that its default is; of a tuple the parts are joined
    by +."""
    if isinstance(default, tuple):
        values = tuple(read_size(name, part, default[0]) for part in text.split("+"))
        if len(set(values)) < len(values):
            raise ValueError(f"sizes {name}={text:.40} has one twice; give each once")
        return values
    if isinstance(default, str):
        return text
    kind, least = "a number", 0
    if isinstance(default, int):
        kind, least = "a whole number", min(1, default)  # 0 may say that there is none
    try:
        value = type(default)(text)
    except ValueError:
        value = -1
    if not least <= value <= MOST_SIZE:
        limits = f"from {least} to {MOST_SIZE:,}"
        raise ValueError(f"sizes {name}={text:.40} does not work; give {kind} {limits}")
    return value


def check_known(name, value, known):
    """ValueError unless the value of a size is one of those that are known."""
    if value not in known:
        choices = ", ".join(map(str, known))
        raise ValueError(f"{name} {value!r:.40} is unknown; choose from {choices}")


def as_text(sizes):
    """{"hops": (1, 2), …} → ("hops=1+2", …), as config.json keeps them."""
    texts = []
    for name, value in sizes.items():
        parts = value if isinstance(value, tuple) else (value,)
        texts.append(f"{name}={'+'.join(str(part) for part in parts)}")
    return tuple(texts)
