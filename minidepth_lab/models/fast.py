"""What is faster than minidepth.py's plain way, with the same results but for rounding and for
which elements dropout drops: on a CPU dropout, the head's loss, and attention by its formula."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import minidepth as md
from minidepth_lab.base import configs


def kept(x: torch.Tensor, p: float) -> torch.Tensor:
    """Which elements of x, any shape, on a CPU, dropout with probability p lets stay: bool."""
    # PyTorch draws CPU masks one number at a time, which was a third of a training step. We draw
    # 64-bit words instead and read each as four 16-bit numbers, from -32,768 to 32,767
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    numbers = words.view(torch.int16)[: x.numel()].view(x.shape)
    # an element stays if its number is not among the lowest share p of the 65,536 there are: so p
    # is exact to 1.5e-5
    return numbers >= round(p * 65536) - 32768


def dropout(x: torch.Tensor, p: float, training: bool = True) -> torch.Tensor:
    """Zero each element with probability p and scale the others by 1/(1 - p); any shape."""
    if not training or p == 0:
        return x
    return F.dropout(x, p) if x.device.type != "cpu" else (x * kept(x, p)).mul_(1 / (1 - p))


class DroppedProduct(torch.autograd.Function):
    """dropout(weights) @ v on a CPU: weights (B, H, T, S), v (B, H, S, D) → (B, H, T, D). For the
    way back it stores which weights stay and not what they become, which is four times as large."""

    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, v: torch.Tensor, p: float) -> torch.Tensor:
        stay, ctx.scale = kept(weights, p), 1 / (1 - p)
        v = v.contiguous()  # as the product needs it; a view would keep q and k alive
        ctx.save_for_backward(weights, v, stay)
        return (weights * stay).mul_(ctx.scale) @ v

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple:
        weights, v, stay = ctx.saved_tensors
        dv = (weights * stay).mul_(ctx.scale).transpose(2, 3) @ g
        return (g @ v.transpose(2, 3)).mul_(ctx.scale).mul_(stay), dv, None


class Dropout(nn.Dropout):
    """dropout() as a module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return dropout(x, self.p, self.training)


def too_old(T: int, S: int, window: int, device: torch.device) -> torch.Tensor:
    """(T, S) bool: which keys none of the last T of S positions sees who look at the newest
    `window` tokens alone, themselves included."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T - window)


def readable_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, p: float = 0.0,
    window: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Causal attention as its formula says: softmax(scale * q k^T) v, no later keys, and with a
    window none that is too_old().

    q (B, H, T, D), the last T of S positions, k and v (B, H, S, D) → output (B, H, T, D) and
    weights (B, H, T, S), these before their dropout p."""
    T, S = q.size(2), k.size(2)
    # -inf where a key comes after the query, which softmax turns into a weight of 0
    hidden = torch.full((T, S), -math.inf, dtype=q.dtype, device=q.device).triu(S - T + 1)
    if window:
        hidden.masked_fill_(too_old(T, S, window, q.device), -math.inf)
    weights = ((q * scale) @ k.transpose(2, 3)).add_(hidden).softmax(-1)
    plain = weights.device.type == "cpu" and weights.dtype == v.dtype
    if p and plain and not torch.compiler.is_compiling():  # who compiles chooses what to store
        return DroppedProduct.apply(weights, v, p), weights
    return dropout(weights, p) @ v, weights


class Attention(md.Attention):
    """minidepth.Attention in parts that variants change and studies look into, and by its formula
    where PyTorch's fused kernel is slower or wrong."""

    window = 0  # newest tokens that it looks at, 0: all

    def __init__(self, config: configs.ModelConfig) -> None:
        super().__init__(config)
        self.scale = (config.d_model // config.n_heads) ** -0.5

    def project(self, x: torch.Tensor, start: int = 0) -> tuple[torch.Tensor, ...]:
        """x (B, T, C), whose first token has position `start` → q, k, v, each (B, H, T, D)."""
        B, T, _ = x.shape
        return self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """softmax(scale * q k^T) v without later keys: q (B, H, T, D), the last T of S positions,
        k and v (B, H, S, D) → (B, H, T, D)."""
        p, kind, T = self.p if self.training else 0.0, q.device.type, q.size(2)
        if 0 < self.window < k.size(2) and T == 1:
            k, v = k[:, :, -self.window :], v[:, :, -self.window :]
        # the fused kernel is slower with dropout on a CPU, wrong for some shapes on Apple's GPUs,
        # and counts queries from key 0, where ours are the last T of S
        if kind == "mps" or (kind == "cpu" and p) or 1 < T < k.size(2):
            return readable_attention(q, k, v, self.scale, p, self.window)[0]
        how = dict(is_causal=T > 1)
        if 0 < self.window < T:
            sees = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()
            how = dict(attn_mask=sees & ~too_old(T, T, self.window, q.device))
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p, scale=self.scale, **how)

    def forward(self, x: torch.Tensor, cache: dict | None = None) -> torch.Tensor:
        q, k, v = self.project(x, cache["k"].size(2) if cache else 0)
        if cache:
            k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
        if cache is not None:
            cache.update(k=k, v=v)
        return self.drop(self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape)))


LOGITS_AT_ONCE = 2**26  # in float32 256 MB
CPU_ROWS = 256  # of float32 logits; fewer would pass over dweight too often
HALF_ROWS = 1024  # fp16 ends at 65,504, which so many products stay below if none is above 63
SOFTMAX_ROWS, GRADIENT_WORDS = 32, 4096  # so few stay in a CPU's cache


def rows_at_once(n: int, n_words: int, half: bool, on_cpu: bool) -> int:
    """Of n rows of logits over n_words words, how many the head computes at a time."""
    most = HALF_ROWS if half else CPU_ROWS if on_cpu else n
    return min(most, max(64, min(n, LOGITS_AT_ONCE // n_words)))


class HeadLoss(torch.autograd.Function):
    """Cross-entropy of h @ weight^T in `dtype`: h (N, C), weight (V, C), targets (N,) → nll (N,).

    All (N, V) logits would be 5 GB at the report's size. Here some rows of them live at a time and
    give their gradient before they go: a causal model's loss is a sum over tokens, so each row can
    be done with for good. The gradients are those of sum(nll), for tokens of equal weight;
    RuntimeError for other weights, and for a second way back."""

    @staticmethod
    def forward(
        ctx: Any, h: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor,
        dtype: torch.dtype, grads: bool,
    ) -> torch.Tensor:  # fmt: skip
        ctx.types = h.dtype, weight.dtype
        h, weight, V = h.to(dtype), weight.to(dtype), len(weight)
        exact = torch.promote_types(dtype, torch.float32)  # a softmax in half would round
        half, on_cpu = dtype != exact, h.device.type == "cpu"
        rows = rows_at_once(len(h), V, half, on_cpu)
        few, words = (SOFTMAX_ROWS, GRADIENT_WORDS) if on_cpu else (rows, V + 64)
        if half:  # a GPU's products are slow where V is odd: more words, of zeros, that are none
            weight = F.pad(weight, (0, 0, 0, -V % 64))
        nll, dh = torch.empty(len(h), dtype=exact, device=h.device), torch.empty_like(h)
        dweight = torch.zeros_like(weight, dtype=exact) if grads else None
        # buffers for all rows: new memory for each part would take a CPU as long as the softmax
        buffer = torch.empty(min(len(h), rows), len(weight), dtype=dtype, device=h.device)
        product = torch.empty_like(weight[:words]) if grads and half else None
        for x, t, loss, dx in zip(*(each.split(rows) for each in (h, targets[:, None], nll, dh))):
            logits = torch.mm(x, weight.T, out=buffer[: len(x)])  # (rows, V)
            logits[:, V:] = -math.inf  # a word that is none has the probability 0
            for z, right, one in zip(logits.split(few), t.split(few), loss.split(few)):
                if on_cpu:  # a copy in half precision alone
                    log_p = z.to(exact)
                    torch.log_softmax(log_p, 1, out=log_p)
                else:
                    log_p = torch.log_softmax(z, 1, dtype=exact)
                one.copy_(-log_p.gather(1, right).squeeze(1))
                if grads:  # by the logits: the softmax less 1 at the target, entries of at most 1
                    minus_one = log_p.new_full(right.shape, -1.0)
                    z.copy_(log_p.exp_().scatter_add_(1, right, minus_one))
                log_p = None
            if grads:
                torch.mm(logits, weight, out=dx)
            if grads and not half:
                dweight.addmm_(logits.T, x)
            elif grads:  # products in half, their sum in float32
                for d, total in zip(logits.split(words, 1), dweight.split(words)):
                    total += torch.mm(d.T, x, out=product[: len(total)])
        # kept on ctx and not by save_for_backward, so that backward can scale them in place
        ctx.gradients = (dh, dweight[:V]) if grads else None
        return nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple:
        if ctx.gradients is None or (g != g[:1]).any():
            raise RuntimeError("the head's loss goes back once, with one weight for all its tokens")
        # the loss scale over the token count; 0 where no token has a loss
        scale, gradients, ctx.gradients = g[:1].sum(), ctx.gradients, None
        return *(d.to(t).mul_(scale) for d, t in zip(gradients, ctx.types)), None, None, None
