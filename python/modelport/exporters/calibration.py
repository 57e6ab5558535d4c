"""What is measured on given inputs before weights get few bits: ranges of the inputs of products, for exports that
round them by fixed ranges, or what these inputs have in common, for those that round weights by it."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..base.errors import problem
from ..runtimes.sessions import quiet_session
from .input_facts import InputFacts
from .quantization import names_of_weights

_LOW, _HIGH = "modelport.Min.", "modelport.Max."
_STEPS = 16  # tokens that an encoder-decoder writes where samples have none for its decoder


def calibrated(config: Any, example: Mapping[str, Any], lower: Callable[[Any], Any]) -> Any:
    """The config with the ranges that it needs. `lower` gives the program of a config."""
    how = config.quantization
    if how is None or how.form != "static" or how.ranges is not None:
        return config
    if config.calibration is None:
        what = "inputs are rounded by the ranges that the example alone has; better ones take calibration=[inputs, ...]"
        warnings.warn(what, stacklevel=4)
    measuring = lower(dataclasses.replace(config, quantization=dataclasses.replace(how, form="measured")))
    samples = list(samples_of(config.calibration, example))
    ranges = _measured(measuring, samples)
    return dataclasses.replace(config, quantization=dataclasses.replace(how, ranges=ranges), calibration=samples)


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


def settled(programs: Mapping[str, Any], model: Callable[[], torch.nn.Module], *, is_whole: bool = False) -> None:
    """Programs as they were lowered get what their weights are rounded by. `model` gives the model that computes with
    the weights of all of them; one that `is_whole` has them under the names of a single program."""
    few = [program for program in programs.values() if program.quantization is not None]
    by_layers: dict[Any, list[Any]] = {}  # which are those of all parts, or of each
    for program in few:
        by_layers.setdefault(frozenset(program.quantization.layers.items()), []).append(program)
    for layers, parts in by_layers.items():
        if layers:
            parts[0].quantization.refuse_unmatched(name for program in parts for name in _names_of_matrices(program))
    rounded = [program for program in few if program.quantization.method == "gptq" and program.facts is None]
    if not rounded:
        return
    calibration = next((p.config.calibration for p in rounded if p.config.calibration is not None), None)
    if calibration is None:
        what = "method='gptq' rounds weights by what the model computes on inputs, and none are given"
        raise problem("E0319", what, "calibration=[inputs, ...]", "--calibration FILE", "method='search' needs none")
    whole = model()
    state = whole.state_dict(keep_vars=True)
    facts = InputFacts(state.values())
    facts.measure([_run_of(whole, sample) for sample in samples_of(calibration, {})])
    for program in rounded:
        own = program.captured.lazy_program.weights()
        program.facts = facts.of({name: state[name] for name in own if name in state} if is_whole else own)


def _names_of_matrices(program: Any) -> Iterator[str]:
    lazy = program.captured.lazy_program
    names = names_of_weights(lazy)
    for weight, tensor in lazy.weights().items():
        if tensor.dim() > 1:
            yield from names[weight]


def _run_of(model: Any, sample: Mapping[str, Any]) -> Callable[[], Any]:
    """The model on a sample. What an encoder-decoder writes itself will do for its decoder."""
    given = dict(sample)
    has_decoder = getattr(getattr(model, "config", None), "is_encoder_decoder", False) and model.can_generate()
    if has_decoder and not {"decoder_input_ids", "labels"} & given.keys():
        return functools.partial(model.generate, **given, max_new_tokens=_STEPS, do_sample=False, num_beams=1)
    return functools.partial(model, **given)
