"""Every row of the zoo proves something: outputs are numbers, follow from the inputs, and come again."""

from __future__ import annotations

import torch
from zoo.shown import Shown, one_thread, shown  # noqa: F401  (fixtures)

import modelport
from modelport.values.tolerance import same_values


def emptiness(found: list[torch.Tensor]) -> str | None:
    """Why these outputs would prove nothing: not numbers, or the same for all of the batch."""
    floats = [t for t in found if t.is_floating_point() and t.numel()]
    if not floats:
        return "no floating-point output"
    if any(t.isnan().any() for t in floats):
        return "a NaN in the outputs"
    # Scores that a model masks on purpose are -inf or the lowest number of the type.
    first = next((t for t in floats if t.ndim > 1), floats[0]).clamp(-1e6, 1e6)
    if first.std(dim=0).max() < 1e-3 * first.abs().max() or first.abs().max() < 1e-3:
        return "the first output does not depend on the inputs"
    return None


def test_outputs_follow_from_the_inputs_and_come_again(shown: Shown) -> None:  # noqa: F811
    model, row = shown.built[0], shown.row
    for size in range(len(row.sizes)):
        found = list(shown.wanted(size).values())
        assert emptiness(found) is None, f"size {size}"
    with torch.no_grad():  # without a seed: what is drawn at random could not be compared
        again = list(modelport.get_leaf_tensors(model(**row.inputs(size))).values())
    assert all(map(same_values, again, found))


def test_outputs_that_prove_nothing_are_seen() -> None:
    assert emptiness([torch.arange(3)]) == "no floating-point output"
    assert emptiness([torch.tensor([[1.0, float("nan")]])]) == "a NaN in the outputs"
    assert emptiness([torch.ones(3, 4)]) == "the first output does not depend on the inputs"
    assert emptiness([torch.randn(3, 4)]) is None
