"""Relations between sizes that held in every call: total = past + sequence, features = 4 * images."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

_ENOUGH = 3  # different observations before a relation with a free number is believed


@dataclasses.dataclass(frozen=True)
class Relation:
    """How one size follows from others. `kind` is "sum" (of the terms), "times", "plus" or "min" (with the number)."""

    name: str
    kind: str
    terms: tuple[str, ...]
    number: int = 0

    def size(self, sizes: Mapping[str, int]) -> int:
        values = [sizes[term] for term in self.terms]
        if self.kind == "sum":
            return sum(values)
        if self.kind == "times":
            return self.number * values[0]
        return values[0] + self.number if self.kind == "plus" else min(values[0], self.number)

    def __str__(self) -> str:
        first = self.terms[0]
        if self.kind == "sum":
            right = " + ".join(self.terms)
        elif self.kind == "times":
            right = f"{self.number} * {first}"
        elif self.kind == "plus":
            right = f"{first} {'+' if self.number > 0 else '-'} {abs(self.number)}"
        else:
            right = f"min({first}, {self.number})"
        return f"{self.name} == {right}"


def _known(row: Sequence[int | None]) -> list[int]:
    return [size for size in row if size is not None]


def relations(sizes: Mapping[str, Sequence[int | None]]) -> list[Relation]:
    """For each size that follows from others, how. A size that others follow from follows from none itself."""
    found: list[Relation] = []
    for candidate in _candidates({name: known for name, row in sizes.items() if len(known := _known(row)) == len(row)}):
        followers = {relation.name for relation in found}
        terms = {term for relation in found for term in relation.terms}
        if candidate.name not in followers | terms and not followers & set(candidate.terms):
            found.append(candidate)
    return found


def _candidates(rows: Mapping[str, list[int]]) -> Iterator[Relation]:
    """Those with less freedom first: they are less likely to hold by accident."""
    pairs = list(itertools.permutations(rows, 2))
    for name in rows:
        for one, other in itertools.combinations([n for n in rows if n != name], 2):
            if rows[name] == [a + b for a, b in zip(rows[one], rows[other], strict=True)]:
                yield Relation(name, "sum", (one, other))
    for name, term in pairs:
        factor = max(rows[name]) // max(max(rows[term]), 1)
        if factor > 1 and rows[name] == [factor * size for size in rows[term]]:
            yield Relation(name, "times", (term,), factor)
    for name, term in pairs:
        most = max(rows[name])
        beyond = {size for size in rows[term] if size > most}
        if len(beyond) > 1 and rows[name] == [min(size, most) for size in rows[term]]:
            yield Relation(name, "min", (term,), most)
    for name, term in pairs:
        apart = rows[name][0] - rows[term][0]
        same = all(a - b == apart for a, b in zip(rows[name], rows[term], strict=True))
        if same and apart > 0 and len(set(rows[term])) >= _ENOUGH:
            yield Relation(name, "plus", (term,), apart)


def difference(numbers: Sequence[int | None], sizes: Mapping[str, Sequence[int | None]]) -> tuple[str, str] | None:
    """A number that follows sizes: ("past", "") where it is one of them, ("total", "sequence") where it is what is left
    of one without the other. None where it follows neither."""

    def fits(row: Sequence[int | None]) -> bool:
        known = [(a, b) for a, b in zip(numbers, row, strict=True) if a is not None]
        return all(a == b for a, b in known)

    for name, row in sizes.items():
        if fits(row):
            return name, ""
    for one, other in itertools.permutations(sizes, 2):
        pairs = list(zip(sizes[one], sizes[other], strict=True))
        if fits([None if a is None or b is None else a - b for a, b in pairs]):
            return one, other
    return None
