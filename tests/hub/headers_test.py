"""Captures of names: graphs from settings and headers, weights only where their values are used."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from local_hub import Content, LocalHub
from tiny_models import tiny

import modelport
from modelport import ExportError
from modelport.cli import main

INPUTS = {"input_ids": torch.arange(5, 19).reshape(2, 7)}
LARGE = {
    "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "dtype": "bfloat16",
}  # fmt: skip


def safetensors(shapes: dict[str, tuple[int, ...]], dtype: str = "BF16", size: int = 2) -> Content:
    """A file whose weights are zeros that nobody stores."""
    rows, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + size * int(torch.Size(shape).numel())
        rows[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    header = json.dumps(rows).encode()
    header += b" " * (-len(header) % 8)
    return Content(struct.pack("<Q", len(header)) + header, 8 + len(header) + end)


def large_llama(shards: int) -> dict[str, Content]:
    """A repository with the shapes of Llama 3.3 70B."""
    config = transformers.LlamaConfig(**LARGE, architectures=["LlamaForCausalLM"])
    with torch.device("meta"):
        state = transformers.LlamaForCausalLM(config).state_dict()
    names = list(state)
    places = {
        name: f"model-{1 + i * shards // len(names):05}-of-{shards:05}.safetensors" for i, name in enumerate(names)
    }
    files = {
        file: safetensors({name: tuple(state[name].shape) for name in names if places[name] == file})
        for file in dict.fromkeys(places.values())
    }
    index = json.dumps({"metadata": {}, "weight_map": places}).encode()
    settings = json.dumps(config.to_dict()).encode()
    return files | {
        "model.safetensors.index.json": Content(index, len(index)),
        "config.json": Content(settings, len(settings)),
    }


def test_the_graph_of_70_billion_weights_takes_seconds_and_none_of_them(
    hub: LocalHub, tmp_path: Path, capsys: Any
) -> None:
    files = hub.add("org/large", large_llama(30)).files
    assert sum(content.size for content in files.values()) > 140e9
    started = time.perf_counter()
    assert main(["capture", "org/large", str(tmp_path / "graph.txt"), "--json"]) == 0
    seconds = time.perf_counter() - started
    found = json.loads(capsys.readouterr().out)
    assert found["class"] == "LlamaForCausalLM" and found["weights"]["bytes"] > 140e9 and found["nodes"] > 80 * 20
    assert (tmp_path / "graph.txt").read_text().count("layers.79.mlp.down_proj.weight") >= 1
    assert sum(hub.sent.values()) < 4e6, dict(hub.sent)
    assert seconds < 60
    on_disk = sum(512 * path.stat().st_blocks for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert on_disk < 8e6
    assert not list((tmp_path / "cache" / "assets").rglob("open/*"))

    # Once more, of what is kept of the headers.
    hub.sent.clear()
    assert main(["inspect", "org/large", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["parameters"] == 70_553_706_496 and len(row["weights"]["files"]) == 30
    assert not hub.sent


@pytest.fixture
def llama(hub: LocalHub, tmp_path: Path) -> tuple[Any, Path]:
    model = tiny("llama", hidden_size=256, intermediate_size=1024, num_hidden_layers=4)
    model.save_pretrained(tmp_path / "llama")
    hub.add_folder("org/llama", tmp_path / "llama")
    return model, tmp_path / "llama"


def test_a_name_gives_the_graph_of_its_folder_and_values_when_they_are_used(hub: LocalHub, llama: Any) -> None:
    model, folder = llama
    captured = modelport.capture("org/llama", INPUTS, dynamic=True)
    assert str(captured) == str(modelport.capture(folder, INPUTS, dynamic=True))
    assert captured.report()
    size = (folder / "model.safetensors").stat().st_size
    assert hub.sent["org/llama/model.safetensors"] == 65536 < size
    ids = torch.arange(8, 20).reshape(2, 6)
    torch.testing.assert_close(captured.run(input_ids=ids).logits, model(ids).logits)
    assert hub.sent["org/llama/model.safetensors"] == 65536 + size
    hub.sent.clear()
    again = modelport.capture("org/llama", INPUTS)  # the cache has the weights now
    torch.testing.assert_close(again.run(**INPUTS).logits, model(**INPUTS).logits)
    assert not hub.sent


def test_what_is_written_has_the_weights(hub: LocalHub, llama: Any, tmp_path: Path) -> None:
    from modelport.exporters.configs import OnnxConfig
    from modelport.exporters.onnx_program import OnnxProgram

    model, _ = llama
    captured = modelport.capture("org/llama", INPUTS, dynamic=True)
    OnnxProgram(captured, OnnxConfig(dynamic=True), 23).save(tmp_path / "model.onnx")
    assert modelport.check(tmp_path / "model.onnx", model, INPUTS).ok


def test_weights_that_tying_moves_get_their_values_too(hub: LocalHub, tmp_path: Path) -> None:
    model = tiny("bert for masked words")
    with torch.no_grad():
        model.cls.predictions.bias.normal_()
    model.save_pretrained(tmp_path / "bert")
    hub.add_folder("org/bert", tmp_path / "bert")
    captured = modelport.capture("org/bert", INPUTS)
    torch.testing.assert_close(captured.run(**INPUTS).logits, model(**INPUTS).logits)
    halves = modelport.capture(tmp_path / "bert", INPUTS, dtype=torch.bfloat16).run(**INPUTS).logits
    torch.testing.assert_close(halves.float(), model(**INPUTS).logits, atol=0.05, rtol=0.05)


def test_values_of_buffers_are_fetched_alone(hub: LocalHub, tmp_path: Path) -> None:
    """A capture computes with those, as with the statistics of batch norms."""
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=64, hidden_sizes=[64, 256, 512], depths=[1, 1, 1])
    model = transformers.ResNetModel(config).eval()
    for norm in (module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)):
        norm.running_mean.normal_()
    model.save_pretrained(tmp_path / "resnet")
    hub.add_folder("org/resnet", tmp_path / "resnet")
    inputs = {"pixel_values": torch.randn(2, 3, 32, 48)}
    captured = modelport.capture("org/resnet", inputs)
    graph = str(modelport.capture(tmp_path / "resnet", inputs))
    assert str(captured) == graph
    torch.testing.assert_close(captured.run(**inputs).pooler_output, model(**inputs).pooler_output)


def test_two_names_of_one_weight_are_told_by_their_ends(hub: LocalHub, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = tiny("llama", tie_word_embeddings=True)
    model.save_pretrained(tmp_path / "llama")
    file = tmp_path / "llama" / "model.safetensors"
    tensors = load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, file, {"format": "pt"})
    hub.add_folder("org/tied", tmp_path / "llama")
    tensors["lm_head.weight"][-1, -1] += 1
    save_file(tensors, file, {"format": "pt"})
    hub.add_folder("org/untied", tmp_path / "llama")
    tied, untied = (modelport.capture(name, INPUTS) for name in ("org/tied", "org/untied"))
    assert len(untied.lazy_program.weights()) == len(tied.lazy_program.weights()) + 1


def test_a_server_that_sends_whole_files_is_not_listened_to_for_long(hub: LocalHub) -> None:
    hub.takes_ranges = False
    files = large_llama(1)
    hub.add("org/large", files)
    assert main(["inspect", "org/large", "-q"]) == 0
    assert sum(hub.sent.values()) < 64 << 20  # what the system buffers of the answer


def test_a_file_that_is_no_safetensors_is_refused(hub: LocalHub, llama: Any) -> None:
    hub.models["org/llama"].files["model.safetensors"] = Content(b"PK\3\4" * 1000, 4000)
    with pytest.raises(ExportError, match="no safetensors file"):
        modelport.capture("org/llama", INPUTS)


def test_headers_are_kept_for_times_without_a_connection(
    hub: LocalHub, llama: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = str(modelport.capture("org/llama", INPUTS))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    captured = modelport.capture("org/llama", INPUTS)
    assert str(captured) == graph
    with pytest.raises(ExportError) as error:
        captured.run(**INPUTS)
    assert error.value.code == "E0317"
