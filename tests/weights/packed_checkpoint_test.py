"""Checkpoints of codes (GPTQ, AWQ, compressed-tensors): their codes are re-packed, and nothing is quantized twice."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import load as load_onnx
from onnx import numpy_helper
from safetensors.torch import save_file
from tiny_models import tiny

from modelport import ExportError, OnnxConfig, OnnxExporter, load
from modelport.cli import main

IDS = torch.tensor([[5, 6, 7, 8]])
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


@dataclasses.dataclass
class Codes:
    """One weight in 4 bits: (code - zero) * scale, by group of columns."""

    codes: np.ndarray  # [rows, columns]
    zeros: np.ndarray  # [rows, groups]
    scales: np.ndarray  # fp16, as zeros

    def numbers(self) -> np.ndarray:
        group = self.codes.shape[1] // self.zeros.shape[1]
        spread = [np.repeat(part.astype(np.float32), group, axis=1) for part in (self.zeros, self.scales)]
        return (self.codes.astype(np.float32) - spread[0]) * spread[1]


def coded(weight: torch.Tensor, group: int, symmetric: bool, rng: np.random.Generator) -> Codes:
    rows, columns = weight.shape
    blocks = weight.float().numpy().reshape(rows, columns // group, group)
    scales = (np.abs(blocks).max(-1) / 7).astype(np.float16)
    zeros = np.full(scales.shape, 8) if symmetric else rng.integers(1, 16, scales.shape)
    spread = scales.astype(np.float32)[..., None]
    codes = np.clip(np.round(blocks / spread) + zeros[..., None], 0, 15).astype(np.int64)
    return Codes(codes.reshape(rows, columns), zeros, scales)


def words(nibbles: np.ndarray, order: list[int] | None = None) -> torch.Tensor:
    """[a, 8 b] to words [a, b]; `order` says which column each 4 bits of a word hold, the lowest first."""
    order = order or list(range(8))
    packed = np.zeros((nibbles.shape[0], nibbles.shape[1] // 8), dtype=np.uint32)
    for place, column in enumerate(order):
        packed |= nibbles[:, column::8].astype(np.uint32) << np.uint32(4 * place)
    return torch.from_numpy(packed.view(np.int32).copy())


def gptq(of: Codes) -> dict[str, torch.Tensor]:
    columns, group = of.codes.shape[1], of.codes.shape[1] // of.zeros.shape[1]
    return {
        "qweight": words(of.codes).t().contiguous(),
        "qzeros": words((of.zeros.T - 1) % 16),
        "scales": torch.from_numpy(of.scales.T.copy()),
        "g_idx": torch.arange(columns, dtype=torch.int32) // group,
    }


def awq(of: Codes) -> dict[str, torch.Tensor]:
    return {
        "qweight": words(of.codes.T, AWQ_ORDER),
        "qzeros": words(of.zeros.T, AWQ_ORDER),
        "scales": torch.from_numpy(of.scales.T.copy()),
    }


def compressed(of: Codes) -> dict[str, torch.Tensor]:
    asymmetric = {"weight_zero_point": words(of.zeros.T).t().contiguous()} if (of.zeros != 8).any() else {}
    return asymmetric | {
        "weight_packed": words(of.codes),
        "weight_scale": torch.from_numpy(of.scales.copy()),
        "weight_shape": torch.tensor(of.codes.shape),
    }


def said(method: str, group: int, symmetric: bool) -> dict[str, Any]:
    if method == "gptq":
        return {"quant_method": method, "bits": 4, "group_size": group, "sym": symmetric, "desc_act": False}
    if method == "awq":
        zero_point = {"zero_point": not symmetric}
        return {"quant_method": method, "bits": 4, "group_size": group, "version": "gemm", **zero_point}
    by = {"strategy": "group", "group_size": group} if group else {"strategy": "channel", "group_size": None}
    weights = {"num_bits": 4, "type": "int", **by, "symmetric": symmetric}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": method, "format": "pack-quantized", "config_groups": groups, "ignore": ["lm_head"]}


PACKERS = {"gptq": gptq, "awq": awq, "compressed-tensors": compressed}


def saved(folder: Path, method: str, symmetric: bool = True, group: int = 16) -> Any:
    """A tiny model as such a checkpoint; gives the model with the numbers that the codes stand for."""
    model = tiny("llama").float()
    rng = np.random.default_rng(0)
    model.save_pretrained(folder)
    stored = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, module in model.model.named_modules():
        if isinstance(module, torch.nn.Linear):
            of = coded(module.weight.detach(), group or module.in_features, symmetric, rng)
            module.weight.data = torch.from_numpy(of.numbers())
            del stored[f"model.{name}.weight"]
            stored |= {f"model.{name}.{part}": tensor for part, tensor in PACKERS[method](of).items()}
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = said(method, group, symmetric)
    (folder / "config.json").write_text(json.dumps(config))
    return model.eval()


def stored_numbers(file: Path) -> dict[str, np.ndarray]:
    """What the products of a file multiply with, computed from its codes."""
    graph = load_onnx(file).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type != "MatMulNBits":
            continue
        codes, scales = tensors[node.input[1]], tensors[node.input[2]]
        nibbles = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:2], -1).astype(np.float32)
        zeros = np.full(scales.shape, 8)
        if len(node.input) > 3:
            packed = tensors[node.input[3]].reshape(codes.shape[0], -1)
            zeros = np.stack([packed & 15, packed >> 4], -1).reshape(codes.shape[0], -1)[:, : codes.shape[1]]
        numbers = (nibbles - zeros.reshape(*codes.shape[:2], 1)) * scales.reshape(*codes.shape[:2], 1)
        found[node.input[1].removesuffix(".codes")] = numbers.reshape(codes.shape[0], -1)
    return found


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("method", list(PACKERS))
def test_the_codes_of_the_checkpoint_are_those_of_the_file(method: str, symmetric: bool, tmp_path: Path) -> None:
    model = saved(tmp_path / "there", method, symmetric)
    parts = OnnxExporter().export_for_generation(tmp_path / "there", {"input_ids": IDS})
    parts.save(tmp_path / "out")
    found = stored_numbers(tmp_path / "out/model.onnx")
    linear = {name: m for name, m in model.model.named_modules() if isinstance(m, torch.nn.Linear)}
    assert set(found) == {f"model.{name}.weight" for name in linear}
    for name, module in linear.items():
        np.testing.assert_array_equal(found[f"model.{name}.weight"], module.weight.detach().numpy())
    got = load(tmp_path / "out")(input_ids=IDS).logits
    torch.testing.assert_close(got, model(input_ids=IDS).logits, atol=0.03, rtol=0.03)


def test_another_type_has_the_numbers_that_codes_stand_for(tmp_path: Path) -> None:
    model = saved(tmp_path / "there", "awq", symmetric=False)
    program = OnnxExporter().export(tmp_path / "there", {"input_ids": IDS}, OnnxConfig(dtype="fp32"))
    assert "MatMulNBits" not in str(program)
    torch.testing.assert_close(program(input_ids=IDS)[0], model(input_ids=IDS).logits, atol=1e-4, rtol=1e-4)


def test_groups_as_long_as_a_row_become_blocks(tmp_path: Path) -> None:
    model = saved(tmp_path / "there", "compressed-tensors", group=0)
    parts = OnnxExporter().export_for_generation(tmp_path / "there", {"input_ids": IDS})
    parts.save(tmp_path / "out")
    name = "model.layers.0.mlp.down_proj"
    found = stored_numbers(tmp_path / "out/model.onnx")[f"{name}.weight"]
    np.testing.assert_array_equal(found, model.get_submodule(name).weight.detach().numpy())


def test_the_command_line_exports_and_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path / "there", "gptq")
    asked = ["--json", "--max-perplexity-growth", "50"]
    assert main(["export", "onnx", str(tmp_path / "there"), str(tmp_path / "out"), *asked]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["check"]["same_guess"] > 0.5
    assert "quantization_config" not in json.loads((tmp_path / "out/config.json").read_text())
    assert main(["check", str(tmp_path / "out"), "-q", "--max-perplexity-growth", "50"]) == 0


def test_columns_out_of_order_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    saved(tmp_path, "gptq")
    stored = load_file(tmp_path / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.g_idx"
    stored[name] = stored[name].flip(0).contiguous()
    save_file(stored, tmp_path / "model.safetensors")
    parts = OnnxExporter().export_for_generation(tmp_path, {"input_ids": IDS})
    with pytest.raises(ExportError, match="desc_act"):
        parts.save(tmp_path / "out")
