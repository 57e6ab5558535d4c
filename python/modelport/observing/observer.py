"""`InputObserver`: watch a model in use, and learn from its calls how to export it."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ..base.errors import problem
from .calls import InputCandidate, InputObserverInfo, Signature, is_symbolic, kept_outputs, stored_arguments
from .example import Example
from .layout import Batch
from .leaves import Choice
from .plan import Calls, Plan
from .relations import Relation
from .shapes import nested_shapes
from .tensor_copies import Kept, Store
from .watch import unwatched, watched

if TYPE_CHECKING:
    from ..exporters.onnx_program import OnnxProgram


class _Nothing:
    """Not asked yet."""


@dataclasses.dataclass
class _Export:
    """What was exported: the program, its file, the calls it is for (None: all), and how they were made alike."""

    program: weakref.ref[OnnxProgram]
    where: str | None
    calls: list[int] | None
    choices: dict[str, Choice]
    hidden: list[str]


class InputObserver:
    """Stores the first calls of a method and infers from them the arguments and dynamic shapes of an export.

    `value_if_missing` (or `missing`) says what an argument is in the calls that lack it: `{"pixel_values":
    torch.empty((0, 3, 896, 896))}`. It is seldom needed: by default a missing tensor is an empty one."""

    def __init__(
        self,
        value_if_missing: Mapping[str | int, Any] | None = None,
        missing: Mapping[str | int, Any] | None = None,
    ):
        self.value_if_missing: dict[str | int, Any] = {**(value_if_missing or {}), **(missing or {})}
        self.info: InputObserverInfo | None = None
        self._model: Any = None
        self._method_name = "forward"
        self._store = Store()
        self._lock = threading.RLock()
        self._exports: list[_Export] = []
        self._asked: Batch | type[_Nothing] = _Nothing  # the batch that the last dynamic shapes had
        self._more_rows = False  # an example had more rows than the calls

    @contextmanager
    def __call__(self, model: Any, store_n_calls: int = 3, method_name: str = "forward") -> Iterator[InputObserver]:
        """Stores the next `store_n_calls` calls of the method, on top of those stored before."""
        if store_n_calls < 1:
            raise problem("E0306", f"store_n_calls={store_n_calls} stores nothing", "store_n_calls=3")
        listener = _Listener(self, store_n_calls)
        with watched(model, method_name, listener):
            self._take(model, method_name)
            yield self

    def _take(self, model: Any, method_name: str) -> None:
        signature = Signature.of(unwatched(model, method_name))
        if self.info is not None and self.info.signature != signature:
            raise problem(
                "E0313",
                f"the observer holds calls of {self._method_name}, and {method_name} takes other arguments",
                "use an observer for each of them",
            )
        self.info = self.info or InputObserverInfo(signature)
        self._model, self._method_name = model, method_name

    def num_obs(self) -> int:
        """How many calls are stored."""
        return 0 if self.info is None else len(self.info)

    def infer_dynamic_shapes(self, set_batch_dimension_for: Batch = None) -> tuple[Any, ...] | dict[str, Any]:
        """Which axes change, as torch.export and modelport take it: those whose size differs between calls, and those
        that a missing tensor has nothing on. `set_batch_dimension_for` adds the batch: of the arguments named (by name
        or position), or with True of all. After `infer_arguments()` gave more rows than any call had, it is there
        unasked."""
        if set_batch_dimension_for is None and self._more_rows and self._asked is _Nothing:
            set_batch_dimension_for = True
        else:
            self._asked = set_batch_dimension_for
        return nested_shapes(self._inferred(set_batch_dimension_for))

    def infer_relations(self, set_batch_dimension_for: Batch = None) -> list[Relation]:
        """What held between the sizes of the axes in every call: `total_sequence_length == past_sequence_length +
        sequence_length`. `str(relation)` is that text."""
        return self._inferred(set_batch_dimension_for).layout.relations

    def infer_axes(self, set_batch_dimension_for: Batch = None) -> dict[str, list[int | None]]:
        """The names of the axes that change with their sizes in the calls; None where a call does not tell."""
        return {s.name: s.sizes for s in self._inferred(set_batch_dimension_for).layout.symbols.values()}

    def infer_arguments(
        self,
        index_or_args_or_kwargs: int | tuple[Any, ...] | Mapping[str, Any] | None = None,
        flat: bool = False,
        as_args_kwargs: bool = False,
        set_batch_dimension_for: Batch = None,
    ) -> Any:
        """Arguments for an export: an example in which every axis that changes is at least 2 long.

        With an index, those of that call, and with a tuple or a dict those given, with empty tensors for what they
        lack. `flat` gives the list of tensors, `as_args_kwargs` the pair (args, kwargs). Calls of a single row get
        more rows, for an export with a batch, unless dynamic shapes were inferred before without one."""
        if index_or_args_or_kwargs is None:
            plan = self._inferred(self._batch_of_example(set_batch_dimension_for))
            tensors = Example(plan).tensors
        elif isinstance(index_or_args_or_kwargs, int):
            plan = self._inferred(None)
            tensors = plan.tensors(self._index(index_or_args_or_kwargs))
        else:
            plan, tensors = self._aligned(index_or_args_or_kwargs)
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        if flat:
            return list(tensors.values())
        args, kwargs = plan.as_call(plan.named(plan.arguments(tensors)))
        if as_args_kwargs:
            return args, kwargs
        if args and kwargs:
            raise problem(
                "E0313",
                "the arguments are partly positional",
                "args, kwargs = observer.infer_arguments(as_args_kwargs=True)",
            )
        return args if args else kwargs

    def remove_inputs(self, names: Sequence[str | int]) -> None:
        """Forgets arguments in all stored calls."""
        info = self._stored()
        wanted = {info.signature.names[n] if isinstance(n, int) else n for n in names}
        unknown = wanted - {name for call in info.inputs for name in call.arguments}
        if unknown:
            raise problem(
                "E0313",
                f"no call has an argument {', '.join(sorted(map(repr, unknown)))}",
                f"they have: {', '.join(dict.fromkeys(n for call in info.inputs for n in call.arguments))}",
            )
        info.inputs = [call.without(wanted) for call in info.inputs]
        self._exports.clear()

    def export(
        self,
        path: str | os.PathLike[str] | None,
        config: Any = None,
        *,
        calls: Sequence[int] | None = None,
        set_batch_dimension_for: Batch = True,
    ) -> OnnxProgram:
        """Exports the observed method to ONNX: one graph for all stored calls, or for `calls`. What stands in for
        arguments that a call lacks is tried on the model: it has to give what it gave in that call. `config` is an
        OnnxConfig; without a path nothing is written."""
        from .exporting import export

        info = self._stored()
        which = range(len(info)) if calls is None else [self._index(call) for call in calls]
        chosen = Calls(info, list(which), self._if_missing(info))
        method = unwatched(self._model, self._method_name)
        program, plan = export(self._model, method, chosen, set_batch_dimension_for, path, config)
        where = None if path is None else os.path.realpath(path)
        self._exports = [made for made in self._exports if where is None or made.where != where]
        served = None if calls is None else chosen.which
        self._exports.append(_Export(weakref.ref(program), where, served, plan.layout.choices, list(plan.hidden)))
        return program

    def check_discrepancies(
        self,
        onnx_model: Any,
        atol: float = 1e-4,
        rtol: float = 0.1,
        hist: Sequence[float] = (0.1, 0.01),
        progress_bar: bool = False,
        include_io: bool = False,
        skip_none: bool = True,
    ) -> list[dict[str, Any]]:
        """Runs the stored calls in onnxruntime and compares with what they gave: one dict a call, for a DataFrame.

        `onnx_model` is a path, bytes, a ModelProto or an exporter's program. `SUCCESS` says whether the differences are
        within `atol` and `rtol`; the columns of `hist` count the elements that differ by more. `skip_none` passes over
        outputs that a call did not have."""
        from .discrepancies import Comparison, described

        info = self._stored()
        plan = self._plan_of(onnx_model)
        comparison = Comparison(onnx_model, plan)
        rows = []
        for call, number in enumerate(_progress(plan.calls.which, progress_bar)):
            compared = comparison.row(call, atol=atol, rtol=rtol, hist=hist, skip_none=skip_none)
            tensors = plan.tensors(call)
            row = {
                "index": number,
                **compared,
                "duration_torch": info.latencies[number],
                "n_inputs": len(comparison.inputs),
                "n_none": sum(leaf.tensors[call] is None for leaf in plan.inputs),
                "n_empty": sum(tensor.numel() == 0 for tensor in tensors.values()),
            }
            if include_io:
                row |= {"inputs": described(tensors), "outputs": described(plan.calls.outputs[call])}
            rows.append(row)
        return rows

    def _stored(self) -> InputObserverInfo:
        if self.info is None:
            raise problem("E0313", "no inputs were captured", "with observer(model): model(**inputs)")
        if not len(self.info):
            raise problem(
                "E0313",
                f"no inputs were captured: {type(self._model).__name__}.{self._method_name} was not called meanwhile",
                "observe the object that is called, which may be an inner one: with observer(model.base_model): ...",
            )
        return self.info

    def _index(self, call: int) -> int:
        count = len(self._stored())
        if not -count <= call < count:
            raise problem("E0313", f"there is no call {call}", f"calls 0 to {count - 1} are stored")
        return call % count

    def _inferred(self, batch: Batch) -> Plan:
        info = self._stored()
        calls = Calls(info, range(len(info)), self._if_missing(info))
        return Plan(calls, next(calls.choices()), batch)

    def _plan_of(self, onnx_model: Any) -> Plan:
        """For what was exported here the stand-ins that it was exported with, also for calls stored since."""
        where = os.path.realpath(onnx_model) if isinstance(onnx_model, str | os.PathLike) else None
        made = next((x for x in self._exports if x.program() is onnx_model or (where and x.where == where)), None)
        if made is None:
            return self._inferred(None)
        info = self._stored()
        calls = Calls(info, range(len(info)) if made.calls is None else made.calls, self._if_missing(info))
        plan = Plan(calls, next(calls.choices()) | made.choices)
        plan.hide(made.hidden)
        return plan

    def _batch_of_example(self, asked: Batch) -> Batch:
        if asked is not None:
            return asked
        if self._asked is not _Nothing:
            return self._asked  # type: ignore[return-value]
        rows = [s for s in self._inferred(True).layout.symbols.values() if s.is_batch and s.largest < 2]
        self._more_rows = bool(rows)
        return True if rows else None

    def _aligned(self, given: Any) -> tuple[Plan, dict[str, torch.Tensor]]:
        """Arguments from outside as one more call."""
        info = self._stored()
        args, kwargs = ((), given) if isinstance(given, Mapping) else (tuple(given), {})
        more = InputObserverInfo(info.signature)
        arguments = stored_arguments(info.signature, args, kwargs)
        constants = {n: v for n, v in info.inputs[0].cst_kwargs.items() if n not in arguments}
        more.inputs = [*info.inputs, InputCandidate(arguments | constants, not kwargs, lambda _name, t: Kept(t))]
        more.outputs = [*info.outputs, {}]
        calls = Calls(more, range(len(more)), self._if_missing(info))
        plan = Plan(calls, next(calls.choices()))
        return plan, plan.tensors(len(info))

    def _if_missing(self, info: InputObserverInfo) -> dict[str, Any]:
        names = info.signature.names
        values = {names[key] if isinstance(key, int) else key: v for key, v in self.value_if_missing.items()}
        unknown = [name for name in values if name.split(".")[0] not in names]
        if unknown and info.signature.more is None:
            raise problem(
                "E0313",
                f"value_if_missing has {', '.join(unknown)}, which the observed method does not take",
                f"it takes: {', '.join(names)}",
            )
        return values


class _Listener:
    """One `with observer(...)`: stores calls until it has as many as asked for."""

    def __init__(self, observer: InputObserver, most: int):
        self._observer = observer
        self._left = most

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> InputCandidate | None:
        observer = self._observer
        with observer._lock:
            if self._left <= 0 or observer.info is None or torch.compiler.is_compiling() or is_symbolic((args, kwargs)):
                return None
            self._left -= 1
            arguments = stored_arguments(observer.info.signature, args, kwargs)
            return InputCandidate(arguments, bool(args) and not kwargs, observer._store.keep)

    def after(self, ticket: InputCandidate | None, result: Any, seconds: float) -> None:
        observer = self._observer
        if ticket is None or observer.info is None:
            return
        with observer._lock:
            outputs = kept_outputs(observer._store, result)
            observer.info.inputs.append(ticket)
            observer.info.outputs.append(outputs)
            observer.info.latencies.append(seconds)

    def failed(self, ticket: InputCandidate | None) -> None:
        with self._observer._lock:
            self._left += ticket is not None


def _progress(items: Sequence[int], shown: bool) -> Any:
    if not shown:
        return items
    from tqdm import tqdm

    return tqdm(items)
