"""What the inputs of products look like on given samples: by it weights in few bits are rounded (GPTQ).

The model runs as it is, and each product with one of its weights adds to the sum of outer products of its input. Sums
take as much memory as weights, so that the samples are gone through once for each part of them that fits; what a writer
needs goes to a file of its own, from which it is mapped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..base.errors import problem

_AT_ONCE = 2 << 30  # bytes of sums
_DAMPING = 0.01  # of the mean energy, added to the diagonal

Place = tuple[str, int, int]  # file, offset, columns
# Where products have their input and their weight, and whether rows of the weight are columns there.
_PRODUCTS = {
    torch.ops.aten.mm.default: (0, 1, True),
    torch.ops.aten.addmm.default: (1, 2, True),
    torch.ops.aten.linear.default: (0, 1, False),
}


class _Weight(NamedTuple):
    """As products see it: a row for each number that they give, whichever way round it is stored."""

    address: int
    rows: int
    columns: int

    @classmethod
    def of(cls, tensor: torch.Tensor, *, turned: bool = False) -> _Weight:
        rows, columns = tensor.shape[::-1] if turned else tensor.shape
        return cls(tensor.data_ptr(), rows, columns)


def _ways(tensor: torch.Tensor) -> list[_Weight]:
    if tensor.dim() != 2 or not tensor.is_floating_point():
        return []
    return [_Weight.of(tensor), _Weight.of(tensor, turned=True)]


class Facts(NamedTuple):
    """Those of one program: where they are by the names of its weights, in a file that `whole` keeps."""

    whole: InputFacts
    places: dict[str, Place]


class InputFacts:
    """Of the weights of a model, by their memory. The file lives as long as this."""

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self._known = {way for p in parameters for way in _ways(p)}
        self._folder = tempfile.TemporaryDirectory(prefix="modelport-inputs-")
        self._file = Path(self._folder.name) / "facts"
        self._places: dict[_Weight, Place] = {}

    def of(self, weights: Mapping[str, torch.Tensor]) -> Facts:
        """Those of these weights, as far as they were seen."""
        seen = {name: [way for way in _ways(tensor) if way in self._places] for name, tensor in weights.items()}
        places = {name: self._places[ways[0]] for name, ways in seen.items() if ways}
        return Facts(self, places)

    def measure(self, runs: list[Callable[[], Any]]) -> None:
        """Each of `runs` calls the model on a sample."""
        if not runs:
            raise problem("E0319", "there are no inputs for calibration", "calibration=[inputs, ...]")
        with _Sharing(set(self._known)) as sharing, torch.no_grad():
            runs[0]()
        for some in _parts(sharing.groups):
            sums = [_Sums(weights) for weights in some]
            with _Summing(sums), torch.no_grad():
                for run in runs:
                    run()
            for each in sums:
                self._write(each)

    def _write(self, sums: _Sums) -> None:
        order, energies, upper = sums.facts()
        with self._file.open("ab") as file:
            offset = file.tell()
            for tensor in (order.to(torch.int32), energies, upper):
                tensor.contiguous().numpy().tofile(file)
        for weight in sums.weights:
            self._places[weight] = (str(self._file), offset, weight.columns)


class _Watching(TorchDispatchMode):
    """Sees every product with a weight."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = _PRODUCTS.get(func)
        if place is not None:
            given, weight, turned = place
            if args[weight].dim() == 2:
                self.product(args[given], _Weight.of(args[weight], turned=turned))
        return func(*args, **(kwargs or {}))

    def product(self, given: torch.Tensor, weight: _Weight) -> None: ...


class _Sharing(_Watching):
    """Which weights one tensor is multiplied with: they share what is known of it."""

    def __init__(self, known: set[_Weight]):
        super().__init__()
        self._known = known
        self.groups: list[list[_Weight]] = []
        self._last: torch.Tensor | None = None  # held, so that its memory is nobody else's meanwhile

    def product(self, given: torch.Tensor, weight: _Weight) -> None:
        if weight not in self._known:
            return
        self._known.remove(weight)
        last = self._last
        if last is not None and last.data_ptr() == given.data_ptr() and last.numel() == given.numel():
            self.groups[-1].append(weight)
        else:
            self.groups.append([weight])
        self._last = given


class _Summing(_Watching):
    def __init__(self, sums: list[_Sums]):
        super().__init__()
        self._by_first = {each.weights[0]: each for each in sums}

    def product(self, given: torch.Tensor, weight: _Weight) -> None:
        if weight in self._by_first:
            self._by_first[weight].add(given.reshape(-1, weight.columns).float())


class _Sums:
    """Of the outer products of an input with itself."""

    def __init__(self, weights: list[_Weight]):
        self.weights = weights
        columns = weights[0].columns
        self._products, self._rows = torch.zeros(columns, columns), 0

    def add(self, given: torch.Tensor) -> None:
        self._products.addmm_(given.t(), given)
        self._rows += given.shape[0]

    def facts(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The columns with the largest inputs first, their energies, and the upper factor of the inverse in that
        order."""
        mean = self._products.div_(self._rows)
        energies = mean.diagonal().clone()
        if not bool(energies.isfinite().all()):
            what = "the inputs for calibration give values that are not finite"
            raise problem("E0319", what, "calibration=[inputs, ...] as the model takes them")
        order = energies.argsort(descending=True, stable=True)
        mean = mean[order][:, order]
        # Columns that are always zero say nothing of others.
        mean.diagonal().add_((energies[order] == 0).float())
        return order, energies, _factor_of_inverse(mean)


def _factor_of_inverse(products: torch.Tensor) -> torch.Tensor:
    """U with inverse = transpose(U) U. Few samples leave directions without an input, so that a little is added to
    the diagonal, and more where rounding asks for it."""
    plain = float(products.diagonal().mean())
    for damping in (_DAMPING, 0.1, 1.0):
        damped = products.double()
        damped.diagonal().add_(damping * plain)
        lower, failed = torch.linalg.cholesky_ex(damped)
        if int(failed) == 0:
            return torch.linalg.cholesky(torch.cholesky_inverse(lower), upper=True).float()
    raise problem(
        "E0319", "the inputs for calibration are too much alike, or too large, to round by", "more or other inputs"
    )


def _parts(groups: list[list[_Weight]]) -> Iterator[list[list[_Weight]]]:
    """As many groups at once as there is memory for, at least one."""
    part: list[list[_Weight]] = []
    room = _AT_ONCE
    for group in groups:
        needed = 4 * group[0].columns ** 2
        if part and needed > room:
            yield part
            part, room = [], _AT_ONCE
        part.append(group)
        room -= needed
    if part:
        yield part
