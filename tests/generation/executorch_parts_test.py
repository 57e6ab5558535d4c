"""Encoder-decoders and models that see as ExecuTorch programs of several methods."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executorch_runner
import pytest
import tiny_generators
import torch
import transformers as t
import zoo
from dequantized_models import LINEAR, dequantized
from executorch_decoders import tiny as decoder
from executorch_runner import BOS, EOS, VOCABULARY, ids_of
from tiny_generators import made
from tiny_models import SMALL, tiny

import modelport
from modelport import ExecutorchExporter, ExportError
from modelport.artifacts.pte import read_program
from modelport.cli import main
from modelport.generation.prompts import for_generate

pytest.importorskip("executorch")

TOKENS = 10


def bart() -> Any:
    layers = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in layers.items()}
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 2}
    config = t.BartConfig(vocab_size=100, d_model=32, max_position_embeddings=64, **sizes, **tokens)
    config.forced_eos_token_id = None
    return t.BartForConditionalGeneration(config)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(length: int) -> torch.Tensor:
    return torch.randint(5, 90, (1, length), generator=torch.Generator().manual_seed(length))


def with_picture(length: int, seed: int) -> dict[str, torch.Tensor]:
    text = torch.cat([ids(length)[:, :2], torch.full((1, 4), tiny_generators.VOCABULARY - 1), ids(length)[:, 2:]], 1)
    return {"input_ids": text, "pixel_values": drawn(1, 3, 16, 16, seed=seed)}


# A model, what its program is made with, further prompts, and its methods.
MODELS: dict[str, tuple[Any, list[dict[str, torch.Tensor]], list[str]]] = {
    "t5": (tiny_generators.t5, [{"input_ids": ids(n)} for n in (7, 4, 12)], ["encoder", "text_decoder"]),
    "bart": (bart, [{"input_ids": ids(n)} for n in (7, 4, 12)], ["encoder", "text_decoder"]),
    "whisper": (
        tiny_generators.whisper,
        [{"input_features": drawn(1, 8, 60, seed=n)} for n in (0, 1)],
        ["encoder", "text_decoder"],
    ),
    "llava": (
        tiny_generators.llava,
        [with_picture(7, 0), with_picture(5, 1), {"input_ids": ids(6)}],
        ["vision_encoder", "token_embedding", "text_decoder"],
    ),
}


def tokens(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    return model.generate(**given, max_new_tokens=TOKENS, do_sample=False)


@pytest.mark.parametrize("recipe", ["portable", "xnnpack"])
@pytest.mark.parametrize("name", MODELS)
def test_a_program_of_several_methods_generates_as_the_model_does(name: str, recipe: str, tmp_path: Path) -> None:
    maker, prompts, methods = MODELS[name]
    model = made(maker)
    parts = ExecutorchExporter().export_for_generation(model, prompts[0], {"max_seq_len": 48, "recipe": recipe})
    assert parts.methods == methods and parts.notes == []
    loaded = modelport.load(parts.save(tmp_path))
    for given in prompts:
        assert torch.equal(tokens(loaded, given), tokens(model, given))
    written = read_program(tmp_path / "model.pte")["methods"]
    assert list(written) == methods
    delegated = [name for name, method in written.items() if method["delegates"]]
    assert delegated == [name for name in methods if recipe == "xnnpack" and name != "token_embedding"]


ENCODERS: dict[str, Callable[[Any], list[torch.nn.Module]]] = {
    "whisper": lambda model: [model.model.encoder],
    "llava": lambda model: [model.model.vision_tower, model.model.multi_modal_projector],
}


def reference(model: Any, name: str, forms: dict[str, str]) -> Any:
    """The model with the weights that each side of the program has, in PyTorch."""
    model = copy.deepcopy(model)
    of_encoder = {id(module) for part in ENCODERS[name](model) for module in part.modules()}
    for module in model.modules():
        form = forms.get("qlinear_encoder" if id(module) in of_encoder else "qlinear")
        if isinstance(module, torch.nn.Linear) and form is not None:
            module.weight = torch.nn.Parameter(dequantized(module.weight.detach(), *LINEAR[form]))
    return model


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(
    "forms", [{"qlinear": "8w"}, {"qlinear_encoder": "4w"}, {"qlinear": "8w", "qlinear_encoder": "4w"}]
)
def test_encoder_and_decoder_take_forms_of_their_own(name: str, forms: dict[str, str], tmp_path: Path) -> None:
    maker, prompts, _ = MODELS[name]
    model = made(maker)
    config = {"max_seq_len": 48, "recipe": "xnnpack"} | forms
    loaded = modelport.load(ExecutorchExporter().export_for_generation(model, prompts[0], config).save(tmp_path))
    for given in prompts:
        assert torch.equal(tokens(loaded, given), tokens(reference(model, name, forms), given))


def test_forms_of_an_encoder_need_one() -> None:
    config = {"max_seq_len": 16, "recipe": "xnnpack", "qlinear_encoder": "8w"}
    with pytest.raises(ExportError, match="no encoder beside a decoder") as caught:
        ExecutorchExporter().export_for_generation(decoder("llama"), config=config)
    assert "give qlinear" in str(caught.value)


def test_the_decoder_of_an_encoder_decoder_takes_what_optimum_has_it_take(tmp_path: Path) -> None:
    _, prompts, _ = MODELS["t5"]
    parts = ExecutorchExporter().export_for_generation(made(tiny_generators.t5), prompts[0], {"max_seq_len": 48})
    assert parts["text_decoder"].input_names == ["input_ids", "encoder_hidden_states", "cache_position"]
    assert parts.constant_methods["decoder_start_token_id"] == 0
    program = parts.save(tmp_path)
    mask = torch.tensor([[0, 1, 1, 1, 1, 1, 1]])
    with pytest.raises(ExportError, match="attention_mask hides"):
        modelport.load(program).generate(**prompts[0], attention_mask=mask)


def test_executorchs_own_runner_sees_a_picture_between_words(tmp_path: Path) -> None:
    tokens_of = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": None}
    text = tiny("llama", vocab_size=VOCABULARY + 1, **tokens_of).config
    sight = t.CLIPVisionConfig(image_size=16, patch_size=8, **SMALL)
    places = {"image_token_index": VOCABULARY, "image_seq_length": 4, "vision_feature_layer": -1}
    model = made(
        lambda: t.LlavaForConditionalGeneration(t.LlavaConfig(vision_config=sight, text_config=text, **places))
    )
    model.generation_config.eos_token_id = EOS
    picture = drawn(1, 3, 16, 16)
    read = torch.tensor([[*ids_of("ab"), *[VOCABULARY] * 4, *ids_of("hello")]])
    given = {"input_ids": read, "pixel_values": picture}
    parts = ExecutorchExporter().export_for_generation(model, given, {"max_seq_len": 48})
    assert parts.constant_methods["modality"] == "vision" and parts.constant_methods["vision_token_id"] == VOCABULARY
    prompt = ["ab", picture[0].tolist(), "hello"]
    tokenizer = executorch_runner.write_tokenizer(tmp_path / "tokenizer.json")
    said = executorch_runner.texts({"": (parts.save(tmp_path / "m.pte"), prompt, TOKENS)}, tokenizer)[""]
    assert ids_of(said) == tokens(model, given)[0, read.shape[1] :].tolist()


@pytest.mark.parametrize("name", ["t5", "whisper", "llava"])
def test_the_command_line_exports_and_checks_every_method(name: str, tmp_path: Path, capsys: Any) -> None:
    made(MODELS[name][0]).save_pretrained(tmp_path / "model")
    capsys.readouterr()
    flags = ["--max_seq_len", "40", "--json"]
    assert main(["export", "executorch", str(tmp_path / "model"), str(tmp_path / "out"), *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["methods"]) == MODELS[name][2] and told["check"]["ok"]
    assert {row["output"] for row in told["check"]["rows"]} >= {"logits", "tokens"}
    assert main(["inspect", str(tmp_path / "out")]) == 0
    assert "method text_decoder" in capsys.readouterr().out


def test_what_a_program_cannot_do_as_generate_does_is_refused() -> None:
    """All tokens of a prompt attend to each other, and only those that are generated have a causal mask."""
    row = next(row for row in zoo.ROWS if row.model_class == "PaliGemmaForConditionalGeneration")
    model, inputs = row.build()
    with pytest.raises(ExportError, match="gives other values than PaliGemmaForConditionalGeneration does"):
        ExecutorchExporter().export_for_generation(model, for_generate(inputs), {"max_seq_len": 32})


def test_a_cache_that_a_program_cannot_keep_is_left_out(tmp_path: Path) -> None:
    model = decoder("mamba", state_size=4)
    parts = ExecutorchExporter().export_for_generation(model, config={"max_seq_len": 24})
    assert parts["forward"].input_names == ["input_ids"] and not parts.constant_methods["use_kv_cache"]
    assert any("reads the whole text for each token" in note for note in parts.notes)


def test_attention_without_a_mask_of_ours_gets_what_is_written_of_the_cache() -> None:
    """GPT-Neo makes its masks itself, from the number of keys."""
    config = t.GPTNeoConfig(
        vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48, max_position_embeddings=64,
        attention_types=[[["global", "local"], 1]], window_size=4, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = made(lambda: t.GPTNeoForCausalLM(config))
    config = {"max_seq_len": 24, "use_custom_sdpa": True}
    parts = ExecutorchExporter().export_for_generation(model, config=config)
    assert parts["forward"].input_names == ["input_ids", "cache_position"]
    assert any("use_custom_sdpa makes no difference" in note for note in parts.notes)
    assert not any("which data decides" in note for note in parts.notes)
