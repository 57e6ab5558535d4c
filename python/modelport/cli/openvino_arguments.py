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
    model_arguments.add_paths(command, "openvino", "folder to write")
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
    model_arguments.add_join_lists(what)
    what.add_argument(
        "--disable-stateful", action="store_true", help="the cache as inputs and outputs, not as state of the model"
    )
    checked = command.add_argument_group("the check")
    checked.add_argument("--atol", type=tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    checked.add_argument("--no-check", action="store_true", help="do not compare values with the model's")


def prepare(args: argparse.Namespace) -> None:
    usages = ("modelport export openvino MODEL OUT", "modelport export openvino -m MODEL OUT")
    model_arguments.take_paths(args, *usages)
    if args.out.endswith(".xml"):
        raise problem("E0105", "OUT is a folder, and this is the name of a file", f"name a folder: {args.out[:-4]}")
    model_arguments.take_task(args)
    # As the code that it has in common with export onnx asks.
    args.weights, args.external_data, args.client = "copy", True, None
