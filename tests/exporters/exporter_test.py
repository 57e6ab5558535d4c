"""The exporters that people know: configs, preparation, patches, and `.pt2` files in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import tiny

import modelport


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny("llama")


def inputs(batch: int = 3, seq: int = 7) -> dict[str, torch.Tensor]:
    ids = torch.randint(0, 99, (batch, seq))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def test_a_program_loads_in_torch_and_computes_the_same_at_other_sizes(llama: Any, tmp_path: Path) -> None:
    program = modelport.DynamoExporter().export(llama, inputs(), modelport.DynamoConfig(dynamic=True))
    loaded = torch.export.load(program.save(tmp_path / "llama.pt2")).module()
    for batch, seq in ((3, 7), (1, 1), (5, 12)):
        example = inputs(batch, seq)
        with torch.no_grad():
            torch.testing.assert_close(loaded(**example).logits, llama(**example).logits)


def test_a_program_is_called_as_it_was_exported_with_the_flags_that_were_given(llama: Any) -> None:
    given = inputs() | {"use_cache": False}
    program = modelport.DynamoExporter().export(llama, dict(given), modelport.DynamoConfig(dynamic=True))
    larger = inputs(2, 9) | {"use_cache": False}
    with torch.no_grad():
        torch.testing.assert_close(program.module()(**larger).logits, llama(**larger).logits)


def test_the_result_offers_what_an_exported_program_offers(llama: Any) -> None:
    program = modelport.DynamoExporter().export(llama, inputs(), {"dynamic": True, "export_format": "dynamo"})
    assert "model.embed_tokens.weight" in program.graph_signature.parameters
    assert all(constraint.lower == 1 for constraint in program.range_constraints.values())
    assert len(program.range_constraints) >= 2
    assert len(program.state_dict) == len(dict(llama.named_parameters()))
    example = inputs(2, 5)
    with torch.no_grad():
        torch.testing.assert_close(program.module()(**example).logits, llama(**example).logits)


def test_the_same_model_gives_the_same_bytes(llama: Any, tmp_path: Path) -> None:
    files, example = [], inputs()
    for name in ("a.pt2", "b.pt2"):
        program = modelport.DynamoExporter().export(llama, dict(example), modelport.DynamoConfig(dynamic=True))
        files.append(program.save(tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_what_torch_exported_is_read_into_our_graph(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 6)
            self.register_buffer("offset", torch.arange(6.0))

        def forward(self, x: torch.Tensor, flag: torch.Tensor) -> Any:
            y = self.linear(x) + self.offset
            return {
                "y": y.view(x.shape[0] * x.shape[1], 6),
                "parts": y.split(3, dim=-1),
                "z": torch.where(flag, y, 0.0),
            }

    model = Net().eval()
    rows = torch.export.Dim("rows")
    example = {"x": torch.randn(3, 5, 4), "flag": torch.rand(3, 5, 6) > 0.5}
    program = torch.export.export(model, (), example, dynamic_shapes={"x": {0: rows}, "flag": {0: rows}})
    torch.export.save(program, tmp_path / "net.pt2")
    captured = modelport.load_pt2(tmp_path / "net.pt2")
    other = {"x": torch.randn(8, 5, 4), "flag": torch.rand(8, 5, 6) > 0.5}
    with torch.no_grad():
        want = model(**other)
    got = captured.run(**other)
    torch.testing.assert_close(got, want)


def test_a_damaged_archive_is_refused(llama: Any, tmp_path: Path) -> None:
    path = modelport.DynamoExporter().export(llama, inputs()).save(tmp_path / "llama.pt2")
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(modelport.ExportError, match="E0103"):
        modelport.load_pt2(path)


def test_an_export_that_fails_leaves_the_old_file(llama: Any, tmp_path: Path) -> None:
    path = tmp_path / "llama.pt2"
    path.write_text("old")
    program = modelport.DynamoExporter().export(llama, inputs())
    with pytest.raises(modelport.ExportError):
        program.save(path / "below a file.pt2")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["llama.pt2"]


def test_output_flags_go_to_the_config_and_back(llama: Any) -> None:
    program = modelport.DynamoExporter().export(llama, {**inputs(), "use_cache": False, "output_hidden_states": True})
    assert llama.config.use_cache and not llama.config.output_hidden_states
    assert program.captured.output_names == ["logits", "hidden_states.0", "hidden_states.1", "hidden_states.2"]


def test_configs_turn_into_dicts_and_back() -> None:
    config = modelport.DynamoConfig(dynamic=True)
    again = modelport.AutoExportConfig.from_dict(config.to_dict())
    assert again == config and dict(config)["strict"] is False
    assert isinstance(modelport.AutoHfExporter.from_config(config), modelport.DynamoExporter)
    with pytest.raises(modelport.ExportError, match="no exporter for the format 'coreml'"):
        modelport.AutoHfExporter.from_config({"export_format": "coreml"})
    with pytest.raises(modelport.ExportError, match="has no field dynamik"):
        modelport.AutoExportConfig.from_dict({"export_format": "dynamo", "dynamik": True})


def test_patches_are_applied_during_the_export_and_undone() -> None:
    from modelport.exporters import patches

    before = torch.special.expit

    @modelport.register_patch("test backend", "torch.special.expit", "torch.no_such_thing.at_all")
    def replace(original: Any) -> Any:
        return lambda x: original(x) * 2

    try:
        with modelport.apply_patches("test backend"):
            assert torch.special.expit(torch.zeros(1)).item() == 1.0
        assert torch.special.expit is before
    finally:
        patches._PATCHES.pop("test backend")


def test_preparation_refuses_labels_and_casts_inputs(llama: Any) -> None:
    half = tiny("llama").half()
    _, prepared, flags = modelport.prepare_for_export(half, {"inputs_embeds": torch.ones(1, 2, 32), "use_cache": True})
    assert prepared["inputs_embeds"].dtype == torch.float16 and flags == {"use_cache": True}
    with pytest.raises(modelport.ExportError, match="labels"):
        modelport.prepare_for_export(llama, {"labels": torch.ones(1)})


def test_leaf_tensors_are_found_by_dotted_path() -> None:
    found = modelport.get_leaf_tensors({"a": [torch.ones(1), {"b": torch.ones(2)}], "c": 3})
    assert list(found) == ["a.0", "a.1.b"]


def test_a_registered_preparer_changes_inputs_that_have_its_markers(llama: Any) -> None:
    from modelport.exporters.preparers import _PREPARERS

    @modelport.register_export_input_preparer("input_ids", "attention_mask")
    def prepare(_model: Any, given: Any) -> None:
        given["position_ids"] = torch.arange(given["input_ids"].shape[1])[None]

    try:
        _, prepared, _ = modelport.prepare_for_export(llama, inputs())
        _, without, _ = modelport.prepare_for_export(llama, {"input_ids": inputs()["input_ids"]})
    finally:
        del _PREPARERS["input_ids", "attention_mask"]
    assert prepared["position_ids"].tolist() == [list(range(7))]
    assert "position_ids" not in without
