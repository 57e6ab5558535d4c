"""The state of one making of inputs: the model that they are for, the sizes, the choices taken, the seeded draw."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, field
from typing import Any

import torch

from ..models.locks import building_alone
from .facts import Facts

Options = dict[str, list[Any]]

_CHEAP = 50_000_000  # weights that take less than a second to initialise


@dataclass(frozen=True)
class Sizes:
    """How large the inputs are. They differ from each other, so that a capture keeps their axes apart."""

    batch: int = 2
    sequence: int = 7
    target: int = 5
    regions: int = 6  # of an image: boxes, points
    rows: int = 0  # of an image, in steps beyond the configured size
    columns: int = 1
    odd: int = 0  # further pixels, which no stride divides
    frames: int = 0  # of a clip, beyond the configured number
    sound: float = 1.0  # times the shortest useful length


class Subject:
    """The model, or its class and config; built from them only where a question needs a run."""

    image_size: int | None = None  # the side that images are to have

    def __init__(self, model_or_class: Any, config: Any, preprocessor: dict[str, Any] | None):
        self.given = None if isinstance(model_or_class, type) else model_or_class
        self.cls = model_or_class if self.given is None else type(model_or_class)
        self.config = config if config is not None else model_or_class.config
        self.facts = Facts(self.config, preprocessor)
        self._built: Any = None
        signature = inspect.signature(self.cls.forward)
        variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        self.parameters = {
            name: parameter.default is parameter.empty
            for name, parameter in signature.parameters.items()
            if name != "self" and parameter.kind not in variadic
        }

    @property
    def model(self) -> Any:
        if self.given is not None:
            return self.given
        if self._built is None:
            from transformers.initialization import no_init_weights

            # Weights without values take no memory until they are written, and shapes are what is asked of the model.
            with building_alone(), torch.random.fork_rng(devices=[]), no_init_weights():
                self._built = self.cls(copy.deepcopy(self.config)).eval()
            if self._built.num_parameters() < _CHEAP:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)
                    self._built.init_weights()
        return self._built

    def settings(self) -> tuple[torch.device, torch.dtype]:
        """Where the model computes, and in which type."""
        if self.given is not None:
            first = next((p for p in self.given.parameters() if p.is_floating_point()), None)
            if first is not None:
                return first.device, first.dtype
        if self._built is not None:
            return torch.device("cpu"), self._built.dtype
        return torch.device("cpu"), torch.get_default_dtype()


@dataclass
class Making:
    subject: Subject
    sizes: Sizes
    plan: dict[str, Any]
    seed: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # placeholders a row, where the model has said so
    made: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = torch.Generator().manual_seed(self.seed)

    @property
    def facts(self) -> Facts:
        return self.subject.facts

    def takes(self, name: str) -> bool:
        return name in self.subject.parameters

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.rng)

    def picture(self, *shape: int) -> torch.Tensor:
        """Noise around a colour of its own for each image, which a pooling does not level out."""
        return self.normal(*shape) + self.normal(*shape[:-2], 1, 1)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self.rng)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, max(high, low + 1), shape, generator=self.rng)
