"""transformers.js picks the files of a type by the ends of their names, and generates what `modelport.load` does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from browser import run_in_browser
from exported import until_end
from transformers import AutoTokenizer
from transformers_js_test import appended, in_node, packed

import modelport
from modelport.cli import main

TELLER = Path(__file__).parents[2] / "examples/teller"
TYPES = ["q4", "fp16", "q4f16", "q8"]
TEXT = "It was a bright cold day in"
NEW_TOKENS = 24
CLEAR = 0.05  # of the best score before the second: kernels of another machine round half floats in another way


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model in every type, from one command."""
    out = tmp_path_factory.mktemp("types") / "teller"
    asked = ["--for", "transformers.js", "--dtype", ",".join(TYPES), "--no-check", "--quiet"]
    assert main(["export", "onnx", str(TELLER), str(out), *asked]) == 0
    return out


def told(folder: Path, dtype: str) -> tuple[torch.Tensor, list[int]]:
    """A prompt, and what follows it in onnxruntime from Python."""
    ids = AutoTokenizer.from_pretrained(TELLER)(TEXT, return_tensors="pt").input_ids
    model = modelport.load(folder, dtype=dtype)
    settings = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "output_scores": True}
    found = model.generate(ids, attention_mask=torch.ones_like(ids), return_dict_in_generate=True, **settings)
    best, second = torch.cat(found.scores).topk(2).values.T
    assert (best - second).min() > CLEAR, "take another text"
    return ids, until_end(found.sequences[0, ids.shape[1] :].tolist(), model)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_type_generates_in_node_what_it_does_in_python(dtype: str, folder: Path, packages: Path) -> None:
    ids, want = told(folder, dtype)
    inputs = packed(input_ids=ids, attention_mask=torch.ones_like(ids))
    result = in_node(packages, folder, "text-generation", inputs, dtype=dtype, max_new_tokens=NEW_TOKENS)
    assert appended(result, ids.shape[1], modelport.load(folder, dtype=dtype)) == [want]


def test_types_tell_in_the_browser_what_they_do_in_python(folder: Path, packages: Path, tmp_path: Path) -> None:
    types = ["q4", "fp16"]
    options = {"max_new_tokens": NEW_TOKENS}
    request = {"task": "texts by type", "inputs": {"text": TEXT, "types": types}, "options": options}
    result, opened = run_in_browser(packages, folder, tmp_path / "profile", **request)
    tokenizer = AutoTokenizer.from_pretrained(TELLER)
    want = {dtype: TEXT + tokenizer.decode(told(folder, dtype)[1], skip_special_tokens=True) for dtype in types}
    assert result["texts"] == want
    assert {name for name in opened if name.endswith(".onnx")} == {f"onnx/model_{dtype}.onnx" for dtype in types}


def test_a_client_that_names_no_type_gets_the_most_exact(folder: Path, packages: Path) -> None:
    ids, want = told(folder, "fp16")
    assert modelport.load(folder).generate(ids, max_new_tokens=2).shape[1] == ids.shape[1] + 2
    result = in_node(packages, folder, "text-generation", packed(input_ids=ids), max_new_tokens=NEW_TOKENS)
    assert appended(result, ids.shape[1], modelport.load(folder)) == [want]
