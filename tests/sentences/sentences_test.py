"""Folders of sentence-transformers: embeddings of sentences, by every way of pooling and what may follow it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
import transformers as t
from safetensors.torch import save_file
from tiny_models import tiny

import modelport
from modelport import ExportError
from modelport.artifacts.artifact import Artifact
from modelport.cli import main
from modelport.sentences.folder import load_sentences, read_folder
from modelport.sentences.modules import MODES, Pooling

TYPES = "sentence_transformers.models."
MASK = torch.tensor([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])


def save(folder: Path, *modules: tuple[str, dict[str, Any]], model: Any = None) -> Path:
    (model or tiny("bert")).save_pretrained(folder)
    rows = [{"idx": 0, "name": "0", "path": "", "type": TYPES + "Transformer"}]
    for number, (kind, settings) in enumerate(modules, 1):
        path = f"{number}_{kind}"
        (folder / path).mkdir()
        (folder / path / "config.json").write_text(json.dumps(settings))
        rows.append({"idx": number, "name": str(number), "path": path, "type": TYPES + kind})
        if kind == "Dense":
            torch.manual_seed(1)
            made = torch.nn.Linear(settings["in_features"], settings["out_features"])
            save_file(
                {"linear.weight": made.weight.data, "linear.bias": made.bias.data}, folder / path / "model.safetensors"
            )
    (folder / "modules.json").write_text(json.dumps(rows))
    return folder


def pooled(mode: str, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Row by row, over the tokens that count."""
    rows = []
    for row, keep in zip(tokens, mask.bool(), strict=True):
        kept = row[keep]
        places = torch.arange(1.0, len(kept) + 1)[:, None]
        rows.append(
            {
                "cls": lambda kept=kept: kept[0],
                "lasttoken": lambda kept=kept: kept[-1],
                "max": lambda kept=kept: kept.max(0).values,
                "mean": lambda kept=kept: kept.mean(0),
                "mean_sqrt_len_tokens": lambda kept=kept: kept.sum(0) / len(kept) ** 0.5,
                "weightedmean": lambda kept=kept, places=places: (kept * places).sum(0) / places.sum(),
            }[mode]()
        )
    return torch.stack(rows)


@pytest.mark.parametrize("mode", MODES)
def test_pooling_is_over_the_tokens_that_count(mode: str) -> None:
    tokens = torch.randn(3, 5, 8)
    torch.testing.assert_close(Pooling((mode,))(tokens, MASK), pooled(mode, tokens, MASK))


@pytest.mark.parametrize("mode", MODES)
def test_each_pooling_is_exported_with_its_values(mode: str, tmp_path: Path) -> None:
    folder = save(tmp_path / "model", ("Pooling", {MODES[mode]: True}))
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "-q"]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert [output.name for output in session.get_outputs()] == ["token_embeddings", "sentence_embedding"]
    ids = torch.arange(5, 20).reshape(3, 5)
    feeds = {"input_ids": ids, "attention_mask": MASK, "token_type_ids": torch.zeros_like(ids)}
    tokens, sentence = session.run(None, {name: value.numpy() for name, value in feeds.items()})
    want = tiny("bert")(**feeds).last_hidden_state
    torch.testing.assert_close(torch.from_numpy(tokens), want, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(torch.from_numpy(sentence), pooled(mode, want, MASK), atol=1e-5, rtol=1e-4)


def test_what_follows_the_pooling_is_computed_in_its_order(tmp_path: Path, capsys: Any) -> None:
    dense = {
        "in_features": 64,
        "out_features": 12,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    folder = save(tmp_path / "model", ("Pooling", both), ("Dense", dense), ("Normalize", {}))
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["outputs"] == ["token_embeddings", "sentence_embedding"]
    assert {row["size"] for row in data["check"]["rows"]} == {"example", "batch 1", "longer", "odd"}
    assert main(["check", str(tmp_path / "out"), "-q"]) == 0
    assert Artifact(tmp_path / "out" / "model.onnx").note("model_class") == "SentenceModel"

    ids = torch.arange(5, 20).reshape(3, 5)
    tokens = tiny("bert")(input_ids=ids, attention_mask=MASK).last_hidden_state
    torch.manual_seed(1)
    linear = torch.nn.Linear(64, 12)
    want = torch.cat([pooled("cls", tokens, MASK), pooled("mean", tokens, MASK)], -1)
    want = torch.nn.functional.normalize(torch.tanh(linear(want)), dim=-1)
    given = {"input_ids": ids, "attention_mask": MASK, "token_type_ids": torch.zeros_like(ids)}
    found = modelport.load(tmp_path / "out")(**given)["sentence_embedding"]
    torch.testing.assert_close(found, want, atol=1e-5, rtol=1e-4)


def test_the_task_pools_a_plain_checkpoint_by_the_mean_and_another_leaves_the_modules_away(
    tmp_path: Path, capsys: Any
) -> None:
    tiny("bert for masked words").save_pretrained(tmp_path / "plain")
    out = str(tmp_path / "out.onnx")
    assert main(["export", "onnx", str(tmp_path / "plain"), out, "--task", "sentence-similarity"]) == 0
    assert "a sentence is the mean of its tokens" in capsys.readouterr().err
    assert [row["name"] for row in Artifact(out).outputs] == ["token_embeddings", "sentence_embedding"]
    folder = save(tmp_path / "model", ("Pooling", {"pooling_mode": "mean"}))
    assert main(["export", "onnx", str(folder), out, "--task", "feature-extraction", "--no-check", "-q"]) == 0
    assert "sentence_embedding" not in [row["name"] for row in Artifact(out).outputs]


def test_weights_stay_in_their_files_and_types_are_taken(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", ("Pooling", {"pooling_mode": ["mean", "max"]}), ("Normalize", {}))
    assert main(["export", "onnx", str(folder), str(tmp_path / "out"), "--weights", "link", "-q"]) == 0
    assert (tmp_path / "out" / "model.onnx_data").samefile(folder / "model.safetensors")
    assert main(["export", "onnx", str(folder), str(tmp_path / "half"), "--dtype", "fp16", "-q"]) == 0
    model = tiny("qwen3")  # a decoder whose last token is the sentence, without types of tokens
    folder = save(tmp_path / "qwen3", ("Pooling", {"pooling_mode_lasttoken": True}), model=model)
    assert main(["export", "onnx", str(folder), str(tmp_path / "embeds"), "-q"]) == 0
    assert [row["name"] for row in Artifact(tmp_path / "embeds" / "model.onnx").inputs] == [
        "input_ids",
        "attention_mask",
    ]


def test_of_two_sides_the_one_that_reads_is_taken(tmp_path: Path) -> None:
    folder = save(tmp_path / "t5", ("Pooling", {"pooling_mode_mean_tokens": True}), model=tiny("t5"))
    assert type(load_sentences(folder).transformer) is t.T5EncoderModel


def test_what_is_not_known_is_refused_with_a_way_out(tmp_path: Path) -> None:
    def refused(name: str, *modules: tuple[str, dict[str, Any]]) -> ExportError:
        with pytest.raises(ExportError) as error:
            load_sentences(save(tmp_path / name, *modules))
        return error.value

    assert "the module CNN is not known here" in str(refused("cnn", ("CNN", {})))
    assert "the pooling median" in str(refused("median", ("Pooling", {"pooling_mode": "median"})))
    dense = {"in_features": 32, "out_features": 4, "activation_function": "os.system"}
    assert "the activation system" in str(refused("code", ("Dense", dense)))
    error = refused("sizes", ("Dense", dense | {"activation_function": "torch.nn.Tanh", "bias": False}))
    assert error.code == "E0104"
    (tmp_path / "cnn" / "modules.json").write_text('[{"type": "a.Transformer", "path": "../elsewhere"}]')
    with pytest.raises(ExportError, match="folders below"):
        read_folder(tmp_path / "cnn")
