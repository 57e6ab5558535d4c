"""Ranges of the inputs of products, measured on given inputs, for exports that round them by fixed ranges."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import problem
from ..runtimes.sessions import quiet_session

_LOW, _HIGH = "modelport.Min.", "modelport.Max."


def calibrated(config: Any, example: Mapping[str, Any], lower: Callable[[Any], Any]) -> Any:
    """The config with the ranges that it needs. `lower` gives the program of a config."""
    how = config.quantization
    if how is None or how.form != "static" or how.ranges is not None:
        return config
    if config.calibration is None:
        what = "inputs are rounded by the ranges that the example alone has; better ones take calibration=[inputs, ...]"
        warnings.warn(what, stacklevel=4)
    measuring = lower(dataclasses.replace(config, quantization=dataclasses.replace(how, form="measured")))
    ranges = _measured(measuring, samples_of(config.calibration, example))
    return dataclasses.replace(config, quantization=dataclasses.replace(how, ranges=ranges), calibration=None)


def samples_of(calibration: Any, example: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Inputs of the model: those given, those that an InputObserver saw, or the example."""
    if calibration is None:
        yield example
    elif hasattr(calibration, "infer_arguments"):
        yield from (calibration.infer_arguments(i) for i in range(calibration.num_obs()))
    else:
        yield from calibration


def _measured(program: Any, samples: Iterable[Mapping[str, Any]]) -> tuple[tuple[float, float], ...]:
    names = [name for name in program.graph.outputs() if name.startswith((_LOW, _HIGH))]
    low, high = np.full(len(names) // 2, np.inf), np.full(len(names) // 2, -np.inf)
    with tempfile.TemporaryDirectory() as folder:
        program.write(Path(folder) / "model.onnx")
        session = quiet_session(Path(folder) / "model.onnx")
        for sample in samples:
            found = np.array(session.run(names, program.feeds(dict(sample))), dtype=np.float64)
            low, high = np.minimum(low, found[0::2]), np.maximum(high, found[1::2])
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        what = "the inputs for calibration give values that are not finite, or there are none"
        raise problem("E0319", what, "calibration=[inputs, ...] as the model takes them")
    return tuple(zip(low.tolist(), high.tolist(), strict=True))
