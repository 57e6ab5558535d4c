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
from zoo.generating import first_rows

import modelport
from modelport import ExecutorchExporter
from modelport.generation.prompts import for_generate

pytest.importorskip("executorch")

TOKENS = 9
SHOWN = {
    "XLMWithLMHeadModel": "what generate adds to the tokens is made in the program",
    "MptForCausalLM": "biases of positions that are as long as the cache",
    "GPTNeoForCausalLM": "masks of its own from the number of keys",
    "DiffLlamaForCausalLM": "values of the cache in two halves",
    "MiniCPM3ForCausalLM": "keys and values made of what is cached of them",
    "DeepseekV2ForCausalLM": "complex numbers",
    "Llama4ForCausalLM": "complex numbers, and layers that look back a part of the text",
    "DeepseekV3ForCausalLM": "keys and values made of what is cached, and experts",
    "JetMoeForCausalLM": "keys repeated for their heads",
    "JambaForCausalLM": "keys and states in one cache",
    "RwkvForCausalLM": "a state that is no cache of transformers'",
    "LEDForConditionalGeneration": "masks of its own beside an encoder",
    "NllbMoeForConditionalGeneration": "positions from what is cached",
    "FSMTForConditionalGeneration": "no mask for a token after others",
    "Gemma3ForConditionalGeneration": "tokens of a picture that attend to each other",
    "Blip2ForConditionalGeneration": "embeddings that generate hands to a model inside",
    "Qwen2VLForConditionalGeneration": "positions in three directions",
}
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
    wanted = None if os.environ.get("WHOLE_ZOO") else SHOWN.keys() | EXPECTED_FAILURES
    found = [row for row in first_rows() if wanted is None or row.model_class in wanted]
    assert wanted is None or {row.model_class for row in found} == wanted
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
