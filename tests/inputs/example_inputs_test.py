"""Inputs made by rule: rows of the zoo (`zoo/sample.py`) run on them, at the example's size and at three more."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
import transformers
from zoo import ROWS
from zoo.sample import is_in_sample

import modelport
from modelport.inputs import example_inputs, further_sizes, known_tasks, model_class

# Rows for which the rules make no inputs yet, each with its reason. A row that works must be taken off this list.
EXPECTED: dict[str, str] = {}

NEVER = ("labels", "future_values", "past_key_values", "position_ids", "inputs_embeds", "use_cache")
BY_NAME = {str(row): row for row in ROWS}


def build(name: str) -> Any:
    row = BY_NAME[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(row.seed)
        return getattr(transformers, row.model_class)(row.make_config()).eval()


def shapes(inputs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in inputs.items()}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", list(filter(is_in_sample, BY_NAME)))
def test_a_model_runs_on_the_inputs_that_the_rules_make_for_it(name: str, request: Any) -> None:
    if name in EXPECTED:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED[name], strict=True))
    model = build(name)
    inputs = example_inputs(model)
    further = further_sizes(inputs, model)
    main = "inputs" if "inputs" in inputs else model.main_input_name
    assert main in inputs
    assert not set(NEVER) & set(inputs)
    assert all(list(size) == list(inputs) for size in further)
    assert [size[main].shape[0] > inputs[main].shape[0] for size in further] == [False, True, True]
    assert inputs[main].shape[0] > 1
    with torch.no_grad():
        for size in (inputs, *further):
            model(**size)


def test_the_list_of_expected_failures_is_short_and_names_rows_that_exist() -> None:
    assert set(EXPECTED) <= set(BY_NAME)
    assert len(EXPECTED) <= 22  # of 278 rows: 92 % work; only ever lowered


def test_inputs_are_the_same_each_time_and_the_global_generator_is_left_alone() -> None:
    model = build("clip")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two, other = example_inputs(model), example_inputs(model), example_inputs(model, seed=1)
    further_sizes(one, model)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["pixel_values"], other["pixel_values"])


@pytest.mark.parametrize(
    "name", ["bert", "vit", "resnet", "clip", "whisper", "encodec", "llava", "qwen2_vl", "patchtst"]
)
def test_a_class_and_its_config_will_do(name: str) -> None:
    model = build(name)
    assert shapes(example_inputs(type(model), model.config)) == shapes(example_inputs(model))


def test_a_class_that_reads_text_is_never_built(monkeypatch: pytest.MonkeyPatch) -> None:
    config = build("llama").config
    monkeypatch.setattr(transformers.LlamaForCausalLM, "__init__", None)
    assert shapes(example_inputs(transformers.LlamaForCausalLM, config, batch=3, sequence=9)) == {
        "input_ids": (3, 9),
        "attention_mask": (3, 9),
    }


def test_ids_are_plain_words_and_masks_hide_something() -> None:
    model = build("llama")
    model.config.eos_token_id = [2, 40]
    inputs = example_inputs(model, sequence=40, batch=8)
    assert not set(inputs["input_ids"].flatten().tolist()) & {0, 1, 2, 3, 4, 40}
    assert inputs["input_ids"].max() < model.config.vocab_size
    assert inputs["attention_mask"][0, 0] == 0 and inputs["attention_mask"][-1].all()


def test_an_image_takes_as_many_tokens_as_it_has_features() -> None:
    model = build("qwen2_vl")
    inputs = example_inputs(model)
    for size in (inputs, *further_sizes(inputs, model)):
        merged = size["image_grid_thw"].prod(dim=1) // model.config.vision_config.spatial_merge_size**2
        assert torch.equal((size["input_ids"] == model.config.image_token_id).sum(dim=1), merged)
        assert torch.equal(size["mm_token_type_ids"] == 1, size["input_ids"] == model.config.image_token_id)


def test_free_images_are_not_square_and_fixed_ones_have_the_size_that_the_config_names() -> None:
    assert example_inputs(build("resnet"))["pixel_values"].shape == (2, 3, 64, 96)
    assert example_inputs(build("vit"))["pixel_values"].shape == (2, 3, 40, 40)
    assert [size["pixel_values"].shape[-1] for size in further_sizes(example_inputs(build("vit")), build("vit"))] == [
        40,
        40,
        40,
    ]


def test_the_preprocessor_config_is_heeded() -> None:
    model = build("resnet")
    size = {"size": {"height": 48, "width": 48}}
    assert example_inputs(model, preprocessor=size)["pixel_values"].shape == (2, 3, 48, 80)
    nested = {"image_processor": {"size": {"shortest_edge": 128}, "do_center_crop": False, "crop_size": 96}}
    assert example_inputs(model, preprocessor=nested)["pixel_values"].shape == (2, 3, 128, 160)
    waves = build("wav2vec2")
    assert list(example_inputs(waves)) == ["input_values", "attention_mask"]
    assert list(example_inputs(waves, preprocessor={"return_attention_mask": False})) == ["input_values"]


def test_a_mask_that_the_model_does_not_look_at_is_left_out() -> None:
    assert list(example_inputs(build("detr"))) == ["pixel_values", "pixel_mask"]
    assert list(example_inputs(build("rt_detr"))) == ["pixel_values"]


def test_a_model_in_training_stays_as_it_is() -> None:
    model = build("resnet").train()
    frozen = next(module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    example_inputs(model)
    assert model.training and not frozen.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_further_sizes_of_inputs_made_by_hand() -> None:
    model, inputs = build("bert"), BY_NAME["bert"].inputs(0)
    sizes = [shapes(size)["input_ids"] for size in further_sizes(inputs, model)]
    assert sizes == [(1, 7), (4, 17), (4, 11)]
    with pytest.raises(modelport.ExportError, match="past_key_values"):
        further_sizes(BY_NAME["llama with a cache"].inputs(0), build("llama with a cache"))


def test_a_model_that_no_rule_fits_is_named_with_a_way_out() -> None:
    class Odd(transformers.BertModel):
        def forward(self, input_ids, weather):  # type: ignore[no-untyped-def]
            return super().forward(input_ids)

    class Stubborn(transformers.ViTModel):
        def forward(self, pixel_values):  # type: ignore[no-untyped-def]
            raise ValueError("I take nothing")

    with pytest.raises(modelport.ExportError, match=r"E0310.*weather of Odd(.|\n)*pass the inputs yourself"):
        example_inputs(Odd(build("bert").config))
    with pytest.raises(modelport.ExportError, match=r"E0310(.|\n)*I take nothing"):
        example_inputs(Stubborn(build("vit").config))
    with pytest.raises(modelport.ExportError, match=r"example_inputs\(cls, config\)"):
        example_inputs(transformers.BertModel)


def test_heads_decide_the_form_of_texts() -> None:
    bert, bart = build("bert").config, build("bart").config
    choice = example_inputs(transformers.BertForMultipleChoice(bert))
    assert shapes(choice)["input_ids"] == (2, 3, 7)
    model = transformers.BartForSequenceClassification(bart).eval()
    inputs = example_inputs(model)
    assert list(inputs) == ["input_ids", "attention_mask"]
    assert torch.equal(inputs["input_ids"][:, -1], torch.tensor([2, 2]))
    model(**inputs)


def test_the_class_comes_from_the_architectures_of_the_config() -> None:
    assert model_class({"architectures": ["BertForMaskedLM"]}) is transformers.BertForMaskedLM
    config = transformers.BertConfig(architectures=["BertForMaskedLM"])
    assert model_class(config, "fill-mask") is transformers.BertForMaskedLM
    assert list(example_inputs(config)) == ["input_ids", "attention_mask", "token_type_ids"]


@pytest.mark.parametrize(
    ("model_type", "task", "name"),
    [
        ("bert", "feature-extraction", "BertModel"),
        ("bert", "text-classification", "BertForSequenceClassification"),
        ("llama", "text-generation-with-past", "LlamaForCausalLM"),
        ("t5", "text2text-generation", "T5ForConditionalGeneration"),
        ("whisper", "automatic-speech-recognition", "WhisperForConditionalGeneration"),
        ("wav2vec2", "automatic-speech-recognition", "Wav2Vec2ForCTC"),
        ("llava", "multimodal-text-to-text", "LlavaForConditionalGeneration"),
        ("clip", "zero-shot-image-classification", "CLIPModel"),
        ("sam", "mask-generation", "SamModel"),
        ("segformer", "image-segmentation", "SegformerForSemanticSegmentation"),
        ("patchtst", "time-series-forecasting", "PatchTSTForPrediction"),
    ],
)
def test_the_class_comes_from_the_task(model_type: str, task: str, name: str) -> None:
    assert model_class({"model_type": model_type, "architectures": ["BertForPreTraining"]}, task).__name__ == name


def test_every_task_has_a_class_for_some_model() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    from modelport.inputs.task import _class_names

    assert {"object-detection", "depth-estimation", "question-answering"} <= set(known_tasks())
    assert [task for task in known_tasks() if not any(_class_names(t, task) for t in CONFIG_MAPPING_NAMES)] == []


def test_a_task_or_architecture_that_does_not_exist_gets_the_list_of_those_that_do() -> None:
    with pytest.raises(modelport.ExportError, match=r"no task is called 'fil-mask'(.|\n)*fill-mask, image-class"):
        model_class({"model_type": "bert"}, "fil-mask")
    with pytest.raises(modelport.ExportError, match=r"no class for depth-estimation(.|\n)*question-answering"):
        model_class({"model_type": "bert"}, "depth-estimation")
    with pytest.raises(
        modelport.ExportError, match=r"names no architectures(.|\n)*for bert there are: (.|\n)*fill-mask"
    ):
        model_class({"model_type": "bert"})
    with pytest.raises(modelport.ExportError, match=r"no class NoSuchModel(.|\n)*load the model yourself"):
        model_class({"model_type": "no_such", "architectures": ["NoSuchModel"]})


def test_the_names_of_tasks_are_there_without_torch() -> None:
    code = "import sys, modelport.inputs.task as t; t.known_tasks(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
