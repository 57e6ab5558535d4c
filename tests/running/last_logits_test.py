"""Files that give the logits of each row's last token: the values of PyTorch, and all of them where they are wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from tiny_decoders import DECODERS, exported, made, padded

import modelport


@pytest.fixture(scope="module", params=["onnxruntime", "standard"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model with a head of its own, and a folder."""
    model, folder = made("qwen3"), tmp_path_factory.mktemp("model")
    exported(model, request.param, last_logits=True).save(folder)
    return model, folder


def _same(got: torch.Tensor, want: torch.Tensor) -> None:
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-4)


def _fed(folder: Path, prompt: dict[str, torch.Tensor]) -> np.ndarray:
    """The logits of the file alone, as a client runs it that knows nothing of us."""
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    batch = len(prompt["input_ids"])
    feeds = {name: tensor.numpy() for name, tensor in prompt.items()}
    feeds["position_ids"] = (prompt["attention_mask"].cumsum(1) - 1).clamp(min=0).numpy()
    feeds |= {
        row.name: np.zeros([batch, row.shape[1], 0, row.shape[3]], np.float32)
        for row in session.get_inputs()
        if row.name.startswith("past")
    }
    wanted = {row.name for row in session.get_inputs()}
    return session.run(["logits"], {name: value for name, value in feeds.items() if name in wanted})[0]


def test_a_client_gets_the_last_token_of_each_row_wherever_its_padding_is(pair: tuple[Any, Path]) -> None:
    model, folder = pair
    lengths = [7, 3, 5]
    prompt = padded(*lengths, side="right")
    got = torch.from_numpy(_fed(folder, prompt))
    want = model(**prompt).logits
    _same(got, torch.stack([row[length - 1 :][:1] for row, length in zip(want, lengths, strict=True)]))


def test_a_call_gives_all_logits_and_the_last_ones_where_it_says_so(pair: tuple[Any, Path]) -> None:
    model, folder = pair
    loaded, prompt = modelport.load(folder), padded(9)
    want = model(**prompt).logits
    _same(loaded(**prompt).logits, want)
    _same(loaded(**prompt, logits_to_keep=1).logits, want[:, -1:])
    _same(loaded(**prompt, logits_to_keep=3).logits, want[:, -3:])


def test_a_call_after_a_past_gives_all_of_its_own_and_the_next_one_only_the_last(pair: tuple[Any, Path]) -> None:
    model, folder = pair
    loaded, ids = modelport.load(folder), padded(9)["input_ids"]
    want, cache = model(ids).logits, loaded.new_cache()
    for tokens, keep in ((slice(0, 4), 0), (slice(4, 7), 1), (slice(7, 9), 0)):
        got = loaded(ids[:, tokens], past_key_values=cache, logits_to_keep=keep).logits
        _same(got, want[:, tokens][:, -keep:])


def test_prompts_of_different_lengths_generate_the_tokens_of_the_model(pair: tuple[Any, Path]) -> None:
    model, folder = pair
    loaded, settings = modelport.load(folder), {"max_new_tokens": 8, "do_sample": False}
    for lengths in ([6], [6, 1, 4]):
        prompt = padded(*lengths)
        assert torch.equal(loaded.generate(**prompt, **settings), model.generate(**prompt, **settings))
    beams = settings | {"num_beams": 3}
    prompt = padded(5, 2)
    assert torch.equal(loaded.generate(**prompt, **beams), model.generate(**prompt, **beams))


@pytest.mark.parametrize("name", DECODERS)
def test_every_way_to_write_a_head_allows_it(name: str) -> None:
    """Softcaps, scales, biases, experts before it, and heads that are the embedding as well."""
    program = exported(made(name), last_logits=True)["model"]
    assert ("logits of the last token", "") in [(fusion, why) for fusion, why, _ in program.graph.fusions()]
