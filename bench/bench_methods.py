#!/usr/bin/env python3
"""The demo model in 4 bits by each way to choose codes: what it loses on 16,384 tokens, and how long the export takes.

The text is drawn by the model in fp32, another one than that which `gptq` is calibrated on. What is lost is the mean
divergence (Kullback-Leibler) of the next token's probabilities, in nats, which says more than perplexity: an error may
happen to make a token of the text likelier. Exits with 1 and a list when a requirement is missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from requirements import Requirements, seconds, shown

MODEL = Path(__file__).resolve().parent.parent / "examples" / "teller"
ROWS, TOKENS = 128, 128
MOST_GROWTH = 5.0  # percent of perplexity, by the better methods
MOST_LOSS = 0.8  # of what `search` loses, by `gptq`


def drawn(model: Any, seed: int, rows: int) -> torch.Tensor:
    torch.manual_seed(seed)
    start = torch.ones(rows, 1, dtype=torch.int64)
    settings = {"max_new_tokens": TOKENS - 1, "min_new_tokens": TOKENS - 1, "do_sample": True, "top_k": 0}
    return model.generate(start, attention_mask=torch.ones_like(start), **settings)


def perplexity(logits: torch.Tensor, ids: torch.Tensor) -> float:
    return float((-logits[:, :-1].gather(-1, ids[:, 1:, None]).mean()).exp())


def main() -> int:
    from transformers import AutoModelForCausalLM

    import modelport

    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    text = drawn(model, 1, ROWS)
    samples = [{"input_ids": rows} for rows in drawn(model, 2, ROWS // 2).split(8)]
    with torch.no_grad():
        want = model(input_ids=text).logits.log_softmax(-1)
    plain = perplexity(want, text)
    print(f"perplexity {plain:.2f} in fp32, of {text.numel():,} tokens")
    requirements, lost, grown = Requirements(), {}, {}
    for method in ("range", "search", "gptq"):
        config = modelport.OnnxConfig(
            dtype="int4", operators="onnxruntime", quantization={"method": method}, calibration=samples
        )
        with tempfile.TemporaryDirectory() as folder:
            exporter, example = modelport.OnnxExporter(), {"input_ids": text[:2, :5]}
            # Within the loop, so that it means this one.
            took = seconds(lambda: exporter.export_for_generation(model, example, config).save(folder))  # noqa: B023
            got = modelport.load(folder)(input_ids=text).logits.log_softmax(-1)
        lost[method] = float((want.exp() * (want - got)).sum(-1).mean())
        grown[method] = 100 * (perplexity(got, text) / plain - 1)
        same = float((want.argmax(-1) == got.argmax(-1)).float().mean())
        print(f"  {method:7} {lost[method]:.4f} nats, perplexity {grown[method]:+.2f} %, ", end="")
        print(f"best guess kept in {100 * same:.1f} %, export {shown(took)}", flush=True)
    for method in ("search", "gptq"):
        what = f"{method}: at most {MOST_GROWTH:g} % more perplexity"
        requirements.check(what, grown[method] <= MOST_GROWTH, f"{grown[method]:+.2f} %")
    ratio = lost["gptq"] / lost["search"]
    requirements.check(f"gptq loses at most {MOST_LOSS} of what search does", ratio <= MOST_LOSS, f"{ratio:.2f}")
    requirements.check("search loses less than range", lost["search"] < lost["range"], f"{lost['range']:.4f}")
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
