"""Draws from another distribution are told apart, draws from the same are not."""

from __future__ import annotations

import pytest
import random_draws
import torch
from torch.nn.functional import dropout

X = torch.linspace(-2, 2, 12).view(3, 4)
P = torch.linspace(0.1, 0.9, 12)
SAME = {
    "aten.rand": lambda: torch.rand(3, 4),
    "aten.randn_like": lambda: torch.randn(3, 4),
    "aten.randint": lambda: torch.randint(0, 5, (3, 4)),
    "aten.randperm": lambda: torch.randperm(6),
    "aten.multinomial": lambda: torch.multinomial(torch.rand(6, generator=torch.Generator().manual_seed(0)), 3),
    "aten.bernoulli": lambda: torch.bernoulli(P),
    "aten.cauchy": lambda: torch.empty(3, 4).cauchy_(),
    "aten.dropout": lambda: dropout(X, 0.3),
}
OTHER = {
    "aten.rand": {
        "zeros": lambda: torch.zeros(3, 4),
        "too wide": lambda: 1.1 * torch.rand(3, 4),
        "one number for all": lambda: torch.rand(1).expand(3, 4),
        "double": lambda: torch.rand(3, 4).double(),
        "another shape": lambda: torch.rand(4, 3),
    },
    "aten.randn_like": {
        "shifted": lambda: torch.randn(3, 4) + 0.2,
        "narrow": lambda: 0.85 * torch.randn(3, 4),
        "not finite": lambda: torch.randn(3, 4) / 0,
    },
    "aten.randint": {"one more": lambda: torch.randint(0, 6, (3, 4)), "one less": lambda: torch.randint(0, 4, (3, 4))},
    "aten.randperm": {"with repeats": lambda: torch.randint(0, 6, (6,))},
    "aten.multinomial": {
        "the same for all": lambda: torch.randperm(6)[:3],
        "with repeats": lambda: torch.randint(0, 6, (3,)),
    },
    "aten.bernoulli": {
        "reversed": lambda: torch.bernoulli(P.flip(0)),
        "flat": lambda: torch.bernoulli(P * 0 + 0.5),
    },
    "aten.cauchy": {"normal": lambda: torch.randn(3, 4)},
    "aten.dropout": {
        "identity": lambda: X.clone(),
        "not scaled": lambda: 0.7 * dropout(X, 0.3),
        "too many": lambda: dropout(X, 0.5),
    },
}


@pytest.mark.parametrize("op", SAME)
def test_draws_of_one_distribution_agree(op: str) -> None:
    torch.manual_seed(0)
    assert random_draws.is_random(op, lambda: [SAME[op]()])
    assert random_draws.difference(op, lambda: [SAME[op]()], lambda: [SAME[op]()]) == ""


@pytest.mark.parametrize(("op", "other"), [(op, other) for op, others in OTHER.items() for other in others])
def test_draws_of_another_distribution_do_not(op: str, other: str) -> None:
    torch.manual_seed(0)
    assert random_draws.difference(op, lambda: [OTHER[op][other]()], lambda: [SAME[op]()]) != ""


def test_what_differs_once_by_chance_is_no_difference() -> None:
    torch.manual_seed(0)
    chance = iter([0.5] * random_draws.DRAWS + [0.0] * random_draws.DRAWS)
    assert (
        random_draws.difference("aten.randn", lambda: [torch.randn(3) + next(chance)], lambda: [torch.randn(3)]) == ""
    )


def test_what_is_never_drawn_counts_the_first_time() -> None:
    torch.manual_seed(0)
    ones = iter([1.0] + [0.0] * random_draws.DRAWS)
    found = random_draws.difference("aten.rand", lambda: [torch.rand(3).clamp(min=next(ones))], lambda: [torch.rand(3)])
    assert found == "1.0 is not below 1.0"


def test_what_draws_nothing_is_not_random() -> None:
    assert not random_draws.is_random("aten.dropout", lambda: [dropout(X, 0.5, training=False)])
