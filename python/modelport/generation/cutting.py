"""A model that sees or hears, cut in two places.

Producers, such as the method `get_image_features`, make rows of pictures or sound. The language model inside takes
embeddings among which the rows have been put. What lies before, between and after are the parts: each is run by running
the model's own code with other methods in these places."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..symbolic.replaced_attributes import replaced_here
from .features import Features, InMerge, InResult, Merges, rows_of
from .watching import Call, by_name, swapped


class DoesNotRun(Exception):
    """The model was run in a way in which it need not run, and failed."""


@dataclasses.dataclass(eq=False)
class Producer:
    """A method that works on pictures or sound alone, with its calls and what they gave for the example."""

    owner: torch.nn.Module
    method: str
    modality: str
    calls: list[Call] = dataclasses.field(default_factory=list)
    results: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Fixed:
    """What producers give, each for its calls in order, and what merges put among the embeddings, by number."""

    results: list[list[Any]]
    sources: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Cut:
    """`whole` with the arguments `call` reads the prompt: by way of the producers it gets to `stop`, a method that
    takes embeddings. `calls` are those that generate makes of `stepping`, the prompt first."""

    whole: Any
    call: Call
    stepping: Any
    calls: list[Call]
    stop: tuple[Any, str]
    producers: list[Producer]
    features: list[Features] = dataclasses.field(default_factory=list)
    _tries: bool = False

    @contextmanager
    def trying(self) -> Iterator[None]:
        """While it lasts, what the model raises is a DoesNotRun: it says nothing of the code around it."""
        before, self._tries = self._tries, True
        try:
            yield
        finally:
            self._tries = before

    def _run(self, function: Callable[..., Any], call: Mapping[str, Any]) -> Any:
        if not self._tries:
            return function(**call)
        try:
            return function(**call)
        except Exception as error:
            raise DoesNotRun(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error

    @property
    def hands_over(self) -> bool:
        """Whether generate itself makes the embeddings and hands them to a model inside."""
        return self.whole is not self.stepping

    @property
    def modalities(self) -> list[str]:
        return list(dict.fromkeys(one.modality for one in self.features))

    def as_it_was(self) -> Fixed:
        return Fixed([producer.results for producer in self.producers])

    def given(self, features: Mapping[str, torch.Tensor]) -> Fixed:
        """What producers gave, with these features in their places."""
        fixed = self.as_it_was()
        for one in self.features:
            if isinstance(one.place, InMerge):
                fixed.sources[one.place.number] = features[one.name]
            else:
                (result,) = fixed.results[one.place.producer]
                fixed.results[one.place.producer] = [one.place.put(result, features[one.name])]
        return fixed

    def reached(self, call: Mapping[str, Any], fixed: Fixed) -> Call:
        """What the language model is called with."""
        signature = inspect.signature(getattr(*self.stop))

        def reach(*args: Any, **kwargs: Any) -> Any:
            raise _Reached(by_name(signature, args, kwargs))

        with ExitStack() as stack:
            self._fix(stack, fixed)
            stack.enter_context(swapped(*self.stop, reach))
            return self._until_reached(call)

    def made(self, modality: str, call: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The features of a modality that this call makes. Those of the others are as they were."""
        wanted = {one.name: one for one in self.features if one.modality == modality}
        have: dict[str, torch.Tensor] = {}

        def got(name: str, value: torch.Tensor) -> None:
            have[name] = value
            if len(have) == len(wanted):
                raise _Reached({name: have[name] for name in wanted})

        def merge(number: int, source: torch.Tensor) -> torch.Tensor:
            for name, one in wanted.items():
                if isinstance(one.place, InMerge) and one.place.number == number:
                    got(name, rows_of(source))
            return source

        with ExitStack() as stack:
            for i, producer in enumerate(self.producers):
                method = _giving(producer.results)
                if producer.modality == modality:
                    places = {n: o.place for n, o in wanted.items() if isinstance(o.place, InResult)}
                    mine = {name: place for name, place in places.items() if place.producer == i}
                    method = _showing(getattr(producer.owner, producer.method), mine, got)
                stack.enter_context(swapped(producer.owner, producer.method, method))
            stack.enter_context(Merges(merge))
            # Models test that there is a row for each token that stands for one. This part has no tokens: those of the
            # example would pin the number of rows.
            for name in ("_check", "_check_tensor_all"):
                stack.enter_context(replaced_here(torch, name, lambda _original: lambda *_args, **_kwargs: None))
            return self._until_reached(call)

    def of_words(self, call: Mapping[str, Any]) -> Call:
        """What the language model is called with for text alone."""
        if self.hands_over:
            return {"inputs_embeds": self.stepping.get_input_embeddings()(call["input_ids"])}
        return self.reached(call, self.as_it_was())

    def entered(self, call: Mapping[str, Any], given: Mapping[str, Any], fixed: Fixed) -> Any:
        """What a step gives if the language model is called with other arguments than the tokens make."""
        if self.hands_over:
            return self._run(self.stepping, {n: v for n, v in call.items() if n != "input_ids"} | dict(given))
        forward = getattr(*self.stop)
        signature = inspect.signature(forward)

        def enter(*args: Any, **kwargs: Any) -> Any:
            return forward(**(by_name(signature, args, kwargs) | dict(given)))

        with ExitStack() as stack:
            self._fix(stack, fixed)
            stack.enter_context(swapped(*self.stop, enter))
            return self._run(self.stepping, call)

    def _fix(self, stack: ExitStack, fixed: Fixed) -> None:
        for producer, results in zip(self.producers, fixed.results, strict=True):
            stack.enter_context(swapped(producer.owner, producer.method, _giving(results)))
        stack.enter_context(Merges(lambda number, source: fixed.sources.get(number, source)))

    def step(self, call: Mapping[str, Any]) -> Any:
        """What the model gives for one of its calls."""
        return self._run(self.stepping, _with_copied_caches(call))

    def _until_reached(self, call: Mapping[str, Any]) -> Any:
        """Runs the model on the call. Caches are copied: nothing is left behind in them."""
        try:
            self._run(self.whole.generate if self.hands_over else self.whole, _with_copied_caches(call))
        except _Reached as reached:
            return reached.value
        raise DoesNotRun("the model did not get to the part that it called before")


class _Reached(BaseException):  # models catch Exception in places
    def __init__(self, value: Any):
        super().__init__()
        self.value = value


def _with_copied_caches(call: Mapping[str, Any]) -> Call:
    return {n: copy.deepcopy(v) if isinstance(v, Cache) else v for n, v in call.items()}


def _giving(results: list[Any]) -> Callable[..., Any]:
    """One result after the other."""
    following = iter(results)
    return lambda *_args, **_kwargs: next(following)


def _showing(
    method: Callable[..., Any], places: Mapping[str, InResult], got: Callable[[str, torch.Tensor], None]
) -> Callable[..., Any]:
    def show(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        for name, place in places.items():
            got(name, place.taken(result))
        return result

    return show
