"""The model against float64, transformers' GPT-2, autograd and its own table."""

import math
import threading

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import minidepth as md
from conftest import chunked_loss
from minidepth_lab.base import configs, machine
from minidepth_lab.keep import export
from minidepth_lab.measure import inspect
from minidepth_lab.models import fast, variants


def tokens(model, B=2, T=16):
    return torch.randint(
        model.config.vocab_size, (B, T), generator=torch.Generator().manual_seed(1)
    )


@pytest.mark.parametrize("changes", [dict(), dict(tie_weights=False), dict(bias=True)])
def test_logits_equal_gpt2_of_transformers(model, changes):
    gpt = model(**changes)
    x = tokens(gpt)
    with torch.no_grad():
        torch.testing.assert_close(gpt(x), export.to_gpt2(gpt)(x).logits, atol=1e-4, rtol=0)


def slow_attention(q, k, v, scale):
    """One query, one head, one sequence at a time, in float64."""
    q, k, v = q.double(), k.double(), v.double()
    y = torch.zeros_like(q)
    for b in range(q.size(0)):
        for h in range(q.size(1)):
            for i in range(q.size(2)):
                last = k.size(2) - q.size(2) + i + 1
                scores = torch.stack([q[b, h, i] @ k[b, h, j] * scale for j in range(last)])
                e = (scores - scores.max()).exp()
                y[b, h, i] = sum(e[j] / e.sum() * v[b, h, j] for j in range(last))
    return y


@pytest.mark.parametrize("T, S", [(7, 7), (1, 7), (3, 7)])
def test_readable_attention_equals_float64(T, S):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, T, 4), torch.randn(2, 3, S, 4), torch.randn(2, 3, S, 4)
    y, weights = fast.readable_attention(q, k, v, 0.7)
    torch.testing.assert_close(y.double(), slow_attention(q, k, v, 0.7), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, T))


def test_with_a_window_each_second_layer_looks_at_the_newest_tokens_alone(model):
    """At itself and at the window - 1 before it; studies/test_heads.py has GPT-Neo's beside it."""
    gpt = model(n_layers=4, n_heads=4, attn_window=5)
    maps = inspect.attention_maps(gpt, tokens(gpt))
    steps_back = torch.arange(16)[:, None] - torch.arange(16)
    for layer, weights in enumerate(maps):
        sees = (steps_back >= 0) & (steps_back < (5 if layer % 2 else 16))
        assert torch.equal((weights > 0).all(0).all(0), sees) and not weights[..., ~sees].any()
    q, k, v = torch.randn(3, 2, 4, 16, 8)
    local = gpt.blocks[1].attn
    exact = fast.readable_attention(q, k, v, local.scale, window=5)[0]
    for T in (1, 3, 16):  # the newest of 16 tokens, as when a model writes, and all
        torch.testing.assert_close(local.attend(q[:, :, -T:], k, v), exact[:, :, -T:])
    whole = model(n_layers=4, attn_window=16)(tokens(gpt))
    assert torch.equal(whole, model(n_layers=4)(tokens(gpt)))


def test_rotary_equals_complex_rotation_and_knows_only_distance():
    torch.manual_seed(0)
    x, D = torch.randn(2, 3, 9, 8, dtype=torch.float64), 8
    z = torch.complex(x[..., : D // 2], x[..., D // 2 :])
    theta = torch.tensor([10_000 ** (-2 * i / D) for i in range(D // 2)], dtype=torch.float64)
    turned = z * torch.exp(1j * torch.arange(9)[:, None] * theta)
    expected = torch.cat((turned.real, turned.imag), -1)
    torch.testing.assert_close(variants.rotate(x), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        variants.rotate(x[:, :, 4:], 4), expected[:, :, 4:], atol=1e-5, rtol=1e-5
    )


def test_what_a_model_cannot_do_says_why(model):
    with pytest.raises(ValueError, match="n_heads has 2 numbers"):
        model(n_heads=(4, 4))
    with pytest.raises(ValueError, match="25 tokens do not fit"):
        model()(torch.zeros(1, 25, dtype=torch.long))
    with pytest.raises(ValueError, match="loops is 0"):
        model(n_loops=2)(torch.arange(8)[None], loops=0)


def test_heads_may_differ_by_layer(model):
    gpt = model(n_heads=(8, 4, 1))
    assert [layer.attn.n_heads for layer in gpt.blocks] == [8, 4, 1]
    assert [layer.attn.scale for layer in gpt.blocks] == [0.5, 8**-0.5, 32**-0.5]
    assert not torch.equal(gpt(tokens(gpt)), model(n_heads=4)(tokens(gpt)))


@pytest.mark.parametrize("d_ff, n_loops, additions", [(256, 1, 12), (0, 1, 6), (256, 2, 24)])
def test_initialisation_table(d_ff, n_loops, additions):
    torch.manual_seed(0)
    sizes = dict(vocab_size=500, n_layers=6, d_model=128, d_ff=d_ff, n_loops=n_loops)
    config = configs.ModelConfig(**sizes, tie_weights=False, bias=True)
    for name, p in variants.GPT(config).named_parameters():
        if name.endswith("bias"):
            assert not p.any(), name
        elif "norm" in name:
            assert (p == 1).all(), name
        else:
            std = 0.02 / math.sqrt(additions) if name.endswith("out.weight") else 0.02
            assert p.std().item() == pytest.approx(std, rel=0.03), name
            assert abs(p.mean().item()) < 0.02 * std * 3, name


@pytest.mark.parametrize("at_once", [1, 64 * 61 * 2, 2**26])
def test_loss_and_gradients_equal_plain_cross_entropy(model, at_once, monkeypatch):
    monkeypatch.setattr(fast, "LOGITS_AT_ONCE", at_once)  # rows at a time: 64, 128, all
    gpt = model(block_size=100).double()
    x, y = tokens(gpt, 3, 100), tokens(gpt, 3, 100).roll(-1, 1)
    y[0, :70] = -100
    loss_sum, n = gpt(x, y)
    (loss_sum.sum() / n.sum()).backward()
    ours = {name: p.grad.clone() for name, p in gpt.named_parameters()}
    gpt.zero_grad()
    plain = F.cross_entropy(gpt(x).flatten(0, 1), y.flatten())
    plain.backward()
    assert loss_sum.shape == n.shape == (3,) and loss_sum.dtype == n.dtype == torch.float32
    assert n.tolist() == [30, 100, 100]
    assert (loss_sum.sum() / n.sum()).item() == pytest.approx(plain.item(), rel=1e-6)
    for name, p in gpt.named_parameters():
        torch.testing.assert_close(ours[name], p.grad, atol=1e-8, rtol=1e-6, msg=name)


def test_the_heads_loss_keeps_to_what_training_asks_of_it(model):
    """Equal weights for all tokens, and one way back: anything else would be a wrong gradient."""
    gpt = model()
    x = tokens(gpt, 3)
    with pytest.raises(RuntimeError, match="goes back once, with one weight for all"):
        (gpt(x, x)[0] * torch.tensor([1.0, 5.0, 0.25])).sum().backward()
    loss = gpt(x, x)[0].sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="goes back once"):
        loss.backward()
    h = torch.randn(4, 32, requires_grad=True)
    nll = fast.HeadLoss.apply(h, gpt.head_weight, x[0, :4], torch.float32, True)
    scale = torch.ones((), requires_grad=True)
    (grad,) = torch.autograd.grad(nll.sum() * scale, h, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_a_batch_without_targets_has_no_loss_and_a_zero_gradient(model):
    gpt = model()
    x = tokens(gpt)
    loss_sum, n = gpt(x, torch.full_like(x, -100))
    loss_sum.sum().backward()
    assert loss_sum.tolist() == n.tolist() == [0, 0]
    assert all((p.grad is None) or (p.grad == 0).all() for p in gpt.parameters())


class Seen(TorchDispatchMode):
    """While active, `found` gathers (operation, shape, type) of each tensor that is made."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.found.append((str(operation), tuple(out.shape), out.dtype))
        return out


@pytest.mark.parametrize("at_once, rows", [(64 * 61, 64), (2**26, 256)])
def test_all_logits_are_never_held_at_once(model, at_once, rows, monkeypatch):
    """A part of the rows, on a CPU never more than 256, and in one array: all works in place."""
    monkeypatch.setattr(fast, "LOGITS_AT_ONCE", at_once)
    gpt = model(block_size=320)
    x = tokens(gpt, 2, 320)
    with Seen() as seen:
        gpt(x, x)
    logits = [(name, shape[0]) for name, shape, _ in seen.found if shape[1:] == (61,)]
    assert max(n for _, n in logits) == rows
    assert sum(n for name, n in logits if name == "aten.mm.out") == 640
    views = ("aten.slice.Tensor", "aten.detach.default")
    of_all = [name for name, n in logits if n == rows and name not in views]
    made = [name for name in of_all if not name.endswith("out")]
    assert made == ["aten.empty.memory_format"]


def test_the_head_in_bf16_is_float64_to_what_its_eight_bits_allow(monkeypatch):
    """Rows in several chunks and a rest, of which the softmax takes a few at a time; the words of
    the gradient in several parts and a rest."""
    torch.manual_seed(0)
    monkeypatch.setattr(fast, "GRADIENT_WORDS", 40)
    n = fast.HALF_ROWS + fast.SOFTMAX_ROWS + 5
    h, weight, targets = torch.randn(n, 32), torch.randn(97, 32) * 0.3, torch.randint(97, (n,))
    a, b = h.double().requires_grad_(), weight.double().requires_grad_()
    exact = torch.nn.functional.cross_entropy(a @ b.T, targets, reduction="none")
    exact.sum().backward()
    nll, dh, dweight = chunked_loss(h.bfloat16(), weight.bfloat16(), targets)
    assert nll.dtype == torch.float32 and dweight.dtype == torch.float32
    # rounded to 2^-9 of itself: the state, the weight, the logits, their gradient
    for half, whole in ((nll, exact.detach()), (dh, a.grad), (dweight, b.grad)):
        error = (half.double() - whole).norm() / whole.norm()
        assert 0 < error < 4 * 2**-9


def test_the_heads_sums_stay_within_fp16():
    """A word that is always wrong: the sum over all rows at once would pass 65,504."""
    h = torch.full((8192, 16), 30.0, dtype=torch.float16)
    weight = torch.zeros(8, 16, dtype=torch.float16)
    weight[1:] = 1.0  # so word 0, the target, has probability 0
    _, dh, dweight = chunked_loss(h, weight, torch.zeros(8192, dtype=torch.int64))
    assert dweight.isfinite().all() and dh.isfinite().all()
    assert dweight[0, 0] == pytest.approx(-30.0 * 8192, rel=1e-3)


def test_the_heads_weight_gradient_is_summed_in_float32(monkeypatch):
    """In fp16 it would stay at -128, the first chunk's: the shares of the others are -1/32."""
    monkeypatch.setattr(fast, "HALF_ROWS", 64)
    h, weight = torch.full((64 * 33, 1), 2**-10).half(), torch.zeros(2, 1).half()
    h[:64] = 4
    _, _, dweight = chunked_loss(h, weight, torch.zeros(len(h), dtype=torch.int64))
    assert dweight.tolist() == [[-129], [129]]


def test_the_head_in_fp16_is_that_of_fp32_under_the_loss_scale():
    torch.manual_seed(0)
    h, weight, targets = torch.randn(600, 32) * 3, torch.randn(97, 32), torch.randint(97, (600,))
    targets[:500] = 5  # one word carries most of the gradient, as commas do
    found = []
    for dtype in (torch.float32, torch.float16):
        a, b = h.clone().requires_grad_(), (weight * 0.1).requires_grad_()
        nll = fast.HeadLoss.apply(a, b, targets, dtype, True)
        (nll.sum() / 600 * 65536).backward()
        found.append((nll.detach(), a.grad, b.grad))
    for exact, half in zip(*found):
        assert half.dtype == torch.float32 and (half - exact).norm() < 2e-3 * exact.norm()


def test_dropout_keeps_the_mean_and_the_rate():
    torch.manual_seed(0)
    x = torch.ones(1001, 333, requires_grad=True)
    y = fast.dropout(x, 0.3)
    y.sum().backward()
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=3e-3)
    assert y.detach().unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert torch.equal(x.grad, y.detach())  # the same mask on the way back
    columns = (y == 0).float().mean(0)
    assert columns.std().item() == pytest.approx(math.sqrt(0.21 / 1001), rel=0.15)  # independent
    assert fast.dropout(x, 0.3, training=False) is x and fast.dropout(x, 0.0) is x


def test_autocast_is_entered_inside_forward(model):
    """As in DataParallel's threads, which know that autocast is on but not its dtype."""
    gpt, got = model(), []
    x = tokens(gpt)
    exact, _ = gpt(x, x)
    gpt.autocast_dtype = torch.bfloat16
    thread = threading.Thread(target=lambda: got.append(gpt(x)))
    thread.start()
    thread.join()
    assert got[0].dtype == torch.bfloat16
    loss_sum, _ = gpt(x, x)
    assert loss_sum.dtype == torch.float32
    torch.testing.assert_close(loss_sum, exact, atol=0, rtol=0.01)
    with Seen() as seen:  # the head's products, too
        gpt(x, x)
    products = {kind for name, _, kind in seen.found if name == "aten.mm.out"}
    assert products == {torch.bfloat16}


def dropped(x):
    """The share of a tensor's elements that are exactly 0."""
    return (x == 0).float().mean().item()


@pytest.mark.parametrize("own, on_embeddings, on_what_is_added", [
    (dict(), 0.5, 0.5), (dict(residual_dropout=0.0), 0.5, 0.0),
    (dict(residual_dropout=0.25), 0.5, 0.25), (dict(embedding_dropout=0.0), 0.0, 0.5),
    (dict(dropout=0.0, residual_dropout=0.5, embedding_dropout=0.25), 0.25, 0.5),
])  # fmt: skip
def test_each_of_three_dropouts_is_where_it_is_asked_for(
    model, own, on_embeddings, on_what_is_added
):
    """0 is a value of its own; an unset one is as --dropout. Nothing is dropped in eval mode."""
    rates = dict(dropout=0.5) | own
    gpt = model(**rates, block_size=200).train()
    layer, x = gpt.blocks[0], torch.randn(9, 200, 32)
    q, k, unit = torch.randn(9, 4, 200, 8), torch.randn(9, 4, 200, 8), torch.eye(200, 8)
    unit = unit.expand(9, 4, 200, 8)  # so that the output has the weights of the first eight keys
    parts = {
        lambda: gpt.embed(tokens(gpt, 9, 200)): on_embeddings,
        lambda: layer.attn(x): on_what_is_added,
        lambda: layer.mlp(x): on_what_is_added,
        lambda: layer.attn.attend(q, k, unit)[:, :, 8:]: rates["dropout"],
    }
    for part, share in parts.items():
        assert dropped(part()) == pytest.approx(share, abs=0.02)
    gpt.eval()
    assert not any(dropped(part()) for part in parts)


def test_what_is_measured_or_generated_keeps_no_graph(model):
    """A graph would keep the memory of every layer."""
    gpt, tokens = model(n_loops=2), torch.zeros(1, 4, dtype=torch.int64)
    with torch.no_grad():
        assert not any(x.requires_grad for x in gpt.run_loops(tokens))

    @machine.in_eval_mode
    def seen(model):
        return torch.is_grad_enabled(), model.training

    assert seen(gpt.train()) == (False, False) and gpt.training


def test_pytorchs_weights_have_the_spread_that_its_modules_give_them():
    m, _ = configs.make("report", n_layers=1, vocab_size=500, init="pytorch", bias=True)
    gpt, C = variants.GPT(m), m.d_model
    attn, mlp = gpt.blocks[0].attn, gpt.blocks[0].mlp
    assert gpt.token_embedding.weight.std().item() == pytest.approx(1, rel=0.02)
    limits = {attn.qkv.weight: (6 / (4 * C)) ** 0.5, attn.out.weight: C**-0.5}
    limits |= {mlp.up.weight: C**-0.5, mlp.up.bias: C**-0.5, mlp.out.weight: m.d_ff**-0.5}
    for weight, limit in limits.items():  # uniform, from -limit to limit
        assert 0.97 * limit < weight.abs().max().item() <= limit
        assert weight.std().item() == pytest.approx(limit / 3**0.5, rel=0.05)
    assert not attn.qkv.bias.any() and not attn.out.bias.any()
    assert variants.parameters(m)["layers"] == 12 * C**2 + 4 * C + 5 * C + m.d_ff


@pytest.mark.parametrize(
    "settings", [dict(), dict(d_ff=0, tie_weights=False, n_loops=3, bias=True)]
)
def test_the_plain_model_is_the_laboratorys(settings):
    """Loss, gradients and what is generated, of minidepth.GPT and of the faster one."""
    sizes = dict(
        vocab_size=700, block_size=24, n_layers=2, n_heads=4, d_model=32, d_ff=64, dropout=0.0
    )
    plain = md.GPT(md.ModelConfig(**sizes | settings))
    quick = variants.GPT(configs.ModelConfig(**sizes | settings))
    quick.load_state_dict(plain.state_dict())
    x = torch.randint(700, (40, 24))
    y = torch.where(torch.rand(40, 24) < 0.7, x.roll(-1, 1), -100)
    for a, b in zip(plain(x, y), quick(x, y)):
        torch.testing.assert_close(a, b)
    (plain(x, y)[0].sum() / 100).backward(), (quick(x, y)[0].sum() / 100).backward()
    for a, b in zip(plain.parameters(), quick.parameters()):
        torch.testing.assert_close(a.grad, b.grad.to_dense(), atol=1e-5, rtol=1e-4)
    said = [md.generate(gpt.eval(), x[:, :5], 10) for gpt in (plain, quick)]
    assert torch.equal(*said)
