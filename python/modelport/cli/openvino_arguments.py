"""The arguments of `modelport export openvino`: those of `export onnx`, and names of optimum-cli."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..base.errors import problem
from . import model_arguments

EXPORT = """Exports a checkpoint folder to an OpenVINO model and compares the values with the model's.

examples:
  modelport export openvino ./bert-base ./bert-ov
  modelport export openvino ./qwen3 ./qwen3-ov                   generates: the cache is state of the model
  modelport export openvino ./qwen3 ./out --dtype fp16 --atol 0.05
  modelport export openvino -m ./whisper ./out                   an encoder and a decoder, named as optimum-intel's

OUT is a folder, which optimum-intel, OpenVINO and modelport.load open. It needs pip install 'modelport[openvino]'.

exit codes: 0 exported and checked; 2 an error, or values that differ; 130 interrupted. After 2 and 130, what was at OUT
is still there."""


def add(command: argparse.ArgumentParser, positive: Callable[[str], int], tolerance: Callable[[str], float]) -> None:
    command.usage = "modelport export openvino MODEL OUT [options]"
    command.add_argument(
        "paths", nargs="+", metavar="MODEL OUT", help="checkpoint folder, or name on the hub; folder to write"
    )
    command.add_argument("-m", "--model", metavar="MODEL", help="the checkpoint folder, as in optimum-cli")
    what = command.add_argument_group("what is exported")
    model_arguments.add(what, positive)
    what.add_argument("--task", help="such as text-generation; chooses the class (default: the one in config.json)")
    what.add_argument(
        "--dtype",
        "--weight-format",
        choices=["fp32", "fp16", "bf16"],
        help="type of weights (default: the checkpoint's)",
    )
    what.add_argument("--no-dynamic-axes", action="store_true", help="every axis has the size of the example")
    what.add_argument(
        "--disable-stateful", action="store_true", help="the cache as inputs and outputs, not as state of the model"
    )
    checked = command.add_argument_group("the check")
    checked.add_argument("--atol", type=tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    checked.add_argument("--no-check", action="store_true", help="do not compare values with the model's")


def prepare(args: argparse.Namespace) -> None:
    paths = ([] if args.model is None else [args.model]) + args.paths
    usages = ("modelport export openvino MODEL OUT", "modelport export openvino -m MODEL OUT")
    model_arguments.take_paths(args, paths, *usages)
    if args.out.endswith(".xml"):
        raise problem("E0105", "OUT is a folder, and this is the name of a file", f"name a folder: {args.out[:-4]}")
    args.with_past = bool(args.task and args.task.endswith("-with-past"))
    if args.with_past:
        args.task = args.task.removesuffix("-with-past")
    # As the code that it has in common with export onnx asks.
    args.weights, args.external_data, args.client = "copy", True, None
