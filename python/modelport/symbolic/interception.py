"""What Python code can do with tensors and symbols past the dispatcher, made visible to the recorder during a capture.

The replacements are process-wide while any capture runs, and act only in a thread that records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ..base import core
from ..base.core import (
    concerns_graph,
    enter_module,
    is_recording,
    leave_module,
    read_number,
    sym_constant,
    sym_is_ours,
    sym_reads_data,
    sym_round,
    sym_trunc,
)
from . import item_picture_rules  # noqa: F401 - its rules
from .item_rules import counted, made, widened
from .items import Item, of_rows
from .progressions import repeated_list
from .replaced_attributes import Replacements
from .rolled import Lengths, attention, cat, is_rolling, iterate, nonzero, note_loop, split, takes_all_items
from .shown_symbols import noted_strides, show
from .substitutes import note_use


class _Here(threading.local):
    exporting = False  # whether the model is to take its branches for exporters in this thread


_here = _Here()


class _ExportFlag:
    """A flag of torch that is set in threads that capture. torch has one for the process, and a model that runs in
    another thread meanwhile would take its branches for exporters, too."""

    def __init__(self, elsewhere: bool):
        self._elsewhere = elsewhere

    def __bool__(self) -> bool:
        return _here.exporting or bool(self._elsewhere)


def _plain_answer(original: Callable[[], Any]) -> Callable[[], bool]:
    """The functions that return such a flag: code computes with what they give (`is_compiling() | ...`)."""

    def asked() -> bool:
        return bool(original())

    return asked


@contextmanager
def intercepted(exporting: bool = True) -> Iterator[None]:
    """For one run of the model. With `exporting`, transformers and torch take their export-friendly branches in this
    thread."""
    outside, _here.exporting = _here.exporting, exporting
    try:
        with interception():
            yield
    finally:
        _here.exporting = outside


def interception() -> AbstractContextManager[None]:
    """Installs the replacements for the first who needs them, removes them after the last. They may stay between the
    runs of a capture: where nothing is recorded, they do nothing."""
    return _REPLACEMENTS.installed()


def _module_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """Which module is running, for the module path of each node."""

    def __call__(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not enter_module(self):
            return original(self, *args, **kwargs)
        try:
            return original(self, *args, **kwargs)
        finally:
            leave_module()

    return __call__


def _tolist(original: Callable[..., Any]) -> Callable[..., Any]:
    """Elements of a traced tensor become symbols, one each."""

    def tolist(self: torch.Tensor) -> Any:
        if not is_recording() or not concerns_graph(self):
            return original(self)
        if self.dim() == 0:
            return self.item()
        if self.dim() == 1 and not self.is_floating_point() and is_rolling(self):
            return Lengths(self, note_use)
        if isinstance(self.shape[0], torch.SymInt):
            if is_rolling(self) and takes_all_items(self.shape[0]):
                return [of_rows(self).tolist()]
            note_loop()
        return [tolist(row) for row in self.unbind(0)]

    return tolist


def _item(original: Callable[..., Any]) -> Callable[..., Any]:
    """A number read out of a traced tensor is a symbol."""

    def item(self: torch.Tensor) -> Any:
        return read_number(self) if is_recording() and concerns_graph(self) else original(self)

    return item


def _reads_data(original: Callable[..., Any]) -> Callable[..., Any]:
    """Code that takes the data away into numpy: the graph is right only for the same data."""

    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if is_recording() and concerns_graph(self) and self.numel() > 0:
            bool((self == core.real_tensor(self).detach().clone()).all())
        return shown(self, *args, **kwargs)

    shown = _shows_data(original)
    return read


def _shows_data(original: Callable[..., Any]) -> Callable[..., Any]:
    """Text for people: from the real tensor, and without a trace in the graph."""

    def show(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return original(self, *args, **kwargs)
        pause = core.Paused()
        try:
            return original(core.real_tensor(self), *args, **kwargs)
        finally:
            del pause

    return show


def _symbol_hash(original: Callable[..., Any]) -> Callable[..., Any]:
    """That of the number, so that a dict of plain numbers is found; the comparison that follows is the guard. Where
    nothing is found there is none: a number from data is pinned, and that a size was looked up is noted."""

    def __hash__(self: Any) -> int:
        if not sym_is_ours(self.node):
            return original(self)
        value = show(self)
        if sym_reads_data(self.node):
            bool(self == value)
        return hash(value)

    return __hash__


def _symbol_text(original: Callable[..., Any]) -> Callable[..., Any]:
    """The digits, not the name of the symbol. Nothing is pinned: models write messages of checks that hold."""

    def text(self: Any, *form: str) -> str:
        return format(show(self), *form) if sym_is_ours(self.node) else original(self, *form)

    return text


def _noted(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The method behind a builtin that gives plain numbers only: who calls the builtin is noted."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any) -> Any:
            if is_recording() and (not isinstance(self, torch.Tensor) or concerns_graph(self)):
                note_use(*names)
            return original(self)

        return method

    return make


def _float_trunc(original: Callable[..., Any]) -> Callable[..., Any]:
    def __trunc__(self: Any) -> Any:
        return torch.SymInt(sym_trunc(self.node)) if sym_is_ours(self.node) else original(self)

    return __trunc__


def _float_round(original: Callable[..., Any]) -> Callable[..., Any]:
    def __round__(self: Any, ndigits: int | None = None) -> Any:
        if not sym_is_ours(self.node):
            return original(self, ndigits)
        return torch.SymInt(sym_round(self.node)) if ndigits is None else round(float(self), ndigits)

    return __round__


def _plain_causal(original: Callable[..., Any]) -> Callable[..., Any]:
    """`q_len > 1 and mask is None` is a symbol when it is false, or an item, and attention takes only a bool."""

    def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
        if isinstance(kwargs.get("is_causal"), torch.SymBool | Item):
            kwargs["is_causal"] = bool(kwargs["is_causal"])
        return within_pieces(*args, **kwargs)

    within_pieces = attention(original)
    return scaled_dot_product_attention


def _plain_condition(original: Callable[..., Any]) -> Callable[..., Any]:
    """torch takes no condition but a bool; one on items holds for all of them or for none."""

    def check(condition: Any, *args: Any) -> None:
        original(bool(condition) if isinstance(condition, Item) else condition, *args)

    return check


def _open_one_hot(original: Callable[..., Any]) -> Callable[..., Any]:
    """The number of classes is a plain number in torch's schema: a symbol would be pinned."""

    def one_hot(tensor: Any, num_classes: Any = -1) -> Any:
        if not isinstance(num_classes, torch.SymInt):
            return original(tensor, num_classes)
        return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).to(torch.int64)

    return one_hot


def _tensor_of_symbols(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.tensor([batch, 4])` would read the symbols' values; it becomes a stack of scalars instead."""

    def tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_recording() or not _holds_symbols(data):
            return original(data, *args, **kwargs)
        kwargs.pop("requires_grad", None)
        kwargs.pop("pin_memory", None)
        return _stacked(data, kwargs.get("dtype"), kwargs.get("device"))

    return tensor


def _linspace_of_symbols(original: Callable[..., Any]) -> Callable[..., Any]:
    """The operator takes its number of steps as a plain number; from both ends, as torch does it."""

    def linspace(start: Any, end: Any, steps: Any, **kwargs: Any) -> torch.Tensor:
        if not is_recording() or not any(_holds_symbols(x) for x in (start, end, steps)) or "out" in kwargs:
            return original(start, end, steps, **kwargs)
        kwargs["dtype"] = kwargs.get("dtype") or torch.get_default_dtype()
        number = torch.arange(steps, **kwargs)
        step = (end - start) / torch.sym_max(steps - 1, 1)
        half = torch.sym_max(steps // 2, 1)  # a single step is the start
        return torch.where(number < half, number * step + start, end - (steps - 1 - number) * step)

    return linspace


def _as_tensor_of_symbols(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.as_tensor([height, width])` likewise; a tensor stays what it is."""
    from_symbols = _tensor_of_symbols(original)

    def as_tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        plain = isinstance(data, torch.Tensor) or bool(args)
        return original(data, *args, **kwargs) if plain else from_symbols(data, **kwargs)

    return as_tensor


def _holds_symbols(data: Any) -> bool:
    if isinstance(data, torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    if isinstance(data, torch.Tensor):
        return concerns_graph(data)
    return isinstance(data, list | tuple) and any(_holds_symbols(item) for item in data)


def _stacked(data: Any, dtype: torch.dtype | None, device: Any) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.detach().clone().to(dtype or data.dtype)
    if isinstance(data, list | tuple):
        rows = [_stacked(item, dtype, device) for item in data]
        if dtype is None and len({row.dtype for row in rows}) > 1:
            common = rows[0].dtype
            for row in rows[1:]:
                common = torch.promote_types(common, row.dtype)
            rows = [row.to(common) for row in rows]
        return torch.stack(rows)
    if dtype is None:
        dtype = torch.float32 if isinstance(data, float | torch.SymFloat) else torch.int64
        dtype = torch.bool if isinstance(data, bool | torch.SymBool) else dtype
    return torch.full((), data, dtype=dtype, device=device)


def _without_leftovers(original: Callable[..., Any]) -> Callable[..., Any]:
    """New memory holds what was in it before. A graph that writes into it would have that as a constant: files would
    differ from run to run, and tell what else the process had in memory."""

    def make(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if is_recording() and not concerns_graph(made):
            made.detach().zero_()
        return made

    return make


def _magnitude(_original: Any) -> Callable[..., Any]:
    """What `abs` asks of a symbol: torch's own nodes have it, and its binding of ours does not."""

    def magnitude(node: Any) -> Any:
        number = torch.SymInt(node) if node.is_int() else torch.SymFloat(node)
        return torch.sym_max(number, -number).node

    return magnitude


def _quotient_and_rest(_original: Any) -> Callable[..., Any]:
    """`divmod` of symbols, which torch leaves out."""
    return lambda number, by: (number // by, number % by)


def _plain_value(_original: Any) -> Callable[..., Any]:
    """The accessors of a symbol's constant value, which torch gives to its own symbols only."""
    return lambda node: sym_constant(node)


_REPLACEMENTS = Replacements(
    [
        (torch.nn.Module, "__call__", _module_call),
        (torch.Tensor, "item", _item),
        (torch.Tensor, "tolist", _tolist),
        (torch.Tensor, "numpy", _reads_data),
        (torch.Tensor, "__array__", _reads_data),
        (torch.Tensor, "is_contiguous", noted_strides),
        (torch.Tensor, "stride", noted_strides),
        (torch.Tensor, "expand", widened),
        (torch, "_check", _plain_condition),
        (torch.Tensor, "__repr__", _shows_data),
        (torch.Tensor, "__format__", _shows_data),
        (torch._C._SymNode, "maybe_as_int", _plain_value),
        (torch._C._SymNode, "maybe_as_float", _plain_value),
        (torch._C._SymNode, "maybe_as_bool", _plain_value),
        (torch._C._SymNode, "abs", _magnitude),
        (torch.SymInt, "__hash__", _symbol_hash),
        (torch.SymInt, "__mul__", repeated_list(note_use)),
        (torch.SymInt, "__rmul__", repeated_list(note_use)),
        (torch.SymInt, "__divmod__", _quotient_and_rest),
        (torch.SymInt, "__rdivmod__", lambda _original: lambda by, number: (number // by, number % by)),
        (torch.SymFloat, "__hash__", _symbol_hash),
        (torch.SymInt, "__repr__", _symbol_text),
        (torch.SymFloat, "__repr__", _symbol_text),
        (torch.SymInt, "__format__", _symbol_text),
        (torch.SymFloat, "__format__", _symbol_text),
        (torch.SymInt, "__int__", _noted("int")),
        (torch.SymInt, "__index__", _noted("range", "np")),
        (torch.SymFloat, "__int__", _noted("int")),
        (torch.Tensor, "__int__", _noted("int")),
        (torch.Tensor, "__len__", _noted("len")),
        (torch.Tensor, "__iter__", lambda original: iterate(original, note_use)),
        (torch.Tensor, "nonzero", nonzero),
        (torch.SymBool, "__bool__", _noted("min", "max")),
        (torch.SymFloat, "__trunc__", _float_trunc),
        (torch.SymFloat, "__round__", _float_round),
        (torch.nn.functional, "scaled_dot_product_attention", _plain_causal),
        (torch.nn.functional, "one_hot", _open_one_hot),
        (torch, "tensor", _tensor_of_symbols),
        (torch, "as_tensor", _as_tensor_of_symbols),
        (torch, "linspace", _linspace_of_symbols),
        (torch, "ones", made),
        (torch, "zeros", made),
        (torch, "empty", _without_leftovers),
        (torch, "empty_like", _without_leftovers),
        (torch.Tensor, "new_empty", _without_leftovers),
        (torch, "full", made),
        (torch, "arange", counted),
        (torch, "split", split),
        (torch.Tensor, "split", split),
        (torch, "cat", cat),
        (torch.compiler, "_is_exporting_flag", _ExportFlag),
        (torch.compiler, "_is_compiling_flag", _ExportFlag),
        (torch.compiler, "is_exporting", _plain_answer),
        (torch.compiler, "is_compiling", _plain_answer),
    ]
)
