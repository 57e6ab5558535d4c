"""A part of the zoo in every format, for a pair of torch and transformers: values next to eager, at two sizes.

Run as a script it prints a line of JSON a row: `python tests/version_sample.py`, or with names of rows. Each row has a
process of its own, so that one which takes its process down is told of like the others. It is what `make
test-versions` runs in the environment of each pair, and needs none of pytest."""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLE = (
    *("bert", "deberta_v2", "modernbert", "llama", "llama with a cache", "qwen3 with a cache", "gemma3_text", "gpt2"),
    *("mixtral", "gpt_oss", "mamba", "qwen3_next", "bart", "t5", "vit", "swin", "convnext", "detr", "segformer", "sam"),
    *("wav2vec2", "whisper", "videomae", "clip", "llava", "qwen2_vl", "patchtst"),
)
SAME = "same values"
NO_RUNTIME = "no runtime"


def main(names: list[str]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import torch
    from zoo import ROWS

    import modelport

    torch.set_num_threads(1)
    modelport.capture  # noqa: B018  (imports what all rows need, before processes part)
    rows = {str(row): row for row in ROWS}
    for name in names or SAMPLE:
        print(json.dumps({"row": name, **_apart(rows[name])}), flush=True)


def _apart(row: Any) -> dict[str, str]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_outcomes, args=(row, theirs))
    process.start()
    theirs.close()
    found: dict[str, str] = {}
    try:
        while True:
            found.update(ours.recv())
    except EOFError:
        process.join()
    return {name: found.get(name, f"the process ended with {process.exitcode}") for name in FORMATS}


def _outcomes(row: Any, answer: Any) -> None:
    from zoo.shown import Shown

    from modelport import ExportError

    shown = Shown(row)
    for name, compare in FORMATS.items():
        try:
            with tempfile.TemporaryDirectory() as folder:
                compare(shown, Path(folder))
            outcome = SAME
        except ExportError as error:
            outcome = NO_RUNTIME if error.code == "E0307" else error.code
            print(error, file=sys.stderr)
        except Exception as error:
            outcome = type(error).__name__
            traceback.print_exc()
        answer.send({name: outcome})


def _pt2(shown: Any, folder: Path) -> None:
    """Read by torch's own loader."""
    import torch
    from zoo.shown import seeded

    loaded = torch.export.load(shown.exported.save(folder / "model.pt2")).module()
    _compare(shown, lambda inputs: seeded(loaded, inputs))


def _onnx(shown: Any, folder: Path) -> None:
    import modelport
    from modelport.exporters.onnx import checked_opset
    from modelport.runtimes.onnxruntime import run_session
    from modelport.runtimes.sessions import quiet_session

    program = modelport.OnnxProgram(shown.captured, modelport.OnnxConfig(dynamic=True), checked_opset(None))
    session = quiet_session(program.save(folder / "model.onnx"), threads=1)
    _compare(
        shown,
        lambda inputs: run_session(session, program.output_names, program.feeds(inputs), program.output_dtypes),
    )


def _pte(shown: Any, _folder: Path) -> None:
    import modelport
    from modelport.runtimes.executorch import runtime

    runtime()
    model, inputs = shown.built
    program = modelport.ExecutorchExporter().export(model, dict(inputs), modelport.ExecutorchConfig(dynamic=True))
    _compare(shown, lambda given: program(**given))


def _compare(shown: Any, run: Callable[[Any], Any]) -> None:
    from zoo.shown import assert_same

    import modelport

    for size in (0, 2):
        given = shown.row.inputs(size)
        got = list(modelport.get_leaf_tensors(run(given)).values())
        assert_same(got, shown.wanted(size), f"at size {size}")


FORMATS = {"pt2": _pt2, "onnx": _onnx, "pte": _pte}

if __name__ == "__main__":
    main(sys.argv[1:])
