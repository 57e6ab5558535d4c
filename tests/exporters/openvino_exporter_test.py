"""Models for OpenVINO: the values are the model's, caches are state, and what is wrong is told before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_generators import DECODERS, VOCABULARY, made, prompt, t5, whisper
from tiny_models import tiny

import modelport
from modelport import ExportError, OpenVINOConfig, OpenVINOExporter
from modelport.artifacts.ir import IrFile

openvino = pytest.importorskip("openvino")
GREEDY = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}


def bert_inputs(batch: int = 3, seq: int = 7) -> dict[str, Any]:
    ids = torch.randint(0, 99, (batch, seq))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    model = made(DECODERS["llama"])
    parts = OpenVINOExporter().export_for_generation(model, prompt(2, 6))
    return model, parts.save(tmp_path_factory.mktemp("openvino") / "llama")


def test_an_encoder_gives_the_values_of_its_model_at_other_sizes(tmp_path: Path) -> None:
    model, file = tiny("bert"), tmp_path / "bert.xml"
    program = OpenVINOExporter().export(model, bert_inputs(), {"dynamic": True, "output_path": file})
    other = bert_inputs(2, 11)
    with torch.no_grad():
        want = model(**other)
    torch.testing.assert_close(program(**other)[0], want.last_hidden_state, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(modelport.load(file)(**other)[0], want.last_hidden_state, atol=1e-5, rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert.bin", "bert.xml"]
    assert isinstance(program.model, openvino.Model)
    assert modelport.check(program, model, [other]).ok


def test_a_check_finds_other_weights(tmp_path: Path) -> None:
    program = OpenVINOExporter().export(tiny("bert"), bert_inputs(), {"dynamic": True})
    other = tiny("bert", layer_norm_eps=0.1)
    assert not modelport.check(program.save(tmp_path / "bert"), other, [bert_inputs()]).ok


def test_the_cache_of_a_decoder_is_state_and_tokens_are_the_models(llama: tuple[Any, Path]) -> None:
    model, folder = llama
    file = IrFile(folder / "openvino_model.xml")
    assert [row["name"] for row in file.inputs] == ["input_ids", "attention_mask", "position_ids", "beam_idx"]
    assert [row["name"] for row in file.outputs] == ["logits"]
    assert len(file.summary["states"]) == 4
    loaded = modelport.load(folder)
    for given in (prompt(2, 6), prompt(3, 9)):
        assert torch.equal(loaded.generate(**given, **GREEDY), model.generate(**given, **GREEDY))
        beams = GREEDY | {"num_beams": 3}
        assert torch.equal(loaded.generate(**given, **beams), model.generate(**given, **beams))


def test_two_texts_may_be_read_in_turns(llama: tuple[Any, Path]) -> None:
    model, folder = llama
    loaded = modelport.load(folder)
    ids = torch.randint(5, VOCABULARY, (2, 6))
    caches = [loaded(ids[row : row + 1, :4]).past_key_values for row in (0, 1)]
    with torch.no_grad():
        want = model(ids).logits
    for row, cache in enumerate(caches):
        got = loaded(ids[row : row + 1, 4:], past_key_values=cache).logits
        torch.testing.assert_close(got, want[row : row + 1, 4:], atol=1e-4, rtol=1e-4)


def test_tokens_that_a_draft_had_wrong_leave_the_cache(llama: tuple[Any, Path]) -> None:
    model, folder = llama
    given = {"input_ids": torch.tensor([[7, 8, 9, 7, 8, 9, 7, 8]])}
    wanted = model.generate(**given, **GREEDY)
    assert torch.equal(modelport.load(folder).generate(**given, prompt_lookup_num_tokens=3, **GREEDY), wanted)


@pytest.mark.parametrize("maker", [t5, whisper])
def test_an_encoder_decoder_is_two_files_and_tokens_are_the_models(maker: Any, tmp_path: Path) -> None:
    model = made(maker)
    given = (
        {"input_features": torch.randn(2, 8, 60)} if maker is whisper else {"input_ids": torch.randint(5, 99, (2, 14))}
    )
    folder = OpenVINOExporter().export_for_generation(model, given).save(tmp_path / "model")
    assert {file.name for file in folder.glob("*.xml")} == {"openvino_encoder_model.xml", "openvino_decoder_model.xml"}
    loaded = modelport.load(folder)
    assert torch.equal(loaded.generate(**given, **GREEDY), model.generate(**given, **GREEDY))


def test_without_state_the_cache_goes_in_and_out(tmp_path: Path) -> None:
    model = made(DECODERS["gpt2"])
    parts = OpenVINOExporter().export_for_generation(model, prompt(2, 6), OpenVINOConfig(stateful=False))
    folder = parts.save(tmp_path / "gpt2")
    names = [row["name"] for row in IrFile(folder / "openvino_model.xml").inputs]
    assert "past_key_values.0.key" in names and "beam_idx" not in names
    given = prompt(3, 9)
    assert torch.equal(modelport.load(folder).generate(**given, **GREEDY), model.generate(**given, **GREEDY))


def test_buffers_that_a_model_writes_to_are_kept_from_call_to_call() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count

    program = OpenVINOExporter().export(Counting().eval(), {"x": torch.zeros(3, 2)})
    assert [float(program(x=torch.zeros(3, 2))[0][0, 0]) for _ in range(3)] == [1, 2, 3]
    program.reset()
    assert float(program(x=torch.zeros(3, 2))[0][0, 0]) == 1


def test_data_of_another_case_is_refused() -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if bool(x.sum() > 0) else x - 1

    program = OpenVINOExporter().export(Branching().eval(), {"x": torch.ones(3)})
    assert torch.equal(program(x=torch.ones(3))[0], torch.full((3,), 2.0))
    with pytest.raises(ExportError, match="another case"):
        program(x=-torch.ones(3))


def test_conversions_to_integers_cut_the_fraction_whatever_follows() -> None:
    class Cut(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.minimum((x.log() * 3).long() + 8, torch.full_like(x, 15).long())

    given = torch.linspace(0.2, 9, 40)
    program = OpenVINOExporter().export(Cut().eval(), {"x": given})
    assert torch.equal(program(x=given)[0], Cut()(given))


def test_weights_that_are_numbers_of_bf16_are_stored_as_such(tmp_path: Path) -> None:
    model = tiny("bert")
    model.to(torch.bfloat16).to(torch.float32)
    folder = OpenVINOExporter().export(model, bert_inputs(), {"dynamic": True}).save(tmp_path / "bert")
    weights = sum(weight.numel() for weight in model.parameters())
    assert (folder / "openvino_model.bin").stat().st_size < 3 * weights
    assert modelport.check(folder, model, [bert_inputs(2, 5)]).ok


def test_wrong_inputs_are_told_by_name_and_size(llama: tuple[Any, Path], tmp_path: Path) -> None:
    program = OpenVINOExporter().export(tiny("bert"), bert_inputs(), {"dynamic": True})
    loaded = modelport.load(program.save(tmp_path / "bert"))
    with pytest.raises(ExportError, match="needs attention_mask"):
        loaded(input_ids=torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ExportError, match="3 axes"):
        loaded(input_ids=torch.zeros(1, 3, 2, dtype=torch.int64), attention_mask=torch.ones(1, 3))
    with pytest.raises(ExportError, match="no property"):
        modelport.load(tmp_path / "bert", SPEED=1)
    with pytest.raises(ExportError, match="rows"):
        generating = modelport.load(llama[1])
        cache = generating(torch.tensor([[5, 6]])).past_key_values
        generating(torch.tensor([[5], [6]]), past_key_values=cache)


@pytest.mark.parametrize(
    ("text", "why"), [("<net>", "no element found"), ("<!DOCTYPE x><net/>", "document type"), ("<net/>", "no layers")]
)
def test_a_file_that_is_no_model_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text(text)
    with pytest.raises(ExportError, match=why):
        modelport.load(tmp_path)


def test_weights_that_are_missing_are_told(llama: tuple[Any, Path], tmp_path: Path) -> None:
    for file in llama[1].glob("*.xml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ExportError, match=r"openvino_model\.bin, which has its weights, is missing"):
        modelport.load(tmp_path)
