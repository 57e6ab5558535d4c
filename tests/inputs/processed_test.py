"""Examples by the processor of a checkpoint: believed where rules do otherwise, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
import transformers as t
from tiny_models import tiny

from modelport import ExportError
from modelport.cli import main
from modelport.inputs.of_folder import example_for
from modelport.inputs.processed import picture, processed_inputs, sound

SIDE = {"height": 32, "width": 32}


class Resized(t.ViTModel):
    """Wants what no rule knows, and the processor makes."""

    def forward(self, pixel_values: Any, reshaped_input_sizes: Any) -> Any:
        return super().forward(pixel_values=pixel_values).pooler_output * reshaped_input_sizes[0]


class Frames(t.ViTModel):
    """Wants one axis less than a rule makes for this name."""

    def forward(self, pixel_values: Any, original_sizes: Any = None) -> Any:
        return super().forward(pixel_values=pixel_values).pooler_output


def config() -> Any:
    return tiny("vit").config


def test_what_no_rule_knows_comes_from_the_processor(tmp_path: Path) -> None:
    t.SamImageProcessor(size={"longest_edge": 32}, pad_size=SIDE).save_pretrained(tmp_path)
    found = example_for(tmp_path, Resized, config(), batch=3)
    assert found.told.startswith("made by the checkpoint's own processor")
    assert found.inputs["pixel_values"].shape == (3, 3, 32, 32)
    assert found.inputs["reshaped_input_sizes"].shape == (3, 2)
    assert not torch.equal(found.inputs["pixel_values"][0], found.inputs["pixel_values"][1])


def test_the_processor_is_believed_where_rules_do_otherwise(tmp_path: Path) -> None:
    t.SamImageProcessor(size={"longest_edge": 32}, pad_size=SIDE).save_pretrained(tmp_path)
    found = example_for(tmp_path, Frames, config())
    assert "rules would do otherwise: they make no original_sizes" in found.told
    assert set(found.inputs) == {"pixel_values", "original_sizes"}


def test_rules_make_the_example_where_they_agree(tmp_path: Path) -> None:
    t.ViTImageProcessor(size=SIDE).save_pretrained(tmp_path)
    found = example_for(tmp_path, t.ViTModel, config())
    assert found.told == "made by rule, as the checkpoint's own processor does"
    t.Wav2Vec2FeatureExtractor().save_pretrained(tmp_path / "sounds")
    small = t.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    found = example_for(tmp_path / "sounds", t.Wav2Vec2Model, small)
    assert found.told == "made by rule, as the checkpoint's own processor does"


def test_a_processor_that_fails_is_reported_and_rules_do_it(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "NoSuchImageProcessor"}')
    found = example_for(tmp_path, t.ViTModel, config())
    assert found.told.startswith("made by rule; the processor failed: ") and "pixel_values" in found.inputs
    with pytest.raises(ExportError) as error:
        example_for(tmp_path, Resized, config())
    assert error.value.code == "E0310" and "--inputs FILE" in str(error.value)


def test_text_alone_is_made_by_rule(tmp_path: Path) -> None:
    folder = tiny_checkpoints.save("llama", tmp_path)
    assert example_for(folder, t.LlamaForCausalLM, tiny("llama").config).told == "made by rule"


def test_commands_say_who_made_the_example(tmp_path: Path, capsys: Any) -> None:
    folder = tiny_checkpoints.save("vit", tmp_path)
    t.ViTImageProcessor(size=SIDE).save_pretrained(folder)
    assert main(["capture", str(folder)]) == 0
    assert "the example was made by rule, as the checkpoint's own processor does" in capsys.readouterr().out
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["ok"]


def test_the_picture_and_the_sound_are_the_same_each_time_and_differ_by_number() -> None:
    assert picture(1).tobytes() == picture(1).tobytes() != picture(0).tobytes()
    assert picture(0).size == (224, 160)
    assert (sound(0) == sound(0)).all() and (sound(0) != sound(1)).any() and abs(sound(0)).max() < 1.5


def test_texts_of_different_lengths_do_not_part_rows(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "The": 1, "dog.": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(tmp_path)
    found = processed_inputs(tmp_path, ["input_ids", "attention_mask"], batch=2, trust=False)
    assert found["input_ids"].shape == (2, 9) and found["attention_mask"].shape == (2, 9)
