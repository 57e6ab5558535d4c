"""Classes of the zoo whose cache onnxruntime's own operators keep in place: the greedy tokens of PyTorch."""

from __future__ import annotations

from pathlib import Path

from zoo.generating import IN_PLACE, Generating, first_rows, rows_in_sample, with_rows
from zoo.generating import generating as generating  # a fixture

import modelport


@with_rows([row for row in rows_in_sample() if row.model_class in IN_PLACE])
def test_it_generates_the_tokens_of_eager(generating: Generating, tmp_path: Path) -> None:
    # The layout with branches: any processor runs it, and other tests have the plain one.
    parts = generating.parts.lowered_again(operators="onnxruntime", processor="x86_64", last_logits=True)
    made = {fusion for part in parts.values() for fusion, why, _ in part.graph.fusions() if not why}
    assert any("in place" in fusion for fusion in made) and "logits of the last token" in made
    parts.save(tmp_path)
    generating.assert_same_tokens(modelport.load(tmp_path), at_most=12)


def test_25_families_at_least_have_their_cache_in_place() -> None:
    assert len({row.model_class for row in first_rows()} & set(IN_PLACE)) == len(IN_PLACE) >= 25
