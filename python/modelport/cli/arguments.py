"""The arguments of every command, with examples in each help."""

from __future__ import annotations

import argparse
import functools
import re
import sys
from importlib import import_module
from typing import Any

from ..base.errors import problem
from ..base.versions import own_version
from . import executorch_arguments, fleet_arguments, model_arguments, openvino_arguments, quantization_arguments
from .console import say

_MODEL = """modelport turns Hugging Face models into programs that other runtimes run.

examples:
  modelport export onnx ./bert-base ./bert-onnx      model.onnx, its weights and the tokenizer, values checked
  modelport export onnx google-bert/bert-base-uncased ./bert-onnx      a model of the hub
  modelport check ./bert-onnx                        the same comparison again
  modelport inspect ./bert-onnx                      inputs, outputs, axes, operators, weights
  modelport diff ./bert-onnx ./bert-onnx-2           what differs between two of them
  modelport run ./qwen3-onnx "Once upon a time"      the text goes on, word by word"""

_EXPORT = """Exports a checkpoint folder to ONNX and compares the values with the model's.

examples:
  modelport export onnx ./bert-base ./bert-onnx
  modelport export onnx ./qwen3 ./out --weights link             nothing is copied: the file points into the checkpoint
  modelport export onnx ./bert-base ./out --task feature-extraction --opset 20
  modelport export onnx ./llama ./out --dtype fp16 --atol 0.05
  modelport export onnx ./qwen3 ./out --dtype q4,fp16            files of both types, from one reading of the model
  modelport export onnx ./qwen3 ./out --for transformers.js      or genai: the folder as this client opens it
  modelport export onnx -m ./vit ./out --batch 4 --no-dynamic-axes

exit codes: 0 exported and checked; 2 an error, or values that differ; 130 interrupted. After 2 and 130, what was at OUT
is still there."""

_CAPTURE = """Captures a model and shows what was found: inputs, axes, conditions. No weights are read; of a name of the
hub none are fetched, so that a model of any size takes seconds.

examples:
  modelport capture ./bert-base
  modelport capture meta-llama/Llama-3.3-70B-Instruct graph.txt      the graph as text, in a file
  modelport capture ./bert-base --task feature-extraction --json

exit codes: 0 captured, 2 an error"""

_CHECK = """Runs an artifact in its runtime and compares its values with the model's, at four sizes.

examples:
  modelport check ./bert-onnx                          the checkpoint that the file says it was made of
  modelport check ./bert-onnx --model ./bert-base --atol 1e-3
  modelport check model.onnx --model ./bert-base --json

exit codes: 0 the values are those of the model, 2 they are not, or an error"""

_INSPECT = """Shows what an ONNX file, an ExecuTorch program, a .pt2 or a checkpoint has in it. Nothing is loaded,
whatever its size.

examples:
  modelport inspect ./bert-onnx
  modelport inspect model.onnx --json | jq .inputs
  modelport inspect meta-llama/Llama-3.3-70B-Instruct              a checkpoint, by its settings and headers alone
  modelport inspect ./bert-onnx --html bert.html                   a page to look at: modules, graph, weights, axes
  modelport inspect ./bert-onnx --html bert.html --report run.json
                                                                   with the check, the steps and the attempts of a run:
                                                                   what export or check wrote with --json > run.json"""

_DIFF = """Tells what differs between two artifacts, two checkpoints or two graphs: counts first, then details.

examples:
  modelport diff ./bert-onnx ./bert-onnx-2                 two exports, of one version or of two
  modelport diff bert.pt2 bert-2.pt2 --all                 each difference, not the first 20 of each kind
  modelport diff ./bert-base ./bert-finetuned              two checkpoints: configuration and weights
  modelport diff before.txt after.txt                      two captures: what print(captured) shows
  modelport diff ./bert-onnx ./bert-onnx-2 --html diff.html

exit codes, as of diff: 0 no difference, 1 some, 2 an error"""

_RUN = """Runs an exported model. Words come as they are generated, tokens per second at the end; a model that is called
once tells words for a mask, labels, or what it sees.

examples:
  modelport run ./qwen3-onnx "Once upon a time" --max-new-tokens 64
  modelport run ./qwen3-onnx "Tell me a joke" --temperature 0.7 --top-p 0.9 --seed 1
  modelport run ./llava-onnx "What is in this picture?" --image cat.png
  modelport run ./whisper-onnx --audio speech.wav
  modelport run ./bert-onnx "Paris is the [MASK] of France."     words for the mask, likeliest first
  modelport run ./vit-pte --image cat.png                        labels, or things with their places
  modelport run ./sam-onnx --inputs example.safetensors          any model: what it gives for these tensors

The prompt goes through the tokenizer's chat template if it has one. The text goes to stdout, all else to stderr.

exit codes: 0 done, 2 an error, 130 interrupted"""

_COMPLETION = """Prints a script that lets a shell complete commands, flags and their values.

examples:
  modelport completion bash > ~/.local/share/bash-completion/completions/modelport
  modelport completion zsh > ~/.zfunc/_modelport                   ~/.zfunc has to be in $fpath
  modelport completion fish > ~/.config/fish/completions/modelport.fish"""

_DOCTOR = """Tells what is installed, what is off, and the command that mends it.

examples:
  modelport doctor
  modelport doctor --json | jq .findings

exit codes: 0 modelport works here, though features may be missing; 2 it does not"""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


@functools.cache  # a worker of a fleet parses for every export
def parser() -> argparse.ArgumentParser:
    top = _parser(_Parser, prog="modelport", description=_MODEL)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    export = commands.add_parser("export", help="turn a model into an artifact")
    targets = export.add_subparsers(metavar="TARGET", required=True)
    _export_onnx(_parser(targets.add_parser, "onnx", help="export to ONNX", description=_EXPORT))
    program = _parser(
        targets.add_parser, "executorch", help="export to ExecuTorch", description=executorch_arguments.EXPORT
    )
    _export_executorch(program)
    archive = _parser(targets.add_parser, "pt2", help="export to PyTorch's .pt2", description=fleet_arguments.PT2)
    fleet_arguments.add_pt2(archive, _positive, _tolerance)
    _runs(archive, "export_pt2", fleet_arguments.two_paths)
    graph = _parser(targets.add_parser, "openvino", help="export to OpenVINO", description=openvino_arguments.EXPORT)
    openvino_arguments.add(graph, _positive, _tolerance)
    _runs(graph, "export_openvino", openvino_arguments.prepare)
    _capture(_parser(commands.add_parser, "capture", help="show the graph of a model", description=_CAPTURE))
    _check(_parser(commands.add_parser, "check", help="compare an artifact with its model", description=_CHECK))
    _inspect(_parser(commands.add_parser, "inspect", help="show what an artifact has in it", description=_INSPECT))
    _diff(_parser(commands.add_parser, "diff", help="tell what differs between two artifacts", description=_DIFF))
    fleet = _parser(commands.add_parser, "fleet", help="export many models", description=fleet_arguments.FLEET)
    fleet_arguments.add_fleet(fleet, _positive, _size)
    _runs(fleet, "export_fleet")
    doctor = _parser(commands.add_parser, "doctor", help="tell what is installed and what is off", description=_DOCTOR)
    _runs(doctor, "doctor", quiet="print only why nothing works, if so")
    _run(_parser(commands.add_parser, "run", help="generate text with an exported model, or ask it", description=_RUN))
    _completion(_parser(commands.add_parser, "completion", help="let a shell complete", description=_COMPLETION))
    return top


def _parser(make: Any, *args: Any, **settings: Any) -> Any:
    return make(*args, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse says nothing of help that could not be printed."""
        if message and file is sys.stdout:
            say(message, end="")
        else:
            super()._print_message(message, file)


class _Version(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        say(f"modelport {own_version()}")
        parser.exit()


def _runs(
    command: argparse.ArgumentParser, module: str, prepare: Any = None, quiet: str = "print nothing but errors"
) -> None:
    """The command's code is imported when it runs; `prepare` looks at arguments that belong together before."""

    def run(args: argparse.Namespace, console: Any) -> bool:
        if prepare is not None:
            prepare(args)
        return import_module(f".{module}", __package__).run(args, console)

    command.add_argument("-q", "--quiet", action="store_true", help=quiet)
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def _export_onnx(command: argparse.ArgumentParser) -> None:
    model_arguments.add_paths(command, "onnx", "folder or .onnx file")
    what = command.add_argument_group("what is exported")
    model_arguments.add(what, _positive)
    what.add_argument("--task", help="such as text-generation; chooses the class (default: the one in config.json)")
    what.add_argument("--for", dest="client", choices=["genai", "transformers.js"], help="the client that is to run it")
    quantization_arguments.add_type(what)
    what.add_argument("--no-dynamic-axes", action="store_true", help="every axis has the size of the example")
    what.add_argument(
        "--num-logits-to-keep",
        type=_count,
        metavar="N",
        help="of a model that generates: the logits of the last N tokens "
        "(default: of all, which is 0, and of each row's last one with --for genai)",
    )
    what.add_argument(
        "--limits-in-graph",
        action="store_true",
        help="tests of the inputs in the file itself: any runtime then fails outside the limits of the export",
    )
    model_arguments.add_join_lists(what)
    how = command.add_argument_group("how it is written")
    how.add_argument("--opset", type=int, help="version of ONNX's operators (default 23)")
    how.add_argument(
        "--operators",
        choices=["standard", "onnxruntime"],
        help="standard: those of ONNX, for any runtime; onnxruntime: its own, which write into the cache in place "
        "(default: standard, and onnxruntime with --for genai)",
    )
    how.add_argument(
        "--processor",
        choices=["x86_64", "aarch64", "any"],
        help="what onnxruntime's own operators are laid out for; others run the file too (default: this machine's)",
    )
    how.add_argument("--weights", choices=["copy", "link"], default="copy", help="link: point into the checkpoint")
    how.add_argument(
        "--external-data",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="weights in a file beside the model (default), or inside it",
    )
    how.add_argument("--shard-size", type=_size, metavar="SIZE", help="weights in files of at most this, such as 2GB")
    quantization_arguments.add(command, _positive)
    checked = command.add_argument_group("the check")
    checked.add_argument("--atol", type=_tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    quantization_arguments.add_quality(checked)
    checked.add_argument("--no-check", action="store_true", help="do not compare values with the model's")
    same = command.add_argument_group("flags of optimum-cli that say what is done anyway")
    same.add_argument("--device", choices=["cpu"], help="cpu, where the capture is done")
    same.add_argument("--framework", choices=["pt"], help="pt, the only one")
    same.add_argument("--optimize", choices=["O1", "O2", "O3", "O4"], help="see docs/cli.md for what each comes to")
    same.add_argument("--monolith", action="store_true", help="one file for the whole model, as always")
    same.add_argument("--no-post-process", action="store_true", help="nothing is done to files afterwards, as always")
    _runs(command, "export_onnx", prepare=_two_paths)


def _export_executorch(command: argparse.ArgumentParser) -> None:
    def prepare(args: argparse.Namespace) -> None:
        import_module(".export_executorch", __package__).prepare(args)

    executorch_arguments.add(command, _positive, _tolerance)
    _runs(command, "export_executorch", prepare)


def _two_paths(args: argparse.Namespace) -> None:
    model_arguments.take_paths(args, "modelport export onnx MODEL OUT", "modelport export onnx -m MODEL OUT")
    args.from_optimize = quantization_arguments.read_optimize(args)
    quantization_arguments.read(args)
    model_arguments.take_task(args)
    if (args.client or args.with_past) and args.out.endswith(".onnx"):
        raise problem("E0105", "what generates is a folder, and OUT is a file", f"name a folder: {args.out[:-5]}")


def _capture(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help=model_arguments.MODEL)
    command.add_argument("out", metavar="FILE", nargs="?", help="where the graph is written as text")
    model_arguments.add(command, _positive)
    command.add_argument("--task", help="such as text-generation; chooses the class (default: the one in config.json)")
    command.add_argument(
        "--dtype", choices=["fp32", "fp16", "bf16"], help="type of weights (default: the checkpoint's)"
    )
    command.add_argument("--no-dynamic-axes", action="store_true", help="every axis has the size of the example")
    command.set_defaults(join_lists=True)  # as modelport.capture has it
    _runs(command, "capture_model")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument("artifact", metavar="OUT", help="the folder of an export, or an .onnx or .pte file")
    command.add_argument("--model", metavar="MODEL", help="the checkpoint (default: where the file says it came from)")
    model_arguments.add_revision(command)
    model_arguments.add_inputs(command)
    command.add_argument("--atol", type=_tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    command.add_argument("--dtype", metavar="TYPE", help="of a model in several types: which (default: each of them)")
    quantization_arguments.add_quality(command)
    _runs(command, "check_artifact")


def _inspect(command: argparse.ArgumentParser) -> None:
    command.add_argument("artifact", metavar="FILE_OR_FOLDER", help="an .onnx, .pte or .pt2 file, a folder, or a name")
    command.add_argument("--html", metavar="FILE", help="write a page to look at, one file that needs no network")
    command.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="FILE",
        help="for the page: what export or check printed with --json; may be repeated",
    )
    model_arguments.add_revision(command)
    _runs(command, "inspect_any")


def _diff(command: argparse.ArgumentParser) -> None:
    kinds = "the folder of an export, an .onnx, .pte or .pt2 file, a checkpoint, or the text of a graph"
    command.add_argument("before", metavar="A", help=kinds)
    command.add_argument("after", metavar="B", help="the same")
    command.add_argument("--all", action="store_true", help="each difference, not only the first of each kind")
    command.add_argument("--html", metavar="FILE", help="write a page to look at as well")
    command.set_defaults(internal=2)
    _runs(command, "diff_artifacts")


def _run(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="FOLDER", help="the folder of an export")
    command.add_argument("prompt", metavar="PROMPT", nargs="?", help="what the text starts with, or the question")
    command.add_argument("--dtype", metavar="TYPE", help="of a model in several types: which (default: the most exact)")
    command.add_argument("--image", action="append", default=[], metavar="FILE", help="a picture; may be repeated")
    command.add_argument("--audio", action="append", default=[], metavar="FILE", help="a sound; may be repeated")
    model_arguments.add_inputs(command, "what the model is called with, in the place of a prompt")
    command.add_argument("--outputs", metavar="FILE", help="with --inputs: where its results go, .safetensors or .npz")
    command.add_argument("--raw", action="store_true", help="the prompt as it is, without the chat template")
    how = command.add_argument_group("how tokens are chosen (default: as generation_config.json says)")
    how.add_argument("--max-new-tokens", type=_positive, default=256, metavar="N", help="at most so many (default 256)")
    how.add_argument("--do-sample", action="store_true", help="draw the next token instead of taking the likeliest")
    how.add_argument("--temperature", type=_temperature, help="0: the likeliest; above 1: more surprising")
    how.add_argument("--top-k", type=_positive, metavar="K", help="draw from the K likeliest")
    how.add_argument("--top-p", type=_share, metavar="P", help="draw from the likeliest that together have P")
    how.add_argument("--seed", type=int, help="draws are the same again")
    how.add_argument("--num-beams", type=_positive, default=1, metavar="N", help="beam search; nothing is streamed")
    command.add_argument("--trust-remote-code", action="store_true", help="run the Python code in the folder, if any")
    command.add_argument("--threads", type=_positive, metavar="N", help="of onnxruntime (default: one for each core)")
    _runs(command, "run_model", quiet="print the text and errors, nothing else")


def _completion(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", metavar="SHELL", choices=["bash", "zsh", "fish"], help="bash, zsh or fish")
    _runs(command, "completion")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number from 1 on")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tokens: 0, which is all, or more")
    return int(text)


def _tolerance(text: str) -> float:
    return _number(text, "tolerance", "1e-3")


def _temperature(text: str) -> float:
    return _number(text, "temperature", "0.7")


def _share(text: str) -> float:
    number = _number(text, "share", "0.9")
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: a number up to 1, such as 0.9")
    return number


def _number(text: str, what: str, example: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}: a number such as {example}")
    return number


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]I?)?B?", text.strip().upper())
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a number with a unit, such as 2GB or 500MB")
    return max(1, int(float(found[1]) * _UNITS[found[2] or ""]))
