"""Attention with masks and biases built from sizes, and with a past."""

from __future__ import annotations

from ..builder import Builder
from .layers import fixed_last
from .registry import statement


def mask_lines(b: Builder, queries: str, keys: str, rows: str) -> tuple[list[str], str]:
    """Lines that make a mask, and the argument that passes it; `rows` is the number of rows of the batch."""
    mask = b.fresh("mask")
    causal = f"torch.arange({keys})[None, :] <= torch.arange({queries})[:, None] + {keys} - {queries}"
    made = b.rng.choice(
        [
            None,
            causal,
            f"torch.ones({queries}, {keys}, dtype=torch.bool).tril({keys} - {queries})",
            f"({causal}) & (torch.arange({queries})[:, None] + {keys} - {queries} - torch.arange({keys}) < 3)",
            f"-(torch.arange({queries})[:, None] - torch.arange({keys})[None, :]).abs().to(torch.float32)",
            f"torch.zeros({queries}, {keys}).masked_fill(~({causal}), float('-inf'))",
            f"torch.full(({queries}, {keys}), -1e4).triu(1 + {keys} - {queries})",
            f"torch.zeros({rows}, 1, {queries}, {keys})",
            f"({causal})[None, None].expand({rows}, 1, {queries}, {keys})",
            f"torch.arange({keys}).float()[None, None, None, :] / {keys}",
        ]
    )
    if made is None:
        return [], b.rng.choice(["", ", is_causal=True"])
    return [f"{mask} = {made}"], f", attn_mask={mask}"


@statement(1.2)
def attend(b: Builder) -> bool:
    x, width = fixed_last(b, (3, 3))
    heads, head = b.rng.choice([(1, 4), (2, 2), (2, 4)])
    shared = b.chance(0.25) and heads == 2
    kv_heads = 1 if shared else heads
    past = [p for p in b.tensors("float", (3, 3)) if b.agree(f"torch.cat([{p}, {x}], 1)")] if b.chance(0.4) else []
    before = b.rng.choice([p for p in past if p != x] or [None])
    q, k, v, out, source = (b.fresh(letter) for letter in "qkvvs")
    rows, queries = f"{x}.shape[0]", b.size_of(x, 1)
    lines = [f"{source} = {x}" if before is None else f"{source} = torch.cat([{before}, {x}], dim=1)"]
    lines.append(
        f"{q} = {b.module(f'nn.Linear({width}, {heads * head})')}({x}).view({rows}, {queries}, {heads}, {head})"
    )
    for name in (k, v):
        layer = b.module(f"nn.Linear({width}, {kv_heads * head})")
        lines.append(f"{name} = {layer}({source}).view({rows}, -1, {kv_heads}, {head}).transpose(1, 2)")
    if shared and b.chance(0.5):
        lines += [f"{name} = {name}.repeat_interleave(2, dim=1)" for name in (k, v)]
    keys = b.rng.choice([f"{k}.shape[2]", f"{source}.shape[1]"])
    made, argument = mask_lines(b, queries, keys, rows)
    lines += made
    if b.chance(0.7):
        grouped = ", enable_gqa=True" if shared and "repeat" not in lines[-1] + lines[-2] and b.chance(0.5) else ""
        scale = b.rng.choice(["", f", scale={b.rng.choice(['0.5', f'1 / {head}'])}"])
        lines.append(f"{out} = F.scaled_dot_product_attention({q}.transpose(1, 2), {k}, {v}{argument}{scale}{grouped})")
    else:
        lines.append(f"{out} = {q}.transpose(1, 2) @ {k}.transpose(2, 3) * {head} ** -0.5")
        if "mask" in argument:
            name = argument.split("=")[1]
            lines.append(f"{out} = {out}.masked_fill(~{name}, -1e4) if {name}.dtype == torch.bool else {out} + {name}")
        lines.append(f"{out} = {out}.softmax(-1) @ {v}")
    lines.append(f"{out} = {out}.transpose(1, 2).reshape({rows}, {queries}, -1)")
    return b.add("\n".join(lines), {out: False})
