"""Generative classes of the zoo as ExecuTorch programs: exported, loaded, and their greedy tokens compared with those
of eager. One class for each way in which a program is made; with WHOLE_ZOO=1 in the environment, every class."""

from __future__ import annotations

import copy
import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from zoo import Row
from zoo.generating import KINDS, first_rows, first_rows_of

import modelport
from modelport import ExecutorchExporter
from modelport.generation.prompts import for_generate

pytest.importorskip("executorch")

TOKENS = 9
# Only ever fewer.
EXPECTED_FAILURES = {
    "XLNetLMHeadModel": "its memory has states of tokens that were only placeholders",
    "MiniMaxForCausalLM": "its cache is of a class of its own; without it the text has one block",
    "ProphetNetForConditionalGeneration": "positions of a first token are made in another way than those of the next",
    "PaliGemmaForConditionalGeneration": "the mask of a prompt is another than that of what follows",
    "GitForCausalLM": "what it sees is no embedding of a token",
    "Qwen3VLForConditionalGeneration": "features go into several layers",
}


def rows() -> list[Row]:
    if os.environ.get("WHOLE_ZOO"):
        return first_rows()
    wanted = KINDS.keys() | EXPECTED_FAILURES
    found = first_rows_of(wanted.__contains__)
    assert {row.model_class for row in found} == wanted
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.model_class)
def test_the_program_generates_the_tokens_of_eager(row: Row, tmp_path: Path, request: Any) -> None:
    if row.model_class in EXPECTED_FAILURES:
        request.node.add_marker(pytest.mark.xfail(reason=EXPECTED_FAILURES[row.model_class], strict=True))
    model, _ = row.build()
    alone = dataclasses.replace(row, sizes=tuple(dataclasses.replace(size, batch=1) for size in row.sizes))
    given = for_generate(alone.inputs(0))
    parts = ExecutorchExporter().export_for_generation(model, copy.deepcopy(given), {"max_seq_len": 32})
    loaded = modelport.load(parts.save(tmp_path))
    settings = {"max_new_tokens": TOKENS + 1, "min_new_tokens": TOKENS + 1, "do_sample": False, "num_beams": 1}
    want = model.generate(**copy.deepcopy(given), **settings)
    assert loaded.generate(**copy.deepcopy(given), **settings).tolist() == want.tolist()
