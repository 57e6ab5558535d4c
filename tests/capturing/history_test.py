"""A capture is the same whatever the process captured before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from transformers import DynamicCache
from zoo import ROWS

import modelport

# Sizes through int, len, range, list, min and max; loops over items; scans; results that models remember.
MODELS = ("qwen3", "mamba", "mixtral", "recurrent_gemma", "qwen2_vl", "wav2vec2")


def halves(x: torch.Tensor) -> torch.Tensor:
    return x[: int(x.shape[0] / 2)].reshape(len(x) // 2, -1)


def needs_a_plain_number(x: torch.Tensor) -> torch.Tensor:
    number = int(x.shape[0])
    assert type(number).__name__ == "int"  # so that it runs without substitutes only
    return x * number


def longest(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return x[:, : int(lengths.max())]


def smallest(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 2:
        x = x + 1
    return x.topk(min(4, x.shape[0]), dim=0).values


def blocks(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[start : start + 4] * start for start in range(0, x.shape[0], 4)])


def rows(x: torch.Tensor) -> torch.Tensor:
    return torch.cat(list(x), dim=0)


def places(x: torch.Tensor) -> torch.Tensor:
    numbers = list(range(x.shape[0]))
    return x.sum() + torch.arange(2 * len(numbers[1:-1])) * numbers[-1]


EXAMPLES: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "halves": (halves, (torch.ones(6, 8),)),
    "needs_a_plain_number": (needs_a_plain_number, (torch.ones(6, 8),)),
    "longest": (longest, (torch.ones(3, 9), torch.tensor([2, 5, 4]))),
    "smallest": (smallest, (torch.arange(18.0).reshape(9, 2),)),
    "blocks": (blocks, (torch.ones(10, 2),)),
    "rows": (rows, (torch.ones(3, 4, 2),)),
    "places": (places, (torch.ones(9),)),
}


def text_with(cache: Any) -> str:
    model, inputs = next(row for row in ROWS if str(row) == "llama").build()
    return str(modelport.capture(model, {"input_ids": inputs["input_ids"], "past_key_values": cache}, dynamic=True))


def text_of(name: str) -> str:
    torch.manual_seed(0)
    if name in EXAMPLES:
        function, inputs = EXAMPLES[name]
        return str(modelport.capture(function, inputs, dynamic=True))
    model, inputs = next(row for row in ROWS if str(row) == name).build()
    return str(modelport.capture(model, inputs, dynamic=True))


def in_a_process_of_its_own(name: str, folder: Path) -> None:
    """A fork of a process that has imported everything and captured nothing."""
    child = os.fork()
    if child == 0:
        try:
            (folder / f"{name}.txt").write_text(text_of(name))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def main(folder: Path) -> None:
    """For each name the texts that it gives alone, and in one process after one another, twice."""
    torch.set_num_threads(1)
    names = [*EXAMPLES, *MODELS]
    for row in ROWS:
        if str(row) in MODELS:
            row.build()  # imports their code once, and not in each of the processes below
    for name in names:
        in_a_process_of_its_own(name, folder)
    later = [{name: text_of(name) for name in order} for order in (names, reversed(names))]
    (folder / "later.json").write_text(json.dumps(later))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: Any) -> tuple[dict[str, str], list[dict[str, str]]]:
    folder = tmp_path_factory.mktemp("texts")
    tests = str(Path(__file__).resolve().parents[1])  # where the zoo is
    subprocess.run([sys.executable, __file__, folder], env=os.environ | {"PYTHONPATH": tests}, check=True)
    alone = {name: (folder / f"{name}.txt").read_text() for name in (*EXAMPLES, *MODELS)}
    return alone, json.loads((folder / "later.json").read_text())


@pytest.mark.parametrize("name", [*EXAMPLES, *MODELS])
def test_a_capture_after_many_others_gives_the_text_of_one_in_a_process_of_its_own(name: str, texts: Any) -> None:
    alone, later = texts
    assert [found[name] for found in later] == [alone[name]] * 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_process_that_hashes_otherwise_gives_the_same_text(name: str, texts: Any) -> None:
    assert text_of(name) == texts[0][name]


def test_an_empty_cache_is_one_before_a_filled_one_was_seen_and_after_and_stays_empty() -> None:
    if DynamicCache in pytree.SUPPORTED_NODES:  # now as in a new process
        pytree._deregister_pytree_node(DynamicCache)
    caches = [DynamicCache(), DynamicCache()]
    first = text_with(caches[0])
    model, inputs = next(row for row in ROWS if str(row) == "llama with a cache").build()
    modelport.capture(model, inputs, dynamic=True)
    assert text_with(caches[1]) == first
    assert [len(cache.layers) for cache in caches] == [0, 0]


def test_what_one_capture_learned_of_a_module_is_not_known_to_the_next() -> None:
    from modelport.symbolic import substitutes

    first = text_of("needs_a_plain_number")
    text_of("halves")
    assert text_of("needs_a_plain_number") == first
    assert substitutes.uses() == frozenset()
    assert not {"int", "len", "range", "list", "min", "max"} & globals().keys()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
