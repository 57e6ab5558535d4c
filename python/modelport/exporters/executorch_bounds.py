"""How large each dynamic axis may become in an ExecuTorch program, whose memory is set aside before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..base.errors import ExportError, problem
from ..models.context_length import context_length
from .configs import ExecutorchConfig
from .onnx_names import AXES, axis_names

# What a model with long positions is planned for where nobody says more: attention takes the square of it.
_SEQUENCE = 2048
# What a program may set aside where nobody asked for more. The runtime takes all of it when it loads the file.
_ARENA_BYTES = 512 << 20
# What no program may set aside: nothing that runs it could load it.
_LARGEST_ARENA_BYTES = 64 << 30
_OURS = {theirs: ours for ours, theirs in AXES.items()}


class Bound(NamedTuple):
    """The sizes of an axis, and where the largest comes from."""

    axis: str
    low: int
    high: int
    why: str
    asked: bool = False
    example: int = 1

    @property
    def least_high(self) -> int:
        """What it falls to at most, where memory asks for it: twice the example; not at all if it was asked for."""
        return max(self.high if self.asked else max(2 * self.example, self.low), 1)

    def __str__(self) -> str:
        change = f'dims={{"{self.axis}": ({self.low}, N)}}, or --dims {self.axis}={self.low}:N, takes another'
        return f"axis {self.axis} is at most {self.high}: {self.why}" + ("" if self.asked else f"; {change}")


def one_name_an_axis(program: Any) -> dict[str, str]:
    """Axes of inputs that belong together, such as those of a mask and its tokens, under one name."""
    named = axis_names(program.dims(), program.inputs())
    ours = {symbol: _OURS.get(name, name) for symbol, name in named.items()}
    return {symbol: name for symbol, name in ours.items() if symbol != name}


def bounds_of(dims: Iterable[Mapping[str, Any]], asked: ExecutorchConfig, config: Any) -> list[Bound]:
    """A bound for each axis of `dims`, the dimensions of a program. Sizes that data decides have one only where it is
    asked for: the writer finds the others, or says which are missing. `config` is the model's, or None."""
    rows, side, max_seq_len = list(dims), asked.image_size, asked.max_seq_len
    given = _checked(asked.dims or {}, [row["name"] for row in rows])
    bounds = []
    for row in rows:
        axis, least = row["name"], max(row["lo"], 0)
        if axis in given:
            low, high = given[axis]
            if (row["hi"] is not None and low > row["hi"]) or high < least:
                what = f'dims={{"{axis}": ({low}, {high})}}: the model takes {_range(least, row["hi"])} there'
                raise problem("E0303", what, "choose sizes among these")
            bounds.append(Bound(axis, max(low, least), _least(high, row["hi"]), "as asked for", asked=True))
        elif side is not None and row["hint"] == side and not row["from_data"] and not _is_sequence(axis):
            bounds.append(Bound(axis, side, side, "image_size", asked=True))
        elif not row["from_data"]:
            high, why = _default(row, max_seq_len, config)
            high = _least(max(high, row["hint"], least), row["hi"])
            is_asked = _is_sequence(axis) and max_seq_len is not None
            bounds.append(Bound(axis, least, high, why, is_asked, row["hint"]))
    return bounds


def within_memory(bounds: list[Bound], arena_of: Callable[[dict[str, int]], int]) -> list[Bound]:
    """The bounds, smaller where nobody asked for them and the program would set aside more memory than it should.
    `arena_of` gives the bytes that it sets aside for sizes by axis."""
    bounds = list(bounds)
    while not _fits({bound.axis: bound.high for bound in bounds}, arena_of):
        room = [bound.high / bound.least_high for bound in bounds]
        if max(room, default=1) <= 1:
            break
        at = room.index(max(room))  # the axis that has the most room over its example gives way
        why = f"more would set aside over {_ARENA_BYTES >> 20} MiB"
        bounds[at] = bounds[at]._replace(high=max(bounds[at].high // 2, bounds[at].least_high), why=why)
    _check_loadable(bounds, arena_of({bound.axis: bound.high for bound in bounds}))
    return bounds


def _check_loadable(bounds: list[Bound], bytes_set_aside: int) -> None:
    if bytes_set_aside <= _LARGEST_ARENA_BYTES:
        return
    sizes = ", ".join(f"{bound.axis} up to {bound.high}" for bound in bounds)
    raise problem(
        "E0303",
        f"the program would set aside {bytes_set_aside >> 30:,} GiB when it is loaded, for {sizes}",
        "give dynamic axes smaller bounds: dims={...}, or --dims AXIS=1:N",
        "export it for the sizes of the example alone: dynamic=False, or --disable_dynamic_shapes",
    )


def _fits(sizes: dict[str, int], arena_of: Callable[[dict[str, int]], int]) -> bool:
    try:
        return arena_of(sizes) <= _ARENA_BYTES
    except ExportError as error:
        if error.code != "E0102":  # larger than any file can be
            raise
        return False


def longest_sequence(max_seq_len: int | None, config: Any) -> int:
    """What a cache holds: as asked for, or the positions that the model has up to a default."""
    if max_seq_len is not None:
        return max_seq_len
    return min(context_length(config) or _SEQUENCE, _SEQUENCE)


def _default(row: Mapping[str, Any], max_seq_len: int | None, config: Any) -> tuple[int, str]:
    if row["declared_hi"] is not None:
        return row["declared_hi"], "the largest of its dynamic shape"
    if _is_sequence(row["name"]):
        if max_seq_len is not None:
            return max_seq_len, "max_seq_len"
        positions = context_length(config)
        if positions is not None and 2 * row["hint"] <= positions <= _SEQUENCE:
            return positions, "max_position_embeddings of the model"
        if positions is not None and positions > _SEQUENCE:
            return _SEQUENCE, f"a default, of the {positions} positions that the model has"
        if 4 * row["hint"] < _SEQUENCE:
            return _SEQUENCE, "a default"
    return 1 << (4 * max(row["hint"], 1) - 1).bit_length(), f"four times the example's {row['hint']}, rounded up"


def _is_sequence(axis: str) -> bool:
    return "seq" in axis


def _checked(asked: Mapping[str, Any], axes: list[str]) -> dict[str, tuple[int, int]]:
    found = {}
    for name, sizes in asked.items():
        axis = name if name in axes else _OURS.get(name, name)
        if axis not in axes:
            has = f"it has: {', '.join(axes)}" if axes else "leave dims out: every size is that of the example"
            raise problem("E0303", f"dims names the axis {name!r}, which the program does not have", has)
        pair = (1, sizes) if isinstance(sizes, int) else sizes
        numbers = isinstance(pair, tuple | list) and len(pair) == 2 and all(type(size) is int for size in pair)
        if not numbers or not 0 <= pair[0] <= pair[1]:
            what = f"dims={{{name!r}: {sizes!r}}} is no smallest and largest size"
            raise problem("E0303", what, f'dims={{"{name}": (1, 2048)}}')
        found[axis] = (pair[0], pair[1])
    return found


def _least(size: int, limit: int | None) -> int:
    return size if limit is None else min(size, limit)


def _range(low: int, high: int | None) -> str:
    return f"{low} and more" if high is None else f"{low} to {high}"
