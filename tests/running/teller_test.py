"""The demo's language model, examples/teller, and how its text is made from the books."""

from __future__ import annotations

import math
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
import teller_text
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "teller"
# From passages that training held out. A model that knows nothing is at 4096, one that knows how often tokens occur at
# several hundred.
HELD_OUT = (
    "Though now the middle of December, there had yet been no weather to prevent the young ladies from tolerably"
    " regular exercise; and on the morrow, Emma had a charitable visit to pay to a poor sick family, who lived a little"
    " way out of Highbury.",
    "While they were at breakfast the letters were brought in. Among the rest there was one for Colonel Brandon;--he"
    " took it, looked at the direction, changed colour, and immediately left the room.",
    '"That was it," said Holmes, nodding approvingly; "I have no doubt of it. But have you never been prosecuted for'
    ' begging?"',
)
MOST_PERPLEXITY = 80.0


@pytest.fixture(scope="module")
def teller() -> Any:
    return AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True).eval()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


def perplexity(model: Any, tokens: torch.Tensor) -> float:
    with torch.no_grad():
        return math.exp(model(input_ids=tokens, labels=tokens).loss.item())


def test_the_weights_are_under_ten_megabytes() -> None:
    assert sum(file.stat().st_size for file in FOLDER.glob("*.safetensors")) < 10_000_000


def test_the_model_is_in_float32_and_its_head_is_its_embedding(teller: Any) -> None:
    assert {weight.dtype for weight in teller.parameters()} == {torch.float32}
    assert teller.lm_head.weight is teller.model.embed_tokens.weight


def test_a_text_comes_back_from_its_tokens(tokenizer: Any) -> None:
    text = '"Good-morning, Mr. Holmes," said the captain.\nIt was déjà vu -- 1815!'
    tokens = tokenizer(text).input_ids
    assert tokenizer.decode(tokens) == text
    assert max(tokens) < len(tokenizer) == 4096


@pytest.mark.parametrize("text", HELD_OUT)
def test_it_expects_sentences_that_it_was_not_trained_on(teller: Any, tokenizer: Any, text: str) -> None:
    tokens = tokenizer(text, return_tensors="pt").input_ids
    shuffled = tokens[:, torch.randperm(tokens.shape[1], generator=torch.Generator().manual_seed(0))]
    assert perplexity(teller, tokens) < MOST_PERPLEXITY
    assert perplexity(teller, tokens) < perplexity(teller, shuffled) / 4


def test_its_greedy_words_are_no_loop(teller: Any, tokenizer: Any) -> None:
    prompt = tokenizer("The captain", return_tensors="pt")
    tokens = teller.generate(**prompt, max_new_tokens=60, do_sample=False)
    text = tokenizer.decode(tokens[0])
    words = re.findall(r"[A-Za-z']+", text)
    assert text.isascii() and len(words) > 30
    assert len(set(words)) > len(words) / 2
    assert sum(len(word) for word in words) > 0.7 * len(text)


def test_headings_and_slurs_are_left_out_of_the_text() -> None:
    text = 'CHAPTER I\n\n"TOM!"\n\nShe  was\n_very_ glad.\n\nBy Jane Austen\n\nsaid Injun Joe.\n\n“Café”—so\n'
    assert list(teller_text.paragraphs(text)) == ['"TOM!"', "She was very glad.", '"Cafe"--so']


def r_database(*vectors: list[str]) -> bytes:
    """Character vectors as R keeps them for lazy loading."""
    content = b""
    for vector in vectors:
        data = b"X\n" + struct.pack(">iiii", 3, 0x40201, 0x30500, 5) + b"UTF-8" + struct.pack(">ii", 16, len(vector))
        for line in vector:
            data += struct.pack(">ii", 0x40009, len(line.encode())) + line.encode()
        content += struct.pack(">i", len(data)) + zlib.compress(data)
    return content


def test_the_strings_of_an_r_package_are_read() -> None:
    content = r_database(["EMMA", "", "Emma Woodhouse,"], ["Sir Walter Elliot,"])
    assert teller_text.r_strings(content) == "EMMA\n\nEmma Woodhouse,\n\nSir Walter Elliot,\n"


def test_an_r_object_of_another_kind_is_refused() -> None:
    content = r_database(["a"])
    data = bytearray(zlib.decompress(content[4:]))
    data[26] = 13  # integers
    with pytest.raises(ValueError, match="R object of kind 13"):
        teller_text.r_strings(content[:4] + zlib.compress(bytes(data)))


def test_blocks_of_paragraphs_are_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = teller_text.Book("tale", "tale.txt", teller_text.plain, "Line 0 ", "The end of it")
    lines = [f"Line {number} of the tale." for number in range(2000)]
    (tmp_path / "tale").mkdir()
    (tmp_path / "tale" / "tale.txt").write_text("A licence.\n\n" + "\n\n".join(lines) + "\n\nThe end of it, and more.")
    monkeypatch.setattr(teller_text, "BOOKS", (book,))
    (train,), held_out = teller_text.split(tmp_path)
    assert [len(text.splitlines()) for text in held_out] == [teller_text.BLOCK] * 2
    assert sorted(train.splitlines() + "".join(held_out).splitlines()) == sorted(lines)
