"""The command line: `modelport export onnx`, `check`, `inspect`. torch is imported only where a model is captured."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..base.errors import ExportError
from ..base.printable import printable
from ..quick_imports import command as quick_imports
from .arguments import parser
from .console import Console, Unsaid

OK, INTERNAL, USER, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code: 0 done, 1 a mistake of ours, 2 an error or a mismatch, 130 ctrl-C.

    Without `argv` it is the command of this process, which ends with it."""
    if argv is None:
        quick_imports.allow()
    code = _run(argv)
    if argv is None:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """Ends the process without taking its modules apart one by one, which takes a while after torch was imported."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _run(argv: Sequence[str] | None) -> int:
    try:
        args = parser().parse_args(argv)
        return _done(argv, args, Console(quiet=args.quiet, as_json=args.json))
    except BrokenPipeError:  # the reader of our output has gone, as in `modelport inspect model.onnx | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Unsaid as error:
        print(f"error: the result could not be printed: {error}", file=sys.stderr)
        return USER


def _done(argv: Sequence[str] | None, args: Any, console: Console) -> int:
    try:
        done = args.run(args, console)
        return done if type(done) is int else OK if done else USER  # a number is an exit code of the command's own
    except (BrokenPipeError, Unsaid):
        raise
    except KeyboardInterrupt:
        console.error("interrupted; what was there before is still there")
        return INTERRUPTED
    except ExportError as error:
        console.failure(error)
        return USER
    except OSError as error:
        console.failure(_of_system(error))
        return USER
    except Exception as error:
        import traceback

        if argv is None:
            quick_imports.start_over(console)
        print(printable(traceback.format_exc()), end="", file=sys.stderr)
        console.error(f"internal error, please report with the lines above: {type(error).__name__}: {error}")
        return getattr(args, "internal", INTERNAL)


def _of_system(error: OSError) -> ExportError:
    """What the system refused, in our words."""
    import errno

    from ..base.errors import problem

    name = f"{error.filename}: " if error.filename else ""
    ways = {
        errno.ENOSPC: "free some disk space, or write to another folder",
        errno.EDQUOT: "free some of your disk space, or write to another folder",
        errno.EFBIG: "raise the limit on the size of a file: ulimit -f unlimited",
        errno.EROFS: "write to a folder on a disk that is not read-only",
    }
    way = ways.get(error.errno or 0, "use files and folders that exist and that you may read or write")
    return problem("E0103", f"{name}{error.strerror or error}", way)
