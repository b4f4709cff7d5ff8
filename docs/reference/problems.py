"""# The embedded problems

These are the problems that the laptop preset trains on and is tested with. They are generated, in
three families of one to three steps (`--problem_steps` takes up to nine). The model has to write
its steps in a `<think>` block and then the answer; an answer counts if it is exactly right.
"""

import random

import minidepth as md
from minidepth_lab.base import configs

print(__doc__)
MEANS = {
    "chain": "sums modulo ten, from left to right",
    "lookup": "a ring of six letters, given as pairs in mixed order, to be followed for some hops",
    "order": "letters in a line, given as neighbours in mixed order; which is the k-th?",
}
print(
    "| family | what | an example, three steps | its worked steps | answer |\n|---|---|---|---|---|"
)
rows = md.embedded_rows(9)
for family, means in MEANS.items():
    row = next(row for row in rows if (row["family"], row["steps"]) == (family, 3))
    question, said = (turn["content"] for turn in row["messages"])
    work = said.split("\n")[1].removeprefix("So ")
    print(f"| {family} | {means} | {question} | {work} | {md.final_answer(said)} |")

questions = configs.PRESETS["laptop"]["ring_questions"]
print(f"""
In training the laptop preset asks {questions} questions about each ring, one after another: the one
above, and then from some letter to the one before it, all the way round. These later walks are not
in the test. They give a row more steps to learn from
([A first run that learns](results.md#first-run)).
""")

print("""
## How many there are

Two questions are the same problem if they have the same numbers, the same line of letters or the
same ring, in whatever order the pairs are written, from whatever letter the ring is started, and
whatever is asked of it. A checksum of these numbers, line or ring decides whether a problem is held
out: training never asks it, in whatever words (a short chain may be the beginning of a longer
one that training does ask). Of the small kinds half is held out, of the others an
eighth; the test has 600 problems, all different.

| family | steps | different problems | held out, of these | in the test of 600 | guessing |
|---|---|---|---|---|---|""")
test = md.embedded_rows(600, True)
draw = random.Random(0).random
for family in md.FAMILIES:
    for steps in (1, 2, 3):
        *_, keys = md.embedded_problem(draw, family, steps)
        asked = [row for row in test if (row["family"], row["steps"]) == (family, steps)]
        share = "a half" if keys < 600 else "an eighth"
        guess = asked[0]["guess"]
        print(f"| {family} | {steps} | {keys:,} | {share} | {len(asked)} | {guess:.2f} |")
guess = sum(row["guess"] for row in test) / len(test)
print(f"""
Guessing among the answers that a question allows gets {guess:.3f} of the test right. The answer to
a chain may be any of ten numbers, to a lookup any other letter of the ring, to an ordering any
letter of the line.
""")
