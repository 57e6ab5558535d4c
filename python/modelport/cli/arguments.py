"""The arguments of every command, with examples in each help."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import Any

from ..errors import problem

_MODEL = """modelport turns Hugging Face models into programs that other runtimes run.

examples:
  modelport export onnx ./bert-base ./bert-onnx      model.onnx, its weights and the tokenizer, values checked
  modelport check ./bert-onnx                        the same comparison again
  modelport inspect ./bert-onnx                      inputs, outputs, axes, operators, weights"""

_EXPORT = """Exports a checkpoint folder to ONNX and compares the values with the model's.

examples:
  modelport export onnx ./bert-base ./bert-onnx
  modelport export onnx ./qwen3 qwen3.onnx --weights link        nothing is copied: the file points into the checkpoint
  modelport export onnx ./bert-base ./out --task feature-extraction --opset 20
  modelport export onnx ./llama ./out --dtype fp16 --atol 0.05
  modelport export onnx -m ./vit ./out --batch 4 --no-dynamic-axes

exit codes: 0 exported and checked; 2 an error, or values that differ; 130 interrupted. After 2 and 130, what was at OUT
is still there."""

_CHECK = """Runs an artifact in onnxruntime and compares its values with the model's, at four sizes.

examples:
  modelport check ./bert-onnx                          the checkpoint that the file says it was made of
  modelport check ./bert-onnx --model ./bert-base --atol 1e-3
  modelport check model.onnx --model ./bert-base --json

exit codes: 0 the values are those of the model, 2 they are not, or an error"""

_INSPECT = """Shows what an ONNX file has in it. Nothing is loaded, whatever its size.

examples:
  modelport inspect ./bert-onnx
  modelport inspect model.onnx --json | jq .inputs"""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def parser() -> argparse.ArgumentParser:
    top = _parser(argparse.ArgumentParser, prog="modelport", description=_MODEL)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    export = commands.add_parser("export", help="turn a model into an artifact")
    targets = export.add_subparsers(metavar="TARGET", required=True)
    _export_onnx(_parser(targets.add_parser, "onnx", help="export to ONNX", description=_EXPORT))
    _check(_parser(commands.add_parser, "check", help="compare an artifact with its model", description=_CHECK))
    _inspect(_parser(commands.add_parser, "inspect", help="show what an artifact has in it", description=_INSPECT))
    return top


def _parser(make: Any, *args: Any, **settings: Any) -> Any:
    return make(*args, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)


class _Version(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        from importlib.metadata import version

        print(f"modelport {version('modelport')}")
        parser.exit()


def _runs(command: argparse.ArgumentParser, module: str, prepare: Any = None) -> None:
    """The command's code is imported when it runs; `prepare` looks at arguments that belong together before."""

    def run(args: argparse.Namespace, console: Any) -> bool:
        if prepare is not None:
            prepare(args)
        return import_module(f".{module}", __package__).run(args, console)

    command.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def _export_onnx(command: argparse.ArgumentParser) -> None:
    command.usage = "modelport export onnx MODEL OUT [options]"
    command.add_argument(
        "paths", nargs="+", metavar="MODEL OUT", help="checkpoint folder; folder or .onnx file to write"
    )
    command.add_argument("-m", "--model", metavar="MODEL", help="the checkpoint folder, as in optimum-cli")
    what = command.add_argument_group("what is exported")
    what.add_argument("--task", help="such as text-generation; chooses the class (default: the one in config.json)")
    what.add_argument("--dtype", choices=["fp32", "fp16", "bf16"], help="type of weights (default: the checkpoint's)")
    what.add_argument("--no-dynamic-axes", action="store_true", help="every axis has the size of the example")
    what.add_argument("--batch", "--batch_size", type=_positive, default=2, help="size of the example (default 2)")
    what.add_argument("--sequence", "--sequence_length", type=_positive, help="length of the example")
    what.add_argument("--trust-remote-code", action="store_true", help="run the Python code in the checkpoint folder")
    how = command.add_argument_group("how it is written")
    how.add_argument("--opset", type=int, help="version of ONNX's operators (default 23)")
    how.add_argument("--weights", choices=["copy", "link"], default="copy", help="link: point into the checkpoint")
    how.add_argument(
        "--external-data",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="weights in a file beside the model (default), or inside it",
    )
    how.add_argument("--shard-size", type=_size, metavar="SIZE", help="weights in files of at most this, such as 2GB")
    checked = command.add_argument_group("the check")
    checked.add_argument("--atol", type=_tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    checked.add_argument("--no-check", action="store_true", help="do not compare values with the model's")
    same = command.add_argument_group("flags of optimum-cli that say what is done anyway")
    same.add_argument("--device", choices=["cpu"], help="cpu, where the capture is done")
    same.add_argument("--framework", choices=["pt"], help="pt, the only one")
    same.add_argument("--monolith", action="store_true", help="one file for the whole model, as always")
    same.add_argument("--no-post-process", action="store_true", help="nothing is done to files afterwards, as always")
    _runs(command, "export_onnx", prepare=_two_paths)


def _two_paths(args: argparse.Namespace) -> None:
    paths = ([] if args.model is None else [args.model]) + args.paths
    if len(paths) != 2:
        what = "OUT is missing" if len(paths) < 2 else f"there are {len(paths)} paths, and MODEL and OUT are two"
        raise problem("E0301", what, "modelport export onnx MODEL OUT", "modelport export onnx -m MODEL OUT")
    args.model, args.out = paths


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument("artifact", metavar="OUT", help="the folder of an export, or an .onnx file")
    command.add_argument("--model", metavar="FOLDER", help="the checkpoint (default: where the file says it came from)")
    command.add_argument("--atol", type=_tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    _runs(command, "check_artifact")


def _inspect(command: argparse.ArgumentParser) -> None:
    command.add_argument("artifact", metavar="FILE_OR_FOLDER", help="an .onnx file, or a folder with one")
    _runs(command, "inspect_artifact")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number from 1 on")
    return int(text)


def _tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance: a number such as 1e-3")
    return number


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]I?)?B?", text.strip().upper())
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number with a unit, such as 2GB or 500MB")
    return max(1, int(float(found[1]) * _UNITS[found[2] or ""]))
