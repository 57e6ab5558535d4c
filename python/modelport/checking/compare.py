"""`check(artifact, model)`: runs both at several sizes and compares every output."""

from __future__ import annotations

import copy
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from transformers.generation.utils import ALL_CACHE_NAMES

from ..artifacts import ir
from ..artifacts.artifact import Artifact, find_model, find_models, generates
from ..artifacts.pte import ProgramFile, find_program, read_program
from ..base.dtypes import FLOATS
from ..base.errors import ExportError, problem
from ..base.printable import shell_quote
from ..hub.folder import checkpoint_folder
from ..hub.name import hub_name
from ..lazy.folder import model_with_values
from ..running.program_folder import find_generating_program
from ..sentences.folder import load_sentences
from ..sentences.modules import SentenceModel
from ..values.tolerance import Tolerance
from .eager import Values, values_of
from .quality import MIN_COSINE, QualityAsked, QualityReport, compare_quality
from .report import CheckReport, Row, Skipped, amount
from .runner import Runner
from .tolerance import row_of

_SIZES = ("example", "batch 1", "longer", "odd")


def check(
    artifact: Any,
    model: torch.nn.Module | str | os.PathLike[str] | None = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    *,
    atol: float | None = None,
    name_first: bool = True,
    quality: QualityAsked | None = None,
    dtype: str | None = None,
) -> CheckReport | QualityReport:
    """Compares an artifact (a file, the folder of an export, or what an exporter gave) with its model.

    `model` is the model, its checkpoint folder or its name on the hub ("org/name@revision"); without one it is the
    folder that the artifact says it came from.
    `inputs` are those of the model, one set or several; without any they are made by rule, at four sizes. `atol` is
    the tolerance (docs/cli.md); `name_first` looks for the first value of the graph that differs where outputs do.
    `dtype` says which files are meant in a folder that has the model in several types.

    A folder that generates is compared by what it generates; `inputs` are then those of `generate`. Where its weights
    are in few bits, the report says how much that costs: perplexity, best guesses, logits (`quality`)."""
    is_path = isinstance(artifact, str | os.PathLike)
    generating = find_generating_program(artifact) if is_path else None
    if generating is not None and not _has_a_past(inputs):
        return _check_program(generating, model, inputs, atol)
    parts = ir.find_parts(artifact) if is_path else {}
    if parts and ir.generates(parts) and not _has_a_past(inputs):
        return _check_generation(Path(artifact), ir.IrFile(next(iter(parts.values()))), model, inputs, atol, dtype)
    if is_path and not parts and find_program(artifact) is None and generates(artifact) and not _has_a_past(inputs):
        part = Artifact(find_models(artifact, dtype)[0])
        if part.note("quantization") and inputs is None:
            reference = _model(part, model, torch.float32)[0]
            return compare_quality(Path(artifact), reference, str(artifact), quality, dtype)
        return _check_generation(Path(artifact), part, model, inputs, atol, dtype)
    with _as_file(artifact, dtype) as (path, program):
        found = _read(path)
        model, folder = _model(found, model)
        floor = None
        if found.note("quantization"):
            floor = MIN_COSINE if quality is None or quality.min_cosine is None else quality.min_cosine
        asked = Request(found, model, inputs, atol, program, folder, name_first, floor)
        with _in_type_of(found, model):
            return compare(asked, str(path) if program is None else "the program")


def _has_a_past(inputs: Any) -> bool:
    """Whether the inputs are those of one step, which is not what `generate` takes."""
    several = inputs if isinstance(inputs, Sequence) else [inputs or {}]
    return any(name in given for given in several for name in ALL_CACHE_NAMES)


def _check_generation(
    folder: Path, part: Any, model: Any, inputs: Any, atol: float | None, dtype: str | None
) -> CheckReport:
    from ..running import load
    from .generation import compare_generation, prompts_for

    model, source = _model(part, model)
    if inputs is None:
        made = _example(model, source)
        prompts = [(size, dict(given) | _of_prompts(folder, given)) for size, given in prompts_for(model, made)]
    else:
        several = isinstance(inputs, Sequence)
        prompts = [(f"inputs {i}", given) for i, given in enumerate(inputs if several else [inputs])]
    return compare_generation(load(folder, dtype=dtype), model, prompts, atol, str(folder))


def _check_program(program: Path, model: Any, inputs: Any, atol: float | None) -> CheckReport:
    from .program_generation import check_program

    file: Any = ProgramFile(program, next(iter(read_program(program)["methods"])))
    model, source = _model(file, model)
    prompts = None
    if inputs is None:
        inputs = _example(model, source)
    else:
        several = isinstance(inputs, Sequence)
        prompts = [(f"inputs {i}", given) for i, given in enumerate(inputs if several else [inputs])]
    with _in_type_of(file, model):
        return check_program(program, model, inputs, atol=atol, name=str(program), prompts=prompts)


def _of_prompts(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs that have one value for all tokens of a prompt, where the files are written for that value alone."""
    files = [] if ir.find_parts(folder) else find_models(folder)
    values = next(filter(None, (Artifact(path).of_prompts for path in files)), {})
    return {name: torch.full_like(given[name], value) for name, value in values.items() if name in given}


@dataclasses.dataclass
class Request:
    """What is compared with what."""

    artifact: Any  # an Artifact, a ProgramFile or an IrFile
    model: Any
    inputs: Any = None
    atol: float | None = None
    program: Any = None  # the OnnxProgram that the artifact was saved from, where there is one
    folder: str | None = None  # of the model's checkpoint, where there is one
    name_first: bool = True
    min_cosine: float | None = None  # of weights in few bits


def compare(asked: Request, name: str) -> CheckReport:
    """The comparison itself; `name` is what the artifact is called in messages."""
    runner = _runner(asked)
    model = asked.model
    dtypes = {p.dtype for p in model.parameters()} if isinstance(model, torch.nn.Module) else set()
    tolerance = Tolerance.of(dtypes, asked.atol)
    report = CheckReport(name, tolerance.atol, min_cosine=asked.min_cosine)
    for size, given in _inputs(runner, asked, report):
        failed = _compare(Comparison(runner, model, tolerance, size, asked.min_cosine), given, report)
        if (
            failed
            and asked.name_first
            and asked.min_cosine is None
            and report.first is None
            and isinstance(asked.artifact, Artifact)
        ):
            from .first_difference import first_difference

            report.first = first_difference(asked.artifact, runner, model, _as_model_takes(model, given), tolerance)
    return report


def _example(model: Any, folder: str | None) -> dict[str, Any]:
    from ..inputs import example_inputs
    from ..inputs.of_folder import example_for

    return example_inputs(model) if folder is None else example_for(Path(folder), model).inputs


def _runner(asked: Request) -> Runner:
    if isinstance(asked.artifact, ProgramFile):
        from .executorch_runner import ExecutorchRunner

        return ExecutorchRunner(asked.artifact)
    renamed = asked.program.renamed if asked.program is not None else None
    if isinstance(asked.artifact, ir.IrFile):
        from .openvino_runner import OpenvinoRunner

        return OpenvinoRunner(asked.artifact, renamed)
    return Runner(asked.artifact, renamed)


@contextmanager
def _as_file(artifact: Any, dtype: str | None) -> Iterator[tuple[Path, Any]]:
    if isinstance(artifact, str | os.PathLike):
        yield find_program(artifact) or _only_ir(artifact) or find_model(artifact, dtype), None
    elif hasattr(artifact, "captured") and hasattr(artifact, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / getattr(artifact, "file_name", "model.onnx")
            artifact.write(path)
            yield path, artifact
    else:
        raise problem(
            "E0106", f"a {type(artifact).__name__} is no artifact", "pass a path, or what OnnxExporter().export gives"
        )


def _only_ir(path: str | os.PathLike[str]) -> Path | None:
    return next(iter(ir.find_parts(path).values()), None)


def _read(path: Path) -> Any:
    if find_program(path) is not None:
        return ProgramFile(path)
    return ir.IrFile(path) if path.suffix == ".xml" else Artifact(path, nodes=True)


def _model(artifact: Artifact, model: Any, dtype: torch.dtype | None = None) -> tuple[Any, str | None]:
    """The model, and its folder where it comes from one; in the type of the artifact unless another is named."""
    if model is not None and not isinstance(model, str | os.PathLike):
        return model, None
    folder = _named(model) if model is not None else _source(artifact)
    if folder is None or not Path(folder).is_dir():
        what = "does not say which checkpoint it was made of" if folder is None else f"was made of {folder}"
        gone = "" if folder is None else ", which is not there"
        raise problem(
            "E0106",
            f"{artifact.path} {what}{gone}",
            f"modelport check {shell_quote(artifact.path.parent)} --model FOLDER",
            "modelport.check(path, model)",
        )
    dtype = dtype or FLOATS.get(artifact.note("dtype") or "")
    made_of = artifact.note("model_class")
    if made_of == SentenceModel.__name__:
        return load_sentences(Path(folder), dtype=dtype), os.fspath(folder)
    return model_with_values(folder, made_of, dtype), os.fspath(folder)


def _named(model: str | os.PathLike[str]) -> str | os.PathLike[str]:
    return checkpoint_folder(model) if hub_name(model) is not None else model


def _source(artifact: Artifact) -> str | os.PathLike[str] | None:
    """The folder that the artifact was made of; where it is gone, the model of the hub that it came from."""
    folder, name = artifact.note("source"), artifact.note("hub")
    if name is not None and (folder is None or not Path(folder).is_dir()):
        return checkpoint_folder(name)
    return folder


def _in_type_of(artifact: Artifact, model: Any) -> AbstractContextManager[None]:
    """Where the artifact was made in another type than the model has, the model has that one for a while."""
    from ..exporters.prepare import module_dtype
    from ..lazy.dtype import computing_in

    dtype = FLOATS.get(artifact.note("dtype") or "")
    if dtype is None or not isinstance(model, torch.nn.Module) or module_dtype(model) == dtype:
        return nullcontext()
    return computing_in(model, dtype)


def _inputs(runner: Runner, asked: Request, report: CheckReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """Sets of inputs with a word for each; those given, and further sizes where rules can make them."""
    from ..inputs import further_sizes

    inputs, model = asked.inputs, asked.model
    if isinstance(inputs, Sequence):
        yield from ((f"inputs {i}", dict(given)) for i, given in enumerate(inputs))
        return
    if inputs is None:
        inputs = _example(model, asked.folder)
        runner.drop_unknown(inputs)
    yield _SIZES[0], inputs
    try:
        further = further_sizes(inputs, model)
    except Exception as error:  # inputs made by hand, and models that take one size only
        first = str(error).splitlines()[0]
        report.skipped.append(Skipped("further sizes", {}, f"no rule makes them: {first}"))
        return
    yield from zip(_SIZES[1:], further, strict=False)


@dataclasses.dataclass
class Comparison:
    """An artifact and its model at one size."""

    runner: Runner
    model: Any
    tolerance: Tolerance
    size: str
    min_cosine: float | None = None

    def rows(self, inputs: dict[str, Any], feeds: Mapping[str, torch.Tensor]) -> list[Row]:
        axes = self.runner.axes(feeds)
        wanted = values_of(self.model, inputs)
        try:
            pairs = self.runner.paired(self.runner.run(feeds), wanted.by_name)
        except ExportError:
            raise
        except Exception as error:  # onnxruntime stops in the middle
            inf, why = float("inf"), " ".join(str(error).split())
            return [Row(self.size, axes, "all", inf, inf, None, False, f"fails: {why}")]
        rows = [self._row(Row(self.size, axes, name), got, want, wanted) for name, got, want in pairs]
        named = {row.output for row in rows}
        numbers = [n for n, value in wanted.by_name.items() if isinstance(value, bool | int | float) and n not in named]
        return rows + [Row(self.size, axes, n, ok=None, what="a number, not in the file") for n in numbers]

    def _row(self, row: Row, got: Any, want: Any, wanted: Values) -> Row:
        if got is None or want is None:
            row.ok, row.what = False, "is missing" if got is None else "is no output of the model"
            return row
        if wanted.is_random(want):
            row.ok, row.what = None, "random, not compared"
            return row
        row = row_of(row, got, want, self.tolerance)
        if self.min_cosine is not None and row.cosine is not None:
            row.ok = row.cosine >= self.min_cosine
        return row


def _compare(comparison: Comparison, inputs: dict[str, Any], report: CheckReport) -> bool:
    """Adds the rows of one size; True where they differ and the artifact claims to take this size."""
    inputs = _as_model_takes(comparison.model, inputs)
    feeds = comparison.runner.feeds(inputs)
    why = comparison.runner.outside(feeds)
    if why is not None:
        axes = comparison.runner.axes(feeds)
        report.skipped.append(Skipped(comparison.size, axes, why + _beyond_limits(comparison, inputs, feeds)))
        return False
    try:
        rows = comparison.rows(inputs, feeds)
    except ExportError as error:
        if error.code != "E0304":
            raise
        what = error.diagnostics[0]["what"]  # these inputs take a branch that the file does not have
        report.skipped.append(Skipped(comparison.size, comparison.runner.axes(feeds), what))
        return False
    report.rows += rows
    return any(row.ok is False for row in rows)


def _beyond_limits(comparison: Comparison, inputs: dict[str, Any], feeds: Mapping[str, torch.Tensor]) -> str:
    """What the artifact gives at a size that it says it does not take, where it gives anything."""
    try:
        rows = comparison.rows(inputs, feeds)
    except Exception:  # the model need not take this size either
        return ""
    wrong = [f"{row.output} {amount(row)}" for row in rows if row.ok is False and not row.what.startswith("fails")]
    return f"; values differ there: {', '.join(wrong[:3])}" if wrong else ""


def _as_model_takes(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the inputs in the model's floating type."""
    from ..exporters.prepare import cast_leaf_tensors, module_device, module_dtype

    given = copy.deepcopy(dict(inputs))
    if not isinstance(model, torch.nn.Module):
        return given
    dtype, device = module_dtype(model), module_device(model)
    if dtype is None or device is None:
        return given
    return cast_leaf_tensors(given, dtype=dtype, device=device)
