"""# The published numbers

**These are the figures as the source documents print them; none of them was measured here.** They
are kept as tables in `docs/results/published` and read by
`minidepth_lab.measure.results.published(name)`. What each document is: [citing](citing.md).
What we think of them: [the logs](../tutorials/2_logs.md), [how attention is
counted](../tutorials/depth_map.md#how-to-count-attention), [heads](../tutorials/heads.md),
[scale](../tutorials/scale.md).
"""

from minidepth_lab.measure import results

print(__doc__)
TABLES = {
    "report_log_1_layers": ("The report: 1 layer", "Loss in nats per token, time in seconds. "
                            "`train_loss` is of one batch. One run."),
    "report_log_12_layers": ("The report: 12 layers", "As above. One run."),
    "llmini_attention": ("LLmini: attention by layer", "Entropy in nats; sparsity as published, "
                         "masked entries counted. Variants a, b, c with 10, 9, 8 layers."),
    "llmini_training": ("LLmini: training", "Losses in nats per token and validation perplexity."),
    "heads_schedules": ("Heads per layer", "Final validation loss, read off a plot (± 0.005), what "
                        "the curve drawn there has at so many heads and at 180, and hours, read "
                        "off another plot: the text itself says 15.5 for 96-48-24-12. The plots "
                        "are in chrissarmstrong/seeking-manifold on GitHub. One run each."),
    "heads_learning_curve": ("Heads per layer: the third plot", "Validation loss of 12-24-48-96 "
                             "and of 96-48-24-12 (± 0.01); that of 48-48-48-48 is 0.03 higher "
                             "than the latter at first and less later."),
    "heads_code": ("Heads per layer: its author's code", "Of the experiment whose setup the text "
                   "says it shares, chrissarmstrong/data-lane on GitHub."),
}  # fmt: skip
for name, (title, note) in TABLES.items():
    rows = results.published(name)
    print(f"## {title}\n\n{note} File: `{name}.csv`.\n")
    print(f"| {' | '.join(rows[0])} |\n{'|---' * len(rows[0])}|")
    for row in rows:
        cells = [f"{v:.2e}" if k == "lr" else f"{v:.4f}" if "loss" in k and "report" in name else v
                 for k, v in row.items()]  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |")
    print()
