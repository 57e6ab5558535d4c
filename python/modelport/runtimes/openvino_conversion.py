"""From an ONNX file to an OpenVINO model, by OpenVINO's own reader; caches and buffers become state of the model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact, further_outputs
from ..artifacts.ir import BEAMS
from ..base.errors import problem
from .openvino import core

_PAST = re.compile("past_key_values|past")
_SMALL = 64  # numbers of a weight that is not worth it
_PIECE = 1 << 22  # numbers that are looked at at once
_ENCODER = ".encoder."  # in the name of a cache that is made of the encoder's output


def convert(onnx: Path, *, stateful: bool = True) -> Any:
    """An openvino.Model of a file that is ours to change: what the model assumed of its data becomes outputs. With
    `stateful`, it keeps its cache itself, as optimum-intel writes models that generate."""
    artifact = Artifact(onnx)
    checks = [check["output"] for check in artifact.limits.checks] if artifact.limits else []
    if checks:
        with onnx.open("ab") as file:
            file.write(further_outputs(checks))
    try:
        model = core().read_model(os.fspath(onnx))
    except Exception as error:  # its reader throws what it likes
        text = " ".join(str(error).split())
        what = f"OpenVINO does not read the model: {text[-600:]}"
        raise problem("E0203", what, "export to onnx: modelport export onnx MODEL OUT") from error
    for name, output in artifact.limits.state if artifact.limits else []:
        _keep_buffer(model, name, output)
    if stateful:
        _keep_caches(model, artifact)
    _cut_before_integers(model)
    model.validate_nodes_and_infer_types()
    return model


def save(model: Any, xml: Path, *, compress_to_fp16: bool = False) -> list[Path]:
    import openvino

    if not compress_to_fp16:
        _store_halves(model)
    openvino.save_model(model, os.fspath(xml), compress_to_fp16=compress_to_fp16)
    return [xml, xml.with_suffix(".bin")]


def _store_halves(model: Any) -> None:
    """Weights in fp32 whose values all are numbers of bf16, as those of most checkpoints, are stored as such, and made
    fp32 again where they are used: half the file, the same values."""
    import numpy as np
    import openvino
    from openvino import opset13 as op

    for node in model.get_ops():
        if node.get_type_name() != "Constant" or node.get_element_type().get_type_name() != "f32":
            continue
        bits = node.data.reshape(-1).view(np.uint32)
        pieces = [slice(i, i + _PIECE) for i in range(0, bits.size, _PIECE)]
        if bits.size < _SMALL or any((bits[piece] & 0xFFFF).any() for piece in pieces):
            continue
        users = node.output(0).get_target_inputs()
        halves = openvino.Tensor(openvino.Type.bf16, node.get_output_shape(0))
        stored = halves.data.reshape(-1).view(np.uint16)
        for piece in pieces:
            stored[piece] = bits[piece] >> 16
        half = op.constant(halves)
        half.set_friendly_name(node.get_friendly_name())
        whole = op.convert(half, "f32")
        for user in users:
            user.replace_source_output(whole.output(0))


def _cut_before_integers(model: Any) -> None:
    """A conversion to integers cuts what is behind the point. OpenVINO's CPU device (2026.4) joins it with elementwise
    operators behind it, computes those with the fraction still there, and rounds at the end: distances in T5's tables
    of positions come out one too large. Without a fraction there is nothing to round."""
    from openvino import opset13 as op

    for node in model.get_ops():
        kinds = node.get_type_name() == "Convert" and node.input_value(0).get_element_type().is_real()
        target = node.get_output_element_type(0) if kinds else None
        if target is not None and target.is_integral() and target.get_type_name() != "boolean":
            value = node.input_value(0)
            whole = op.multiply(op.sign(value), op.floor(op.abs(value)))
            node.input(0).replace_source_output(whole.output(0))


def _keep_buffer(model: Any, name: str, output: str) -> None:
    """A buffer that calls change begins with what the checkpoint has of it."""
    start = next(port for node in model.get_ops() for port in node.outputs() if name in port.get_names())
    users = start.get_target_inputs()
    state = _State(model, name, start, start.get_partial_shape())
    for user in users:
        user.replace_source_output(state.read.output(0))
    state.assign(_result(model, output))


class _State:
    """A value that stays in the runtime from call to call; `start` is what it is before the first."""

    def __init__(self, model: Any, name: str, start: Any, shape: Any):
        from openvino.op import read_value
        from openvino.op.util import Variable, VariableInfo

        info = VariableInfo()
        info.variable_id, info.data_type, info.data_shape = name, start.get_element_type(), shape
        self._model, self._variable = model, Variable(info)
        model.add_variables([self._variable])
        self.read = read_value(start, self._variable)

    def assign(self, value: Any) -> None:
        from openvino import opset13 as op
        from openvino.op import assign

        # It takes a node for its only value; a join of one value stands for one of several.
        node = value.get_node()
        node = op.concat([value], 0) if node.get_output_size() > 1 else node
        self._model.add_sinks([assign(node, self._variable)])


def _keep_caches(model: Any, artifact: Artifact) -> None:
    """Each cache that comes in as `past...` and goes out as `present...`. Rows of a call go on from the rows of the
    last one that `beam_idx` names."""
    from openvino import PartialShape, Type
    from openvino import opset13 as op

    given = {row["name"]: row["shape"] for row in artifact.inputs}
    pasts = {name: _present(name, artifact) for name in given if name.startswith("past")}
    if not pasts or not all(pasts.values()):
        return
    rows = _Rows(model, {name: shape for name, shape in given.items() if name not in pasts})
    beams = op.parameter(PartialShape([-1]), Type.i32, name=BEAMS)
    beams.output(0).get_tensor().add_names({BEAMS})
    for past, present in pasts.items():
        port, axis = model.input(past), _batch_axis(given[past])
        node, users = port.get_node(), port.get_target_inputs()
        empty = rows.zeros(given[past], axis, port.get_element_type())
        shape = PartialShape([int(size) if size.isdecimal() else -1 for size in given[past]])
        value, name = _result(model, str(present)), f"{past}{present}"  # as OpenVINO's own transformation calls it
        if _ENCODER in past:
            # Made of the encoder's output in the first call, and the same ever after. Beams of one text share it.
            for user in users:
                user.replace_source_output(empty.output(0))
            readers = value.get_target_inputs()
            state = _State(model, name, value, shape)
            for reader in readers:
                reader.replace_source_output(state.read.output(0))
            state.assign(state.read.output(0))
        else:
            state = _State(model, name, empty.output(0), shape)
            chosen = state.read if axis is None else op.gather(state.read, beams, op.constant(axis))
            for user in users:
                user.replace_source_output(chosen.output(0))
            state.assign(value)
        model.remove_parameter(node)
    model.add_parameters([beams])


def _result(model: Any, name: str) -> Any:
    """The value of an output, which is none any more."""
    result = model.output(name).get_node()
    source = result.input_value(0)
    model.remove_result(result)
    return source


def _present(past: str, artifact: Artifact) -> str | None:
    known = {row["name"] for row in artifact.outputs}
    names = (_PAST.sub("present", past, count=1), past.replace("past", "present", 1))
    return next((name for name in names if name in known), None)


def _batch_axis(shape: Sequence[str]) -> int | None:
    """None: a number that all rows have in common."""
    free = [axis for axis, size in enumerate(shape) if not size.isdecimal()]
    named = [axis for axis in free if "batch" in shape[axis]]
    return named[0] if named else 0 if free else None


class _Rows:
    """How many there are, read off the inputs."""

    def __init__(self, model: Any, shapes: Mapping[str, Sequence[str]]):
        self._model, self._shapes = model, shapes
        self._known: dict[str, Any] = {}

    def zeros(self, shape: Sequence[str], axis: int | None, dtype: Any) -> Any:
        """A cache before the first token: nothing along axes that grow, zeros in a state of one size."""
        import numpy as np
        from openvino import opset13 as op

        sizes = []
        for i, size in enumerate(shape):
            if size.isdecimal():
                sizes.append(op.constant(np.array([int(size)], np.int64)))
            elif i == axis:
                sizes.append(self._size(size))
            else:  # a plain 0 would be taken for the size that it always has
                sizes.append(op.subtract(self._any(), self._any()))
        zero = op.constant(0, dtype=dtype)
        return op.broadcast(zero, op.concat(sizes, 0)) if sizes else zero

    def _any(self) -> Any:
        """Some size that differs from call to call."""
        return self._size(next(size for shape in self._shapes.values() for size in shape if size.isidentifier()))

    def _size(self, symbol: str) -> Any:
        from openvino import opset13 as op

        if symbol not in self._known:
            name, axis = next((n, list(s).index(symbol)) for n, s in self._shapes.items() if symbol in s)
            shape = op.shape_of(self._model.input(name), output_type="i64")
            self._known[symbol] = op.gather(shape, op.constant([axis]), op.constant(0))
        return self._known[symbol]
