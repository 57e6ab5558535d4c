"""One row of the zoo: a tiny model of one architecture and its inputs at three sizes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers


@dataclass(frozen=True)
class Size:
    """How large the inputs are. A family reads the fields that it knows and leaves the rest."""

    batch: int
    seq: int = 7
    target: int = 6
    past: int = 5
    height: int = 64
    width: int = 96
    frames: int = 4
    samples: int = 1000


# The numbers of the example differ from each other and from the widths of the tiny configs (16,
# 32, 64, 99 ...), so that an axis unified with the wrong one shows at the other two sizes.
EXAMPLE = Size(batch=3)
LARGER = Size(batch=4, seq=11, target=8, past=9, height=96, width=128, frames=6, samples=1403)
SMALLER = Size(batch=2, seq=5, target=4, past=3, height=96, width=64, frames=4, samples=807)
SIZES = (EXAMPLE, LARGER, SMALLER)

# Images have three channels, so a batch of three would hide an axis mistaken for another.
IMAGES = (
    Size(batch=2),
    Size(batch=4, seq=11, height=96, width=128, frames=6),
    Size(batch=5, seq=6, height=128, width=64, frames=4),
)

# For architectures that fix everything but the batch.
BATCHES = (Size(batch=2), Size(batch=4), Size(batch=5))


@dataclass
class Draw:
    """What an input maker works with: the configuration, the size, a seeded generator."""

    config: Any
    size: Size
    rng: torch.Generator

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.rng)

    def picture(self, *shape: int) -> torch.Tensor:
        """Noise around a colour of its own for each image, which a pooling does not level out."""
        return self.normal(*shape) + self.normal(*shape[:-2], 1, 1)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self.rng)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=self.rng)


Inputs = dict[str, Any]
Make = Callable[[Draw], Inputs]


@dataclass(frozen=True)
class Row:
    """`name` is the model type, followed by what is special where one type has several rows."""

    name: str
    kind: str
    model_class: str
    config: Mapping[str, Any] | Callable[[], Any]
    make: Make
    sizes: tuple[Size, Size, Size] = SIZES

    def __str__(self) -> str:
        return self.name

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode())

    def make_config(self) -> Any:
        if callable(self.config):
            return self.config()
        return getattr(transformers, self.model_class).config_class(**self.config)

    def build(self) -> tuple[torch.nn.Module, Inputs]:
        """The model in eval mode with its random weights, and its inputs at the example size."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            model = getattr(transformers, self.model_class)(self.make_config())
            enliven(model)
        settle(model.eval(), self.inputs(1))
        return model, self.inputs(0)

    def inputs(self, which: int = 0) -> Inputs:
        """The inputs at `sizes[which]`: 0 is the example, 1 and 2 are the further sizes."""
        rng = torch.Generator().manual_seed(self.seed + which)
        return self.make(Draw(self.make_config(), self.sizes[which], rng))


def enliven(model: torch.nn.Module) -> None:
    """Spread the weights so that a wrong graph gives visibly wrong values.

    Initial weights have a deviation of 0.02, and biases and scales are constants: at these widths
    each layer would add next to nothing to its residual, a signal would fade on its way through
    the convolutions, and a dropped bias would not be seen.
    """
    with torch.no_grad():
        for weight in model.parameters():
            if not weight.is_floating_point() or weight.numel() < 2:
                continue
            wanted = (2 * len(weight) / weight.numel()) ** 0.5  # keeps the variance through a ReLU
            if weight.std() < 1e-6:  # a constant
                weight.add_(torch.randn_like(weight), alpha=0.1)
            elif weight.ndim >= 2:
                weight.mul_(max(1.0, wanted / weight.square().mean().sqrt().item()))
        for name, buffer in model.named_buffers():
            if name.endswith(("codebook.embed", "codebook.embed_sum")):  # codecs learn them apart
                buffer.copy_(torch.randn_like(buffer))


def settle(model: torch.nn.Module, inputs: Inputs) -> None:
    """Give batch norms the statistics of one run, as training would have: else signals fade."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    with torch.no_grad():
        for norm in norms:
            norm.weight.add_(1 - norm.weight.mean())  # some scales start at zero
            norm.momentum = 1.0
            norm.train()
        model(**inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        norm.eval()
