"""Writes an artifact of each format for this release, with what it has to give: once, when a release is made.

Readers of later releases open them in artifacts_test.py. Usage: python tests/artifacts/make.py <release>"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

import modelport

HERE = Path(__file__).parent


class Tiny(torch.nn.Module):
    """An embedding, a product, a condition on data and a size that is free: what files have to say of a program."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(12, 8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, input_ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = self.words(input_ids) * mask.unsqueeze(-1)
        return {"scores": self.head(torch.nn.functional.gelu(rows)), "mean": rows.mean(dim=1)}


# Artifacts name the lines of the model: these without a path of the machine that they are made on.
Tiny.forward.__code__ = Tiny.forward.__code__.replace(co_filename="tiny.py")


def inputs_of(batch: int, length: int) -> dict[str, torch.Tensor]:
    ids = torch.arange(batch * length).reshape(batch, length) % 12
    return {"input_ids": ids, "mask": (ids % 3 != 0).float()}


def main(release: str) -> None:
    torch.manual_seed(0)
    model = Tiny().eval()
    folder = HERE / release
    folder.mkdir(exist_ok=True)
    example = inputs_of(2, 5)
    modelport.DynamoExporter().export(model, example, {"dynamic": True}).save(folder / "model.pt2")
    modelport.OnnxExporter().export(model, example, {"dynamic": True, "external_data": False}).save(
        folder / "model.onnx"
    )
    axes = {name: {0: "batch", 1: "length"} for name in example}
    bounds = {"batch": (1, 8), "length": (1, 16)}
    config = {"dynamic_shapes": axes, "dims": bounds}
    modelport.ExecutorchExporter().export(model, example, config).save(folder / "model.pte")
    runs = []
    for batch, length in ((2, 5), (3, 7)):
        given = inputs_of(batch, length)
        with torch.no_grad():
            wanted = model(**given)
        runs.append({name: {n: t.tolist() for n, t in one.items()} for name, one in (("in", given), ("out", wanted))})
    (folder / "runs.json").write_text(json.dumps(runs) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
