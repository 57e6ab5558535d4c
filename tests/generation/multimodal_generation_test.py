"""Models that see or hear, exported in parts that generate the tokens of PyTorch."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from media_models import ROWS, built, first_row, generate_inputs, padded_on_the_left
from zoo import ROWS as ZOO
from zoo import Row
from zoo.encoders import TINY as TEXT
from zoo.multimodal import SIGHT
from zoo.vlm import IMAGE, START

import modelport
from modelport import ExportError, OnnxExporter
from modelport.checking.generation import compare_generation
from modelport.generation import multimodal

FROM_THE_ZOO = ("llava", "paligemma", "gemma3", "idefics3", "blip_2", "qwen2_vl", "qwen3_vl")
MODELS = {row.name: row for row in [*ROWS, *ZOO] if row in ROWS or row.name in FROM_THE_ZOO}
SETTINGS = {"max_new_tokens": 32, "min_new_tokens": 32, "do_sample": False}
STEPS = {**SETTINGS, "return_dict_in_generate": True, "output_logits": True}


class Exported:
    """A model, its parts, and the folder of them as it is loaded."""

    def __init__(self, row: Row, inputs: dict[str, Any]):
        self.row, self.model = row, built(row)
        self.parts = OnnxExporter().export_for_generation(self.model, inputs)
        with tempfile.TemporaryDirectory() as folder:
            self.loaded = modelport.load(self.parts.save(Path(folder)))


@functools.cache
def exported(name: str) -> Exported:
    return Exported(MODELS[name], generate_inputs(MODELS[name]))


@pytest.fixture(autouse=True)
def quiet() -> Any:
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_generate_the_tokens_of_eager(name: str) -> None:
    both = exported(name)
    inputs = generate_inputs(both.row)
    for given in (padded_on_the_left(inputs), first_row(inputs)):
        want, got = both.model.generate(**given, **STEPS), both.loaded.generate(**given, **STEPS)
        assert got.sequences.tolist() == want.sequences.tolist()
        for wanted, gotten in zip(want.logits, got.logits, strict=True):
            torch.testing.assert_close(gotten, wanted, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["gemma4", "voxtral", "llava_next", "kosmos2", "mistral3"])
def test_other_numbers_of_prompts_and_tokens_are_served(name: str) -> None:
    both = exported(name)
    for which in (1, 2):
        given = generate_inputs(both.row, which)
        assert torch.equal(both.loaded.generate(**given, **SETTINGS), both.model.generate(**given, **SETTINGS))


def test_the_files_have_the_names_that_clients_know() -> None:
    parts = exported("llava").parts
    assert list(parts) == ["vision_encoder", "embed_tokens", "decoder_model_merged"]
    assert (parts["vision_encoder"].input_names, parts["vision_encoder"].output_names) == (
        ["pixel_values"],
        ["image_features"],
    )
    embed = parts["embed_tokens"]
    assert (embed.input_names, embed.output_names) == (["input_ids", "image_features"], ["inputs_embeds"])
    decoder = parts["decoder_model_merged"]
    assert decoder.input_names[:4] == ["inputs_embeds", "attention_mask", "position_ids", "past_key_values.0.key"]
    assert decoder.output_names[:2] == ["logits", "present.0.key"]
    assert "audio_encoder" in exported("voxtral").parts
    assert exported("voxtral").parts["audio_encoder"].output_names == ["audio_features"]


def test_every_kind_of_features_has_its_own_encoder() -> None:
    parts = exported("qwen2_5_omni, sound and image").parts
    assert {"audio_encoder", "vision_encoder"} < set(parts)
    assert {"audio_features", "image_features"} < set(parts["embed_tokens"].input_names)
    assert "video_encoder" in exported("qwen2_vl, image and video").parts


def test_what_the_model_makes_beside_the_embeddings_goes_from_file_to_file() -> None:
    for name in ("qwen3_vl", "gemma4"):
        parts = exported(name).parts
        made = parts["embed_tokens"].output_names
        assert len(made) > 1
        assert set(made) <= set(parts["decoder_model_merged"].input_names)


@pytest.mark.parametrize("name", ["llava", "qwen2_audio", "qwen3_vl"])
def test_without_features_a_token_that_stands_for_them_is_a_word(name: str) -> None:
    both = exported(name)
    embed = both.parts["embed_tokens"]
    none = {n: torch.zeros(0, 32) for n in embed.input_names if n != "input_ids"}
    words = both.model.get_input_embeddings()
    for ids in (generate_inputs(both.row)["input_ids"], torch.tensor([[7]])):
        torch.testing.assert_close(embed(input_ids=ids, **none)[0], words(ids))


def test_several_tokens_are_read_after_a_past() -> None:
    both = exported("llava")
    given = generate_inputs(both.row)
    more = torch.tensor([[11, 12, 13], [21, 22, 23]])
    cache = both.loaded(**given, use_cache=True).past_key_values
    later = {"input_ids": more, "attention_mask": torch.cat([given["attention_mask"], torch.ones_like(more)], 1)}
    got = both.loaded(**later, past_key_values=cache).logits
    whole = {"input_ids": torch.cat([given["input_ids"], more], 1), "attention_mask": later["attention_mask"]}
    positions = (whole["attention_mask"].cumsum(-1) - 1).masked_fill(whole["attention_mask"] == 0, 0)
    want = both.model(**whole, position_ids=positions, pixel_values=given["pixel_values"]).logits[:, -3:]
    torch.testing.assert_close(got, want, atol=1e-3, rtol=1e-3)


def test_a_prompt_without_pictures_is_read_by_the_same_files() -> None:
    for name in ("llava", "qwen3_vl", "gemma4"):
        both = exported(name)
        ids = torch.tensor([[7, 8, 9, 10, 11]])
        text = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        assert torch.equal(both.loaded.generate(**text, **SETTINGS), both.model.generate(**text, **SETTINGS))


def test_what_only_python_code_reads_is_taken_and_what_nobody_reads_is_refused() -> None:
    both = exported("qwen2_vl")
    given = first_row(generate_inputs(both.row))
    read_by_code = {"image_grid_thw", "mm_token_type_ids"}
    assert read_by_code <= {*given}
    both.loaded.generate(**given, **SETTINGS)
    for name in ("pixel_value", "pixel_values_videos"):
        with pytest.raises(ExportError, match=f"take no {name}: the model was exported without it"):
            both.loaded.generate(**given, **{name: given["pixel_values"]}, **SETTINGS)


def test_prompts_have_any_number_of_images_of_any_size() -> None:
    both = exported("qwen2_vl")
    grids = torch.tensor([[1, 8, 4], [1, 2, 6], [1, 4, 4]])
    first = [START, *[IMAGE] * 8, 9, 10, 11]
    second = [START, *[IMAGE] * 3, 12, START, *[IMAGE] * 4, 13, 14]
    ids = torch.tensor([[0] * (len(second) - len(first)) + first, second])
    given = {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "mm_token_type_ids": (ids == IMAGE).long(),
        "pixel_values": torch.randn(int(grids.prod(-1).sum()), 96, generator=torch.Generator().manual_seed(0)),
        "image_grid_thw": grids,
    }
    for beams in (1, 2):
        settings = {"num_beams": beams, "max_new_tokens": 8, "do_sample": False}
        assert torch.equal(both.loaded.generate(**given, **settings), both.model.generate(**given, **settings))


@pytest.mark.parametrize("name", ["qwen2_vl", "llava_next", "qwen2_audio"])
def test_beams_have_the_features_of_their_prompt(name: str) -> None:
    both = exported(name)
    given = generate_inputs(both.row)
    beams = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 8, "do_sample": False}
    assert torch.equal(both.loaded.generate(**given, **beams), both.model.generate(**given, **beams))


def test_an_encoder_that_belongs_to_a_number_of_pictures_is_for_one_and_runs_for_each() -> None:
    both = exported("llava_next")
    (pixels,) = [v for v in both.parts["vision_encoder"].model_proto.graph.input if v.name == "pixel_values"]
    assert pixels.type.tensor_type.shape.dim[0].dim_value == 1
    given = generate_inputs(both.row, 1)
    assert len(given["pixel_values"]) == 4
    assert torch.equal(both.loaded.generate(**given, **SETTINGS), both.model.generate(**given, **SETTINGS))


def test_an_example_of_one_prompt_is_enough_for_several() -> None:
    for name in ("qwen2_vl", "gemma3"):
        row = MODELS[name]
        both = Exported(row, first_row(generate_inputs(row)))
        given = padded_on_the_left(generate_inputs(row))
        assert torch.equal(both.loaded.generate(**given, **SETTINGS), both.model.generate(**given, **SETTINGS))


def test_an_example_without_pictures_gives_a_model_of_text() -> None:
    row = MODELS["llava"]
    text = {"input_ids": torch.tensor([[7, 8, 9], [10, 11, 12]]), "attention_mask": torch.ones(2, 3, dtype=torch.int64)}
    assert list(OnnxExporter().export_for_generation(built(row), text)) == ["model"]


def test_the_model_is_as_it_was_after_an_export() -> None:
    row = MODELS["qwen3_vl"]
    model, inputs = built(row), generate_inputs(row)
    before = [(part, set(vars(part))) for part in model.modules()]
    want = model.generate(**inputs, **SETTINGS)
    OnnxExporter().export_for_generation(model, inputs)
    assert all(set(vars(part)) == names for part, names in before)
    assert torch.equal(model.generate(**inputs, **SETTINGS), want)


def test_the_decomposition_has_the_encoders_with_what_they_take() -> None:
    row = MODELS["llava"]
    parts = modelport.decompose_for_generation(built(row), generate_inputs(row))
    assert set(parts) == {"image_encoder", "multi_modal_projector", "language_model", "lm_head", "decode"}
    assert list(parts["image_encoder"][1]) == ["pixel_values"]
    assert parts["language_model"][1]["inputs_embeds"].shape == (2, 16, 32)


def test_the_decomposition_steps_with_the_model_that_generate_hands_over_to() -> None:
    row = MODELS["blip_2"]
    parts = modelport.decompose_for_generation(built(row), generate_inputs(row))
    assert list(parts) == ["image_encoder", "language_model", "decode"]
    model, step = parts["decode"]
    assert type(model).__name__ == "OPTForCausalLM"
    assert step["input_ids"].shape == (2, 1)


def test_a_generate_that_hands_over_other_tokens_than_it_is_given_is_refused() -> None:
    config = transformers.BlipConfig(
        text_config={**TEXT, "encoder_hidden_size": 24, "is_decoder": True, "bos_token_id": 1, "sep_token_id": 2},
        vision_config=SIGHT,
    )
    model = transformers.BlipForConditionalGeneration(config).eval()
    inputs = {"pixel_values": torch.randn(2, 3, 24, 24), "input_ids": torch.tensor([[9, 7, 8, 2], [9, 5, 6, 2]])}
    with pytest.raises(ExportError, match="hands over to the BlipTextLMHeadModel inside it") as error:
        OnnxExporter().export_for_generation(model, inputs)
    assert "way out" in str(error.value)


def test_an_encoder_decoder_inside_is_refused() -> None:
    text = {"model_type": "t5", "vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 40, "num_layers": 2, "num_heads": 4}
    text |= {"decoder_start_token_id": 0}
    config = MODELS["blip_2"].make_config().to_dict() | {"text_config": text, "use_decoder_only_language_model": False}
    model = transformers.Blip2ForConditionalGeneration(transformers.Blip2Config(**config)).eval()
    with pytest.raises(ExportError, match="hands over to an encoder-decoder inside it") as error:
        OnnxExporter().export_for_generation(model, generate_inputs(MODELS["blip_2"]))
    assert "way out" in str(error.value)


def test_a_model_that_is_not_cut_says_so_and_why() -> None:
    row = MODELS["mllama"]
    with pytest.warns(UserWarning, match="was not cut into encoder, embedding and decoder: no module in it takes"):
        parts = OnnxExporter().export_for_generation(built(row), generate_inputs(row))
    assert list(parts) == ["decoder_model", "decoder_with_past_model"]


def test_what_the_model_raises_when_it_is_tried_out_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    row = MODELS["llava"]
    monkeypatch.setattr(multimodal, "roles_in", lambda cut: cut.step({}))
    with pytest.warns(UserWarning, match="not cut into encoder, embedding and decoder: ValueError: You must specify"):
        parts = OnnxExporter().export_for_generation(built(row), generate_inputs(row))
    assert "vision_encoder" not in parts


def test_a_mistake_of_ours_is_no_reason_to_leave_a_model_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    row = MODELS["llava"]

    def mistaken(_cut: Any) -> None:
        raise TypeError("a mistake")

    monkeypatch.setattr(multimodal, "roles_in", mistaken)
    with pytest.raises(TypeError, match="a mistake"):
        OnnxExporter().export_for_generation(built(row), generate_inputs(row))


@pytest.mark.parametrize("name", ["llava", "qwen3_vl", "llava_next", "voxtral", "kosmos2"])
def test_a_check_compares_what_encoders_make(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = exported(name)
    prompts = [("example", generate_inputs(both.row))]
    encoders = both.loaded._parts.encoders
    report = compare_generation(both.loaded, both.model, prompts, None, name)
    assert report.ok and not report.skipped
    assert [row.output for row in report.rows] == [*encoders.outputs, "logits", "tokens"]
    made = encoders.made
    monkeypatch.setattr(encoders, "made", lambda given: {n: v + 0.01 for n, v in made(given).items()})
    report = compare_generation(both.loaded, both.model, prompts, None, name)
    assert not any(row.ok for row in report.rows if row.output in encoders.outputs)
