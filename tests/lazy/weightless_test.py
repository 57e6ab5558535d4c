"""Capture from a checkpoint folder without its weights: graph, values, where each weight is, what is refused."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_models import tiny
from weightless_zoo import compare
from zoo import ROWS

import modelport
from modelport.base.structure import flatten

# Ties, renamings, merged experts, computed buffers, batch norms, caches, and inputs of every kind.
SAMPLE = [
    "bert", "albert", "deberta_v2", "distilbert", "modernbert", "llama", "llama with a cache", "qwen3", "gemma2",
    "gpt2", "gpt_neox", "bloom", "mixtral", "qwen2_moe", "granitemoe", "mamba", "t5", "bart", "vit", "swin", "resnet",
    "detr", "segformer", "clip",
]  # fmt: skip
# With weights, a graph that resizes its positions is found to be right for pictures of any size.
NEEDS_VALUES = ["dinov2"]
BY_NAME = {row.name: row for row in ROWS}


@pytest.fixture(autouse=True)
def read_weights_are_errors():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*the weights are")
        yield


@pytest.mark.parametrize("name", SAMPLE)
def test_the_graph_and_the_values_are_those_of_real_weights(name: str, tmp_path: Path) -> None:
    outcome = compare(BY_NAME[name], tmp_path)
    assert outcome.kind == "same", outcome.reason


@pytest.mark.parametrize("name", NEEDS_VALUES)
def test_a_graph_that_only_values_can_find_serves_more_sizes_and_is_told_of(name: str, tmp_path: Path) -> None:
    outcome = compare(BY_NAME[name], tmp_path)
    assert outcome.kind == "narrower", outcome.reason


def saved(name: str, folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    model, inputs = BY_NAME[name].build()
    model.save_pretrained(folder, **options)
    return model, inputs


def rewrite(folder: Path, change: Any) -> None:
    """Lets `change` edit the tensors of a saved model."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def difference(captured: Any, model: Any, inputs: dict[str, Any]) -> float:
    with torch.no_grad():
        want = flatten(model(**inputs)).tensors()
    got = flatten(captured.run(**inputs)).tensors()
    assert got.keys() == want.keys()
    return max((got[n].double() - want[n].double()).abs().max().item() for n in want)


def test_shards_are_bound_through_their_index(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    captured = modelport.capture(tmp_path, inputs, dynamic=True)
    assert len({stored.file for stored in captured.weight_files().values()}) > 1
    assert difference(captured, model, inputs) == 0


def test_weight_files_say_where_the_bytes_of_each_weight_are(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path)
    files = modelport.capture(tmp_path, inputs).weight_files()
    assert files.keys() == {name for name, _ in model.named_parameters()}
    for name, weight in model.named_parameters():
        stored = files[name]
        assert stored.shape == tuple(weight.shape)
        data = Path(stored.file).read_bytes()[stored.offset : stored.offset + stored.nbytes]
        assert torch.equal(torch.frombuffer(bytearray(data), dtype=stored.dtype).view(stored.shape), weight)


def test_merged_experts_are_said_to_be_made_of_several_tensors(tmp_path: Path) -> None:
    _, inputs = saved("mixtral", tmp_path)
    captured = modelport.capture(tmp_path, inputs)
    made = captured.converted_weights()
    assert any("MergeModulelist" in source.steps and len(source.pieces) > 1 for source in made.values())
    assert made.keys().isdisjoint(captured.weight_files())


UNREADABLE = """
import mmap, sys
import torch
import modelport
from modelport.weights import checkpoint

def unreadable(file, size):
    return mmap.mmap(file, size, flags=mmap.MAP_PRIVATE, prot=0)

checkpoint.private_memory = unreadable
ids = torch.arange(6).view(2, 3)
captured = modelport.capture(sys.argv[1], {"input_ids": ids}, dynamic=True)
print(captured, flush=True)
captured.run(input_ids=ids)
"""


def test_a_capture_reads_no_weight(tmp_path: Path) -> None:
    """In memory that cannot be read, a capture works; a run, which must read, shows that the memory is such."""
    saved("llama", tmp_path)
    done = subprocess.run([sys.executable, "-c", UNREADABLE, str(tmp_path)], capture_output=True, text=True)
    assert "aten.linear" in done.stdout, done.stderr
    assert done.returncode == -signal.SIGSEGV, done.stderr


def test_a_tie_is_bound_to_the_name_that_is_stored(tmp_path: Path) -> None:
    model = tiny("llama", tie_word_embeddings=True, architectures=["LlamaForCausalLM"])
    model.save_pretrained(tmp_path)
    inputs = {"input_ids": torch.arange(6).view(2, 3)}
    rewrite(tmp_path, lambda t: t.update({"lm_head.weight": t.pop("model.embed_tokens.weight")}))
    captured = modelport.capture(tmp_path, inputs)
    assert captured.weight_files()["model.embed_tokens.weight"].name == "lm_head.weight"
    assert difference(captured, model, inputs) == 0


def test_a_checkpoint_of_the_base_model_gets_its_prefix(tmp_path: Path) -> None:
    model, inputs = saved("bert", tmp_path)
    prefix = f"{model.base_model_prefix}."

    def strip(tensors: dict[str, torch.Tensor]) -> None:
        for name in [n for n in tensors if n.startswith(prefix)]:
            tensors[name.removeprefix(prefix)] = tensors.pop(name)

    rewrite(tmp_path, strip)
    assert difference(modelport.capture(tmp_path, inputs), model, inputs) == 0


def test_bfloat16_stays_bfloat16(tmp_path: Path) -> None:
    model, inputs = BY_NAME["llama"].build()
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    captured = modelport.capture(tmp_path, inputs)
    assert {stored.dtype for stored in captured.weight_files().values()} == {torch.bfloat16}
    assert difference(captured, transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval(), inputs) == 0


def test_a_stored_dtype_that_the_config_does_not_want_is_converted(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path)
    rewrite(tmp_path, lambda t: t.update({n: v.to(torch.float64) for n, v in t.items()}))
    captured = modelport.capture(tmp_path, inputs)
    assert captured.weight_files() == {}
    assert {source.steps for source in captured.converted_weights().values()} == {("to float32",)}
    assert difference(captured, model, inputs) == 0


def test_every_misfit_is_reported_at_once(tmp_path: Path) -> None:
    _, inputs = saved("llama", tmp_path)

    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["model.layers.0.mlp.up_proj.weight"], tensors["model.norm.weight"]
        tensors["model.layers.0.mlp.down_proj.weight"] = torch.zeros(3, 5)
        tensors["model.layers.0.self_attn.q_proj.weight"] = tensors["model.layers.0.self_attn.q_proj.weight"].long()
        tensors["nobody.knows.weight"] = torch.zeros(1)

    rewrite(tmp_path, spoil)
    with pytest.raises(modelport.ExportError) as failed:
        modelport.capture(tmp_path, inputs)
    assert failed.value.code == "E0104"
    text = str(failed.value)
    for part in ("missing model.layers.0.mlp.up_proj.weight", "missing model.norm.weight", "shape [3, 5]", "int64",
                 "nobody.knows.weight", "way out"):  # fmt: skip
        assert part in text, part


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    _, inputs = saved("llama", tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(modelport.ExportError) as failed:
        modelport.capture(tmp_path, inputs)
    assert failed.value.code == "E0103"


def test_a_corrupt_header_is_refused(tmp_path: Path) -> None:
    _, inputs = saved("llama", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", 8) + b"{not json")
    with pytest.raises(modelport.ExportError) as failed:
        modelport.capture(tmp_path, inputs)
    assert failed.value.code == "E0103"


def test_a_pickle_is_refused_with_how_to_convert_it(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(modelport.ExportError, match="pickle") as failed:
        modelport.capture(tmp_path, inputs)
    assert "save_file" in str(failed.value)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(modelport.ExportError) as failed:
            modelport.capture(folder, {})
        assert failed.value.code == "E0103"


def test_the_class_can_be_named(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(modelport.ExportError, match="model_class") as failed:
        modelport.capture(tmp_path, inputs)
    assert failed.value.code == "E0309"
    for chosen in (type(model), type(model).__name__, transformers.AutoModelForCausalLM):
        assert difference(modelport.capture(tmp_path, inputs, model_class=chosen), model, inputs) == 0


class AsksItsWeights(transformers.LlamaForCausalLM):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden = self.model.embed_tokens(input_ids)
        return hidden if self.model.norm.weight.sum() > 0 else -hidden


def test_a_model_that_asks_for_values_gets_them_with_a_warning(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path)
    inputs = {"input_ids": inputs["input_ids"]}
    with pytest.warns(UserWarning, match=r"the weights are read, because .*weightless_test\.py:\d+"):
        captured = modelport.capture(tmp_path, inputs, model_class=AsksItsWeights)
    rows = model.model.embed_tokens(inputs["input_ids"])
    assert torch.equal(captured.run(**inputs).abs(), rows.abs())


class BranchesOnASize(transformers.LlamaForCausalLM):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden = self.model.embed_tokens(input_ids)
        return hidden * 2 if input_ids.shape[1] > 1 else hidden


def test_a_condition_that_only_values_decide_is_kept_and_said(tmp_path: Path) -> None:
    _, inputs = saved("llama", tmp_path)
    inputs = {"input_ids": inputs["input_ids"]}
    with pytest.warns(UserWarning, match="conditions on sizes"):
        captured = modelport.capture(tmp_path, inputs, dynamic=True, model_class=BranchesOnASize)
    assert "seq in 2.." in captured.report()


def test_a_quantized_checkpoint_is_not_taken_for_plain_weights(tmp_path: Path) -> None:
    _, inputs = saved("llama", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "nothing"}}))
    with pytest.warns(UserWarning, match="the weights are loaded, because the checkpoint is quantized"):
        try:
            modelport.capture(tmp_path, inputs)
        except Exception as error:  # transformers' own word on a method that it does not know
            assert "nothing" in str(error)
