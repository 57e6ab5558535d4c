"""The arguments of `modelport fleet` and of `modelport export pt2`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from ..fleet.jobs import FORMATS
from . import model_arguments

PT2 = """Exports a checkpoint folder to an archive that torch.export.load reads, one graph without a cache.

examples:
  modelport export pt2 ./bert-base bert.pt2
  modelport export pt2 ./vit ./out                    out/model.pt2, and the configuration beside it

exit codes: 0 exported and checked; 2 an error, or values that differ; 130 interrupted"""

FLEET = """Exports many models: in processes side by side, as many as there is memory for, each model once.

examples:
  modelport fleet models.txt ./out                              a checkpoint folder a line; flags of its own may follow
  modelport fleet models.txt ./out --format onnx --format pt2
  modelport fleet models.txt ./out --onnx "--dtype fp16" --no-check --timeout 120
  modelport fleet models.txt ./out --ray auto                   on the nodes of a Ray cluster

OUT gets NAME/FORMAT for each model, fleet.jsonl with a line for each, and index.html to look at. Run it again to go on
where it was interrupted: what was done is not done again, wherever the same checkpoint lies.

exit codes: 0 all were exported; 2 some were not, or an error; 130 interrupted"""


def add_pt2(
    command: argparse.ArgumentParser, positive: Callable[[str], int], tolerance: Callable[[str], float]
) -> None:
    command.usage = "modelport export pt2 MODEL OUT [options]"
    command.add_argument(
        "paths", nargs="+", metavar="MODEL OUT", help="checkpoint folder; folder or .pt2 file to write"
    )
    command.add_argument("--task", help="such as text-generation; chooses the class (default: the one in config.json)")
    command.add_argument(
        "--dtype", choices=["fp32", "fp16", "bf16"], help="type of weights (default: the checkpoint's)"
    )
    command.add_argument("--no-dynamic-axes", action="store_true", help="every axis has the size of the example")
    model_arguments.add_join_lists(command)
    model_arguments.add(command, positive)
    command.add_argument("--atol", type=tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    command.add_argument("--no-check", action="store_true", help="do not compare values with the model's")


def two_paths(args: argparse.Namespace) -> None:
    model_arguments.take_paths(args, "modelport export pt2 MODEL OUT")
    args.weights = "copy"


def add_fleet(command: argparse.ArgumentParser, positive: Callable[[str], int], size: Callable[[str], int]) -> None:
    command.add_argument(
        "models", metavar="MODELS", help="a file with a checkpoint folder, or a name on the hub, a line"
    )
    command.add_argument("out", metavar="OUT", help="the folder for all of them")
    what = command.add_argument_group("what is exported")
    what.add_argument("--format", action="append", choices=FORMATS, help="may be repeated (default: onnx)")
    for form in FORMATS:
        flags = f"flags of export {form} for all models, as one text"
        what.add_argument(f"--{form}", default="", metavar="FLAGS", help=flags)
    what.add_argument("--no-check", action="store_true", help="do not compare values with the models'")
    how = command.add_argument_group("how it is done")
    how.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes (default: one a processor)")
    how.add_argument(
        "--memory", type=size, metavar="SIZE", help="for all of them, such as 12GB (default: what is free)"
    )
    how.add_argument("--timeout", type=positive, default=900, metavar="SECONDS", help="of one model (default 900)")
    how.add_argument("--cache", metavar="FOLDER", help="where what was made is kept (default: OUT/.cache)")
    how.add_argument("--again", action="store_true", help="try models again that were refused before")
    how.add_argument("--ray", metavar="ADDRESS", help="on the nodes of this Ray cluster; auto: the one of this machine")
