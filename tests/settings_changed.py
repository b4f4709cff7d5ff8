"""Another value of each setting, by what it changes."""

# of the same weights by name and shape; where they are others, a run that differs shows nothing
TRAINING = dict(
    seed=1, dropout=0.4, residual_dropout=0.0, n_loops=2, n_heads=4, attn_scale=0.7, attn_window=2,
    init_std=0.05,
    lr=0.01, lr_floor=0.9, warmup_steps=2, weight_decay=0.9, beta1=0.2, beta2=0.5, grad_clip=0.01,
    batch_size=2, grad_accum=2, steps=5, precision="bf16", embedding_dropout=0.0, init="pytorch",
    decay_all=True, lr_steps=3,
)  # fmt: skip
OTHER_WEIGHTS = dict(
    n_layers=3, d_model=24, d_ff=0, tie_weights=False, position="rotary", block_size=88,
    vocab_size=400, bias=True,
)  # fmt: skip
# the training stays as it was, bit for bit
MEASURING = dict(eval_every=3, eval_blocks=2, eval_problems=3, watch_problems=3, save_every=1)
MEASURING |= dict(keep="best", stop_after=3)
# report_to is tested in keep/test_trackers.py
COMPUTING = dict(grad_checkpoint=True, device="cpu", name="another")
