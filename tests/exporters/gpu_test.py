"""Models on a GPU: what was captured runs where the inputs are, and files move between devices. Skipped without one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch.export.passes import move_to_device_pass

import modelport

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

KINDS = ("llama", "bert", "gemma3", "mixtral", "gpt2", "mamba", "t5", "vit")
TOLERANCE = {torch.float32: 2e-4, torch.bfloat16: 8e-2}  # of the largest value


class OnBoth:
    """One model on both devices, inputs for it, and the program of the one on the GPU."""

    def __init__(self, kind: str, dtype: torch.dtype):
        self.dtype = dtype
        self.on_cpu = tiny(kind).to(dtype)
        self.on_gpu = copy.deepcopy(self.on_cpu).cuda()
        self.example, self.inputs = self._inputs(kind, 3, 7), self._inputs(kind, 2, 9)
        config = modelport.DynamoConfig(dynamic=True)
        self.exported = modelport.DynamoExporter().export(self.on_gpu, _moved(self.example, "cuda"), config)

    def _inputs(self, kind: str, batch: int, length: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(3, 90, (batch, length))
        if kind == "vit":
            return {"pixel_values": torch.randn(batch, 3, 32, 32, dtype=self.dtype)}
        if kind == "t5":
            return {"input_ids": ids, "decoder_input_ids": ids[:, :3]}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def agrees(self, run: Any, device: str) -> None:
        """At sizes that the export never saw."""
        inputs = _moved(self.inputs, device)
        with torch.no_grad():
            want = modelport.get_leaf_tensors((self.on_gpu if device == "cuda" else self.on_cpu)(**inputs))
            got = modelport.get_leaf_tensors(run(**inputs))
        assert len(got) == len(want)
        for name, value in want.items():
            assert got[name].device == value.device, name
            bound = TOLERANCE[self.dtype] * max(1.0, float(value.float().abs().max()))
            torch.testing.assert_close(got[name].float(), value.float(), atol=bound, rtol=0)


def _moved(inputs: dict[str, torch.Tensor], device: str) -> dict[str, torch.Tensor]:
    return {name: tensor.to(device) for name, tensor in inputs.items()}


@pytest.fixture(scope="module", params=[(kind, dtype) for kind in KINDS for dtype in TOLERANCE], ids=str)
def both(request: pytest.FixtureRequest) -> OnBoth:
    return OnBoth(*request.param)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_was_captured_computes_where_the_inputs_are(both: OnBoth, device: str) -> None:
    both.agrees(both.exported.captured.run, device)


def test_the_program_computes_on_the_gpu(both: OnBoth) -> None:
    both.agrees(both.exported.module(), "cuda")


def test_a_file_is_loaded_on_the_gpu_and_moves_to_the_cpu(both: OnBoth, tmp_path: Path) -> None:
    file = both.exported.save(tmp_path / "model.pt2")
    both.agrees(torch.export.load(file).module(), "cuda")
    both.agrees(move_to_device_pass(torch.export.load(file), "cpu").module(), "cpu")
    for device in ("cuda", "cpu"):
        both.agrees(modelport.load_pt2(file).run, device)


def test_a_file_of_the_cpu_moves_to_the_gpu(both: OnBoth, tmp_path: Path) -> None:
    exported = modelport.DynamoExporter().export(both.on_cpu, both.example, modelport.DynamoConfig(dynamic=True))
    file = exported.save(tmp_path / "model.pt2")
    both.agrees(move_to_device_pass(torch.export.load(file), "cuda").module(), "cuda")


def test_what_torch_saves_of_the_program_is_loaded_on_the_gpu(both: OnBoth, tmp_path: Path) -> None:
    torch.export.save(both.exported, tmp_path / "model.pt2")
    both.agrees(torch.export.load(tmp_path / "model.pt2").module(), "cuda")
