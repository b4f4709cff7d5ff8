"""# What others did

**Whether a looped model can go on for longer than it was trained to has been asked for some
<<<<<<< HEAD
years.** The answers differ, and so do the tasks. This is what the papers say of themselves; the
=======
years, and the answers differ.** So do the tasks. This is what the papers say of themselves; the
>>>>>>> 08d6c8e817872deb94adb9f80db79d484a761a9f
last five rows are ours. "–" means that we found no number of trained models (seeds) in the paper.

| who, and what is looped | trained to | looped on | seeds |
|---|---|---|---|
| [Schwarzschild 2021][s21], convolutions | easy sums, mazes, chess | harder ones are solved | – |
| [Bansal 2022][b22], convolutions with recall | mazes of 9 × 9 | 201 × 201 are solved | – |
| [Anil 2022][a22], equilibrium models | easy problems | better if the state comes back | – |
| [Fan 2024][f24], a Transformer block | short sums, parities | longer ones are solved | – |
| [Geiping 2025][g25], a large language model | text, random loops | better, up to a level | – |
| [Kohli 2026][k26], Transformer layers | chains of five facts | of ten; too many loops harm | – |
| [Ouro 2025][o25], a large language model | four loops | [worse][lee] with each loop more | – |
| [here][walk], ring of 16, recall | eight hops | 31, 100 and 1,000 in 13 of 15 | 15 |
| [here][lost], ring of 16, pairs kept at the test | four hops | the same in 5 of 5 | 5 |
| [here][once], ring of 16, read once | four hops | the same in 5 of 5 | 5 |
| [here][once], ring of 128, hints, read once | eight hops | once round, 127, in 7 of 10 | 10 |
| here, text, one layer and four | eight loops | worse, slowly | 5 |

*Depo*, a task of [Physics of Language Models 4.1][depo] (Allen-Zhu 2025), is nearly ours: pairs
of a directed permutation of 75 to 375 nodes in mixed order, and the node k hops on is asked at
once. Transformers and linear models are compared on it there, without loops. Our nearest to it
with more than two runs are rings of 128 letters: with hints in training, and [read once][once],
seven of ten layers come once round, though hop by hop, not asked at once, and on rings of the size
that they were trained on.

To read once is not new. In [memory networks][m15] (Sukhbaatar 2015) sentences are embedded once,
and a question makes a few hops over them, in one form with the same weights each time. And to
save memory [MoR][m25] (Bae 2025) shares the keys and values of its first recursion, of all
tokens. Ours keeps the first tokens alone, and computes their keys and values again. On rings of
64 it decided whether a walk goes on: ten of ten do with it, and none of twenty without. On 16 and
24 letters most layers that were trained to six hops or more go on without it, with recall.

So where a task is the same work again and again, looping on can work: with recall, or where what
is looked up stays as it is and the state is normalised. Of the two
large language models in this table one levels off, and one gets worse. That one is Ouro, looped
on by J. Y. Lee: of the word problems of GSM8K it answers 0.79 with the four loops of its
training, 0.71 with eight, and 0.11 with sixteen. Bansal and others saw that without recall more
loops destroy an answer that was there, and call it overthinking. Our walks that begin each loop
with their state alone do the same.

[s21]: https://arxiv.org/abs/2106.04537
[b22]: https://arxiv.org/abs/2202.05826
[a22]: https://arxiv.org/abs/2211.09961
[f24]: https://arxiv.org/abs/2409.15647
[g25]: https://arxiv.org/abs/2502.05171
[k26]: https://arxiv.org/abs/2604.07822
[o25]: https://arxiv.org/abs/2510.25741
[depo]: https://arxiv.org/abs/2512.17351
[walk]: ../tutorials/thousand_hops.md
[lost]: ../tutorials/thousand_hops.md#what-gets-lost
[once]: ../tutorials/thousand_hops.md#read-once-then-walk
[m15]: https://arxiv.org/abs/1503.08895
[m25]: https://arxiv.org/abs/2507.10524
[lee]: https://huggingface.co/JunYoungLee/ut-depth-probe-artifacts
"""

print(__doc__)
