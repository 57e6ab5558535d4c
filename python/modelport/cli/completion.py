"""`modelport completion SHELL`: a script that lets a shell complete commands, flags and their values."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from .console import Console

# What stands for a file or a folder in the help; other values are numbers and names.
_PATHS = {"MODEL", "OUT", "MODEL OUT", "FILE", "FOLDER", "FILE_OR_FOLDER", "MODELS", "A", "B"}


def run(args: Any, console: Console) -> bool:
    import shtab

    from .arguments import parser

    commands = parser()
    for action in _actions(commands):
        if action.metavar in _PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(commands, shell=args.shell)
    console.result(script, {"shell": args.shell, "script": script})
    return True


def _actions(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in command._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
