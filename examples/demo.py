#!/usr/bin/env python3
"""Modelport in a few steps: capture a model, read the graph, run it at other sizes, export to .pt2 and to ONNX; then a
small language model is exported to ONNX and to ExecuTorch, checked, and tells the same few lines from both.

Needs no network: the first model is a tiny Qwen3 with random weights, the second is in examples/teller. Exits with 1 if
any value or word differs from eager."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

import modelport

EXAMPLE = (3, 7)
OTHER_SIZES = ((1, 1), (2, 5), (4, 11))  # batch, sequence
MOST_DIFFERENCE = 1e-4
TELLER = Path(__file__).parent / "teller"
OPENINGS = ("In the beginning", "The old man said")
LINE_TOKENS = 40
SHOWN_LINES = 14
# The runtimes that the language model is exported for, and the flags that each is given.
ARTIFACTS = (("onnx", []), ("executorch", ["--recipe", "xnnpack"]))


def tiny_qwen3() -> torch.nn.Module:
    torch.manual_seed(0)
    config = Qwen3Config(
        num_hidden_layers=2,
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=1000,
        use_cache=False,
    )
    return Qwen3ForCausalLM(config).eval()


def inputs_of(batch: int, seq: int) -> dict[str, torch.Tensor]:
    """Random tokens; the first row is padded on the left where there is room for padding."""
    generator = torch.Generator().manual_seed(100 * batch + seq)
    mask = torch.ones(batch, seq, dtype=torch.int64)
    mask[0, : seq // 3] = 0
    return {"input_ids": torch.randint(0, 1000, (batch, seq), generator=generator), "attention_mask": mask}


@contextmanager
def step(title: str) -> Iterator[None]:
    print(f"\n== {title}")
    start = time.perf_counter()
    yield
    print(f"   [{1000 * (time.perf_counter() - start):.1f} ms]")


def show_beginning(text: str) -> None:
    """The first lines of a text; most of the weights that a graph lists are passed over."""
    lines = text.splitlines()
    weights = [i for i, line in enumerate(lines) if line.lstrip().startswith(("@", "weights @"))]
    if len(weights) > 3:
        lines[weights[2] : weights[-1] + 1] = [f"      ... {len(weights) - 2} more weights"]
    for line in lines[:SHOWN_LINES]:
        print(f"   {line if len(line) <= 116 else line[:113] + '...'}")
    if len(lines) > SHOWN_LINES:
        print(f"   ... {len(lines) - SHOWN_LINES} more lines")


def agrees(run: Callable[..., Any], model: torch.nn.Module, sizes: tuple[tuple[int, int], ...]) -> bool:
    """Prints the largest difference from eager at each size."""
    print("   batch  seq   largest difference from eager")
    good = True
    for batch, seq in sizes:
        inputs = inputs_of(batch, seq)
        with torch.no_grad():
            expected = model(**inputs).logits
            got = run(**inputs).logits
        same_kind = got.shape == expected.shape and got.dtype == expected.dtype
        difference = (got - expected).abs().max().item() if same_kind else float("inf")
        fits = difference <= MOST_DIFFERENCE
        print(f"   {batch:5}  {seq:3}   {difference:.1e}   {'ok' if fits else 'MISMATCH'}")
        good = good and fits
    return good


def tell_a_few_lines() -> bool:
    """Exports the language model for two runtimes, as `modelport export` does, and has each go on from a few words."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    print("\nA small language model of our own (examples/teller): 4.9 million parameters, trained on old books")
    tokenizer = AutoTokenizer.from_pretrained(TELLER)
    model = AutoModelForCausalLM.from_pretrained(TELLER).eval()
    prompts = [tokenizer(opening, return_tensors="pt") for opening in OPENINGS]
    told = [line(model, prompt) for prompt in prompts]
    same = [tells_the_same(*artifact, tokenizer, prompts, told) for artifact in ARTIFACTS]
    return all(same)


def tells_the_same(name: str, flags: list[str], tokenizer: Any, prompts: list[Any], told: list[list[int]]) -> bool:
    """Exports, loads and compares every token with what PyTorch told."""
    from modelport.cli import main as command

    folder_name = f"teller-{name}"
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / folder_name
        with step(" ".join(["modelport export", name, "examples/teller", folder_name, *flags])):
            if command(["export", name, str(TELLER), str(folder), *flags]) != 0:
                return False
        loaded = modelport.load(folder)
        with step(f"modelport.load({folder_name!r}).generate(...), and the same in PyTorch"):
            same = [shows_a_line(tokenizer, line(loaded, p), want) for p, want in zip(prompts, told, strict=True)]
    return all(same)


def line(model: Any, prompt: Any) -> list[int]:
    return model.generate(**prompt, max_new_tokens=LINE_TOKENS, do_sample=False)[0].tolist()


def shows_a_line(tokenizer: Any, got: list[int], want: list[int]) -> bool:
    text = tokenizer.decode(got).replace("\n", "\n     ")
    print(f"   « {text} …\n   {len(got)} tokens, {'each that of eager' if got == want else 'NOT those of eager'}")
    return got == want


def main() -> int:
    print("A tiny Qwen3 with random weights: 2 layers, width 64, 1000 tokens")
    model = tiny_qwen3()
    inputs = inputs_of(*EXAMPLE)

    with step(f"capture(model, inputs, dynamic=True), from an example with batch, seq = {EXAMPLE}"):
        captured = modelport.capture(model, inputs, dynamic=True)
    with step("the same again: the first one had parts of torch and transformers to import"):
        captured = modelport.capture(model, inputs, dynamic=True)
    with step("print(captured): a graph with symbolic shapes, and the model's line on every node"):
        show_beginning(str(captured))
    with step("captured.report(): which sizes it is valid for, and what the model asked of them"):
        show_beginning(captured.report())
    with step("captured.run(**inputs) at sizes that the example did not have"):
        good = agrees(captured.run, model, OTHER_SIZES)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qwen3.pt2"
        with step(f"DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)).save({path.name!r})"):
            config = modelport.DynamoConfig(dynamic=True)
            modelport.DynamoExporter().export(model, inputs, config).save(path)
            print(f"   {path.stat().st_size / 1024:.0f} KiB")
        with step(f"torch.export.load({path.name!r}).module()"):
            reloaded = torch.export.load(path).module()
    with step("the reloaded program at the same sizes"):
        good = agrees(reloaded, model, OTHER_SIZES) and good

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qwen3.onnx"
        with step(f"OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True)).save({path.name!r})"):
            program = modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True))
            program.save(path)
            files = ", ".join(file.name for file in program.files)
            print(f"   {program.node_count} nodes of opset {program.opset}: {files}")
    with step("the ONNX model in onnxruntime, at the same sizes"):
        good = agrees(lambda **inputs: SimpleNamespace(logits=program(**inputs)[0]), model, OTHER_SIZES) and good

    good = tell_a_few_lines() and good
    print("\nEvery value agrees with eager." if good else "\nSome values DIFFER from eager: see MISMATCH above.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
