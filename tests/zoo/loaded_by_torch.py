"""Which archives of the zoo torch loads: as few as show it every word of all that are small (`archive_words`).

`PYTHONPATH=tests python -m zoo.loaded_by_torch` writes the choice anew. An archive with a word that is not in it is
loaded by torch as well, so that a new row needs no new choice."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .archive_words import words_of

QUICK_FOR_TORCH = 250  # nodes: it takes seconds for more
_CHOICE = Path(__file__).with_suffix(".json")
_START = 40  # nodes that take as long as what torch does once for an archive


@functools.cache
def choice() -> dict[str, list[str]]:
    """Rows, each with the words that it is chosen for."""
    return json.loads(_CHOICE.read_text())


@functools.cache
def _known_words() -> frozenset[str]:
    return frozenset(word for words in choice().values() for word in words)


def is_for_torch(row: str, nodes: int, model: dict[str, Any]) -> bool:
    if os.environ.get("WHOLE_ZOO"):
        return True
    if nodes > QUICK_FOR_TORCH:
        return False
    words = words_of(model)
    missing = set(choice().get(row, [])) - words
    assert not missing, f"{row} no longer shows {sorted(missing)}: python -m zoo.loaded_by_torch chooses anew"
    return row in choice() or not words <= _known_words()


def choose(found: dict[str, tuple[int, set[str]]]) -> dict[str, list[str]]:
    """A cover of all words, greedy by new words for the number of nodes; `found` are nodes and words of each row."""
    left = set().union(*(words for _, words in found.values()))
    chosen: dict[str, list[str]] = {}
    while left:
        row = max(sorted(found), key=lambda row: len(left & found[row][1]) / (found[row][0] + _START))
        chosen[row] = sorted(left & found[row][1])
        left -= found[row][1]
    return chosen


def main() -> None:
    from expected_failures import EXPECTED

    from . import ROWS
    from .archive_words import read_model
    from .shown import Shown

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in [row for row in ROWS if str(row) not in EXPECTED]:
            exported = Shown(row).exported
            nodes = exported.captured.program.node_count()
            if nodes <= QUICK_FOR_TORCH:
                found[str(row)] = nodes, words_of(read_model(exported.save(Path(folder) / "model.pt2")))
    write(choose(found))
    print(f"{len(choice())} of {len(found)} small archives show {len(_known_words())} words")


def write(chosen: dict[str, list[str]]) -> None:
    lines = (f"{json.dumps(row)}: {json.dumps(words)}" for row, words in sorted(chosen.items()))
    _CHOICE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
