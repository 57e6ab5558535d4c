"""Weights of a file that the main thread loads lie in huge pages at once, and go with it; other threads load as ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from tiny_decoders import exported

from modelport.runtimes import huge_heap, huge_pages

WEIGHTS = 40_000 * 512 * 4  # bytes of the embedding, which is the head as well

# In a process of its own: in one where malloc has been used for long, what it has free could serve.
LOAD = """
import gc, json, re, sys, threading
from pathlib import Path
import torch, modelport

def told(what):
    return int(re.search(what + r": +(\\d+) kB", Path("/proc/self/smaps_rollup").read_text())[1]) << 10

found = {}
def load():
    found["model"] = modelport.load(sys.argv[1])

if sys.argv[2] == "main":
    load()
else:
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
rows = [told("AnonHugePages")]
behind = [bytearray(100_000) for _ in range(50)]  # so that the end of the heap is not free afterwards
tokens = found["model"].generate(torch.tensor([[5, 6, 7]]), do_sample=False, max_new_tokens=4).tolist()
rows.append(told("Anonymous"))
found.clear()
gc.collect()
rows.append(told("Anonymous"))
print(json.dumps([tokens, rows]))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: Any) -> tuple[list[list[int]], Path]:
    """What the model says, and its export."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    config = t.LlamaConfig(vocab_size=40_000, max_position_embeddings=64, tie_word_embeddings=True, **sizes)
    model, folder = t.LlamaForCausalLM(config).eval(), tmp_path_factory.mktemp("large")
    exported(model).save(folder)
    return model.generate(torch.tensor([[5, 6, 7]]), do_sample=False, max_new_tokens=4).tolist(), folder


def loaded_in(thread: str, folder: Path) -> Any:
    done = subprocess.run([sys.executable, "-c", LOAD, folder, thread], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not huge_pages.page_size(), reason="the system has no huge pages")
@pytest.mark.skipif(huge_heap._glibc() is None, reason="malloc is not glibc's")
def test_the_main_thread_loads_weights_into_huge_pages_that_go_with_the_model(large: Any) -> None:
    said, folder = large
    tokens, (huge, before, after) = loaded_in("main", folder)
    assert tokens == said
    assert huge >= WEIGHTS * 0.9
    assert before - after >= WEIGHTS * 0.9


def test_another_thread_loads_them_all_the_same(large: Any) -> None:
    said, folder = large
    assert loaded_in("another", folder)[0] == said


def test_nothing_is_set_for_small_files_or_another_malloc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setattr(huge_heap, "_glibc", Untouchable)
    with huge_heap.huge_heap(1 << 20) as belongs_to:
        belongs_to(object())
    monkeypatch.setattr(huge_heap, "_glibc", lambda: None)
    with huge_heap.huge_heap(1 << 40) as belongs_to:
        belongs_to(object())


@pytest.mark.skipif(huge_heap._glibc() is None, reason="malloc is not glibc's")
def test_more_than_there_can_be_is_not_asked_for_in_vain() -> None:
    with huge_heap.huge_heap(1 << 60):
        room = bytearray(1 << 20)  # malloc goes on
    assert not any(room)
