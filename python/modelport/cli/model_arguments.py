"""Arguments of every command that takes a model: which one it is, and the example that it is captured with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import problem

MODEL = "checkpoint folder, or name on the hub"


def add_paths(command: Any, form: str, out: str) -> None:
    command.usage = f"modelport export {form} MODEL OUT [options]"
    command.add_argument("paths", nargs="+", metavar="MODEL OUT", help=f"{MODEL}; {out}")
    command.add_argument("-m", "--model", metavar="MODEL", help="the checkpoint folder, as in optimum-cli")


def take_paths(args: Any, *usages: str) -> None:
    """MODEL and OUT of an export, however they were given: in their order, or by flags of optimum-cli."""
    flags = [getattr(args, name, None) for name in ("model", "output_dir")]
    paths = [path for path in (flags[0], *args.paths, flags[1]) if path is not None]
    if len(paths) != 2:
        what = "OUT is missing" if len(paths) < 2 else f"there are {len(paths)} paths, and MODEL and OUT are two"
        raise problem("E0306", what, *usages)
    args.model, args.out = paths


def take_task(args: Any) -> None:
    """Without what optimum says of models with a cache, which `with_past` has."""
    args.with_past = bool(args.task and args.task.endswith("-with-past"))
    if args.with_past:
        args.task = args.task.removesuffix("-with-past")


def add_revision(group: Any) -> None:
    group.add_argument("--revision", metavar="REV", help="of a model of the hub: a branch, a tag or a commit")


def add_inputs(group: Any, what: str = "the example (default: made by rule)") -> None:
    group.add_argument("--inputs", metavar="FILE", help=f"{what}: .safetensors, .npz, or a .py with inputs = {{...}}")


def add_join_lists(group: Any) -> None:
    group.add_argument(
        "--join-lists",
        action="store_true",
        help="a list with a tensor for each image as one output with all, for any number of images",
    )


def add(group: Any, positive: Callable[[str], int]) -> None:
    add_revision(group)
    group.add_argument("--batch", "--batch_size", type=positive, default=2, help="size of the example (default 2)")
    group.add_argument("--sequence", "--sequence_length", type=positive, help="length of the example")
    add_inputs(group)
    group.add_argument("--trust-remote-code", action="store_true", help="run the Python code in the checkpoint folder")
