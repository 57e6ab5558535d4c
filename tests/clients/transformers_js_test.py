"""transformers.js on onnxruntime-node runs what `--for transformers.js` writes, as a user would call it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from exported import (
    NEW_TOKENS,
    built,
    export_one_graph,
    generated,
    packed,
    prompt,
    read_json,
    row_of,
    save_tokenizer,
    unpacked,
    until_end,
)
from zoo import ROWS

from modelport.contracts import export_for_client
from modelport.contracts.transformers_js_caches import cache_names, readable
from modelport.contracts.transformers_js_classes import HEARING, MEDIA, RENAMED, SEEING, SEEING_AND_HEARING, SESSIONS
from modelport.generation.prompts import for_generate

CLIENT = "transformers.js"
OF_ANY_MODEL = {
    *("input_ids", "inputs_embeds", "attention_mask", "position_ids", "past_key_values", "per_layer_inputs"),
    *("encoder_outputs", "decoder_input_ids", "decoder_inputs_embeds", "decoder_attention_mask"),
}


def node(packages: Path, script: str, request: Any = None) -> Any:
    done = subprocess.run(
        ["node", script], cwd=packages, input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_node(packages: Path, folder: Path, task: str, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:
    request = {"folder": str(folder), "task": task, "inputs": inputs, "options": options}
    return node(packages, "run_transformers.mjs", request)


def appended(result: dict[str, Any], start: int, model: Any) -> list[list[int]]:
    return [until_end(row[start:], model) for row in unpacked(result["tokens"]).tolist()]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3_text", "gpt2"])
def test_a_decoder_generates_the_tokens_of_eager_pytorch(name: str, packages: Path, tmp_path: Path) -> None:
    model = built(row_of(name))
    export_for_client(CLIENT, model, {"input_ids": prompt(6)}, tmp_path / name)
    ids = torch.cat([prompt(9, 1), prompt(9, 2)])
    mask = torch.ones_like(ids)
    ids[0, :3], mask[0, :3] = 0, 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    result = in_node(packages, tmp_path / name, "text-generation", packed(**inputs), max_new_tokens=NEW_TOKENS)
    assert appended(result, 9, model) == generated(model, **inputs)


@pytest.mark.parametrize("name", ["falcon_h1", "granitemoehybrid", "qwen3_next", "lfm2", "lfm2_moe"])
def test_a_model_with_states_generates_the_tokens_of_eager_pytorch(name: str, packages: Path, tmp_path: Path) -> None:
    model = built(row_of(name))
    export_for_client(CLIENT, model, {"input_ids": prompt(6)}, tmp_path / name)
    ids = torch.cat([prompt(9, 1), prompt(9, 2)])
    result = in_node(packages, tmp_path / name, "text-generation", packed(input_ids=ids), max_new_tokens=NEW_TOKENS)
    assert appended(result, 9, model) == generated(model, input_ids=ids)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_an_encoder_decoder_generates_the_tokens_of_eager_pytorch(name: str, packages: Path, tmp_path: Path) -> None:
    row = row_of(name)
    model = built(row)
    given = [{n: row.inputs(which)[n] for n in ("input_ids", "attention_mask")} for which in (0, 1)]
    export_for_client(CLIENT, model, given[0], tmp_path / name)
    result = in_node(packages, tmp_path / name, "translation", packed(**given[1]), max_new_tokens=NEW_TOKENS)
    assert appended(result, 1, model) == generated(model, **given[1])


def test_whisper_generates_the_tokens_of_eager_pytorch(packages: Path, tmp_path: Path) -> None:
    row = row_of("whisper")
    model = built(row)
    export_for_client(CLIENT, model, {"input_features": row.inputs(0)["input_features"]}, tmp_path / "whisper")
    sound = {"input_features": row.inputs(1)["input_features"][:1]}
    result = in_node(packages, tmp_path / "whisper", "transcription", packed(**sound), max_new_tokens=NEW_TOKENS)
    assert appended(result, 1, model) == generated(model, **sound)


def described(packages: Path, folder: Path, model: Any, given: dict[str, torch.Tensor]) -> None:
    """Compares what it says of a picture, to which it is not told what kind of token is what."""
    own = {name: value for name, value in given.items() if not name.endswith("token_type_ids")}
    result = in_node(packages, folder, "description", packed(**own), max_new_tokens=NEW_TOKENS)
    want = generated(model, **given)
    assert appended(result, given["input_ids"].shape[1], model) == want
    assert want != generated(model, **{**given, "pixel_values": 3 - given["pixel_values"]}), "it does not look"
    if (kinds := given.get("token_type_ids")) is not None:
        other = torch.full_like(kinds, int(not kinds.any()))
        assert want != generated(model, **{**given, "token_type_ids": other}), "the kinds make no difference"


@pytest.mark.parametrize("name", ["llava", "idefics3", "smolvlm", "gemma3", "paligemma"])
def test_a_picture_is_described_as_eager_pytorch_does(name: str, packages: Path, tmp_path: Path) -> None:
    row = row_of(name)
    model = built(row)
    export_for_client(CLIENT, model, row.inputs(0), tmp_path / name)
    given = {name: value[:1] for name, value in row.inputs(2).items()}
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    if name == "paligemma":  # what its processor gives for a prompt; 1 is for an answer
        given["token_type_ids"] = torch.zeros_like(given["input_ids"])
    described(packages, tmp_path / name, model, given)


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_a_picture_of_any_grid_is_described_as_eager_pytorch_does(name: str, packages: Path, tmp_path: Path) -> None:
    row = row_of(name)
    model = built(row)
    export_for_client(CLIENT, model, for_generate(row.inputs(0)), tmp_path / name)
    vision, image = model.config.vision_config, model.config.image_token_id
    height, width = 8, 6
    tokens = [model.config.vision_start_token_id, *[image] * (height * width // vision.spatial_merge_size**2)]
    ids = torch.cat([prompt(3, 1), torch.tensor([tokens]), prompt(5, 2)], 1)
    size = 3 * vision.temporal_patch_size * vision.patch_size**2
    given = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == image).to(torch.int64),
        "pixel_values": torch.randn(height * width, size, generator=torch.Generator().manual_seed(0)),
        "image_grid_thw": torch.tensor([[1, height, width]]),
    }
    described(packages, tmp_path / name, model, given)
    text = {"input_ids": prompt(9, 3), "attention_mask": torch.ones(1, 9, dtype=torch.int64)}
    result = in_node(packages, tmp_path / name, "description", packed(**text), max_new_tokens=NEW_TOKENS)
    assert appended(result, 9, model) == generated(model, **text)


def test_bert_gives_the_features_of_eager_pytorch(packages: Path, tmp_path: Path) -> None:
    row = row_of("bert")
    model = built(row)
    export_one_graph(CLIENT, model, row.inputs(0), tmp_path / "bert")
    result = in_node(packages, tmp_path / "bert", "features", packed(**row.inputs(1)))
    with torch.no_grad():
        want = model(**row.inputs(1))
    assert result.keys() == want.keys()
    for name, value in result.items():
        torch.testing.assert_close(unpacked(value), want[name], atol=1e-4, rtol=1e-4)


def test_vit_gives_the_logits_of_eager_pytorch(packages: Path, tmp_path: Path) -> None:
    row = row_of("vit")
    model = built(row)
    export_one_graph(CLIENT, model, row.inputs(0), tmp_path / "vit")
    result = in_node(packages, tmp_path / "vit", "image-classification", packed(**row.inputs(1)))
    with torch.no_grad():
        want = model(**row.inputs(1)).logits
    torch.testing.assert_close(unpacked(result["logits"]), want, atol=1e-4, rtol=1e-4)


def test_a_pipeline_goes_from_words_to_words(packages: Path, tmp_path: Path) -> None:
    tokenizer = save_tokenizer(tmp_path / "llama")
    model = built(row_of("llama", vocab_size=len(tokenizer)))
    assert export_for_client(CLIENT, model, {"input_ids": prompt(6)}, tmp_path / "llama") == []
    text = "the quick dog"
    want = generated(model, 12, input_ids=tokenizer(text, return_tensors="pt").input_ids)[0]
    result = in_node(packages, tmp_path / "llama", "generated text", {"text": text}, max_new_tokens=12)
    assert result["text"] == text + tokenizer.decode(want, skip_special_tokens=True)


def test_weights_in_several_files_are_counted(packages: Path, tmp_path: Path) -> None:
    model = built(row_of("llama"))
    export_for_client(CLIENT, model, {"input_ids": prompt(6)}, tmp_path / "llama", {"shard_bytes": 20_000})
    count = read_json(tmp_path / "llama/config.json")["transformers.js_config"]["use_external_data_format"]
    assert count["model.onnx"] > 1
    result = in_node(packages, tmp_path / "llama", "text-generation", packed(input_ids=prompt(9, 3)), max_new_tokens=8)
    assert appended(result, 9, model) == generated(model, 8, input_ids=prompt(9, 3))


def test_the_first_cache_has_these_names_in_the_installed_version(packages: Path) -> None:
    generating = [name for name, sessions in SESSIONS.items() if sessions.generates]
    made = {name: getattr(transformers, name).config_class() for name in generating if hasattr(transformers, name)}
    made |= {str(row): row.make_config() for row in ROWS if row.model_class in generating}
    configs = {name: readable(json.loads(config.to_json_string())) for name, config in made.items()}
    # That of this class has no layers unless it is told.
    configs.pop("Lfm2MoeForCausalLM")
    assert len(configs) > 120
    theirs = node(packages, "list_caches.mjs", configs)
    assert {name: sorted(cache_names(config)) for name, config in configs.items()} == {
        name: sorted(names) for name, names in theirs.items()
    }


def test_every_class_of_the_table_opens_these_files_in_the_installed_version(packages: Path) -> None:
    theirs = node(packages, "list_classes.mjs")
    assert len(SESSIONS) > 300
    ours = {name: [sorted(sessions.files), sessions.generates] for name, sessions in SESSIONS.items()}
    assert ours == {name: theirs.get(name, [])[:2] for name in ours}
    # What is left of the inputs of generate without those of any model.
    media = {name: set(theirs[name][2]) - OF_ANY_MODEL for name in MEDIA}
    assert media == {name: set(given) for name, given in MEDIA.items()}
    grids = {name: RENAMED.get(name, {}).get("image_grid_thw", "image_grid_thw") for name in MEDIA}
    assert all(theirs[name][3] in (None, grid) for name, grid in grids.items())
    unlisted = {name for name, sessions in SESSIONS.items() if sessions in (SEEING, HEARING, SEEING_AND_HEARING)}
    assert unlisted - set(MEDIA) == {"VoxtralRealtimeForConditionalGeneration"}  # it is given sound in a way of its own
