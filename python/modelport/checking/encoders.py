"""Encoders of an export for generation held against their model: what they make of pictures, sound or text is compared
with what the model makes on its way to the first token."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..base.errors import ExportError
from ..generation.features import InResult, Merges, candidates, rows_of
from ..generation.finding import FEATURES
from ..generation.watching import by_name, swapped
from ..values.tolerance import Tolerance
from .report import Row, Skipped
from .tolerance import row_of

Compared = Callable[[str, dict[str, int], Tolerance], tuple[list[Row], list[Skipped]]]


@contextmanager
def encoders_compared(loaded: Any, model: Any, prompt: Mapping[str, Any]) -> Iterator[Compared]:
    """While it lasts, the model has to read the prompt; what it gives then compares the files with what was seen."""
    parts = loaded._parts
    with ExitStack() as stack:
        if parts.encoder is not None:
            yield stack.enter_context(_of_encoder(loaded, model))
        elif parts.encoders.outputs:
            yield stack.enter_context(_of_features(parts, model, prompt))
        else:
            yield lambda *_: ([], [])


@contextmanager
def _of_encoder(loaded: Any, model: Any) -> Iterator[Compared]:
    """An encoder-decoder calls its encoder once: the file is run on the same."""
    encoder, calls = model.get_encoder(), []
    signature = inspect.signature(encoder.forward)

    def seen(_module: Any, args: Any, kwargs: Any, result: Any) -> None:
        calls.append((by_name(signature, args, kwargs), result[0].clone()))

    def compared(size: str, axes: dict[str, int], tolerance: Tolerance) -> tuple[list[Row], list[Skipped]]:
        if not calls:
            return [], [Skipped(size, axes, "the model did not call its encoder")]
        given, want = calls[0]
        try:
            got = loaded.get_encoder()(**given)[0]
        except ExportError:  # the comparison of tokens says so
            return [], []
        return [row_of(Row(size, axes, "encoder"), got, want, tolerance)], []

    handle = encoder.register_forward_hook(seen, with_kwargs=True)
    try:
        yield compared
    finally:
        handle.remove()


@contextmanager
def _of_features(parts: Any, model: Any, prompt: Mapping[str, Any]) -> Iterator[Compared]:
    """Features are somewhere among what modules and methods return and what is put among the embeddings. A tensor of
    their shape that is as good as equal is no accident."""
    try:
        made = {n: v for n, v in parts.encoders.made(dict(prompt)).items() if v.dim() > 1 and v.is_floating_point()}
    except ExportError:  # the comparison of tokens says so
        made = {}
    seen = _Seen({rows_of(value).shape for value in made.values()})

    def compared(size: str, axes: dict[str, int], tolerance: Tolerance) -> tuple[list[Row], list[Skipped]]:
        rows, skipped = [], []
        for name, got in made.items():
            tried = [row_of(Row(size, axes, name), rows_of(got), want, tolerance) for want in seen.like(rows_of(got))]
            if tried:
                rows.append(min(tried, key=lambda row: (not row.ok, row.absolute)))
            else:
                skipped.append(Skipped(size, axes, f"{name}: the model has no tensor of this shape"))
        return rows, skipped

    with ExitStack() as stack:
        if made:
            _watch(stack, model, seen)
        yield compared


def _watch(stack: ExitStack, model: Any, seen: _Seen) -> None:
    for place, module in model.named_modules():
        handle = module.register_forward_hook(lambda _m, _args, result, place=place: seen.look(place, result))
        stack.callback(handle.remove)
        for name in dir(type(module)):
            if FEATURES.fullmatch(name):
                method = getattr(module, name)
                stack.enter_context(swapped(module, name, _showing(method, f"{place}.{name}", seen)))

    def merged(number: Any, source: Any) -> Any:
        seen.look(f"merge {number}", source)
        return source

    stack.enter_context(Merges(merged))


def _showing(method: Callable[..., Any], place: str, seen: _Seen) -> Callable[..., Any]:
    def show(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        seen.look(place, result)
        return result

    return show


class _Seen:
    """Tensors that may be the features, by where they were seen: one for all pictures, or one for each."""

    def __init__(self, shapes: set[torch.Size]):
        self.shapes = shapes
        self.found: dict[str, list[torch.Tensor]] = {}

    def look(self, place: str, result: Any) -> None:
        for path in candidates(result):
            rows = InResult(0, path).taken(result)
            if any(rows.shape[-1] == shape[-1] and len(rows) <= shape[0] for shape in self.shapes):
                self.found.setdefault(f"{place} {path}", []).append(rows.clone())

    def like(self, made: torch.Tensor) -> Iterator[torch.Tensor]:
        for tensors in self.found.values():
            whole = torch.cat(tensors) if len({t.shape[-1] for t in tensors}) == 1 else tensors[0]
            yield from (tensor for tensor in [*tensors, whole] if tensor.shape == made.shape)
