"""The list of ingredients, each with how often it is used."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder, Expression, Ingredient, NothingFits

EXPRESSIONS: list[tuple[float, Ingredient]] = []
STATEMENTS: list[tuple[float, Ingredient]] = []


def expression(weight: float = 1.0) -> Callable[[Ingredient], Ingredient]:
    def register(function: Ingredient) -> Ingredient:
        EXPRESSIONS.append((weight, function))
        return function

    return register


def statement(weight: float = 1.0) -> Callable[[Ingredient], Ingredient]:
    def register(function: Ingredient) -> Ingredient:
        STATEMENTS.append((weight, function))
        return function

    return register


def choose(b: Builder, among: list[tuple[float, Ingredient]]) -> Ingredient:
    return b.rng.choices([one for _, one in among], [weight for weight, _ in among])[0]


def any_expression(b: Builder) -> Expression:
    """One that has a value in the worlds."""
    for _ in range(20):
        try:
            made = choose(b, EXPRESSIONS)(b)
        except NothingFits:
            continue
        if "self.m" in made.text or b.agree(made.text):  # a module does not exist yet: the statement is tried
            return made
    raise NothingFits
