"""Sessions of onnxruntime, without chatter and without torch, which may be imported while files are loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..artifacts.artifact import ALL_LOGITS, Artifact, further_outputs, refuse_outside, settable_flag
from ..artifacts.limits import CallLimits
from ..base.errors import ExportError, problem
from .huge_pages import Piece, memory_since, private_memory


class LoadedFile(NamedTuple):
    """`call` holds the limits of calls, and `session` gives what they need besides the outputs. `memory` is what came
    with it, weights for the most part."""

    artifact: Artifact
    call: CallLimits
    session: Any
    memory: list[Piece]


def load_file(path: Path, options: Mapping[str, Any]) -> LoadedFile:
    artifact = Artifact(path)
    call = CallLimits(artifact.limits)
    flag = ALL_LOGITS if artifact.gives_last_logits else None
    if artifact.takes_a_past:  # every token has sizes of its own, and a pattern of memory is made for each
        options = {"enable_mem_pattern": False, **options}
    before = private_memory()
    try:
        session = session_with_outputs(path, call.check_outputs, flag, **options)
    except ExportError:
        raise
    except Exception as error:  # onnxruntime's exceptions have no common class
        text = " ".join(str(error).split())
        raise problem("E0103", f"onnxruntime does not load {path}: {text}", "export it again") from error
    return LoadedFile(artifact, call, session, memory_since(before))


def quiet_session(
    model: bytes | str | os.PathLike[str],
    threads: int = 0,
    weights_in: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Any:
    """A session on a file, or on bytes whose weights may lie in the folder `weights_in`. `settings` are attributes of
    SessionOptions, or entries of its configuration, whose names have dots."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if threads := threads or threads_asked_for():
        options.intra_op_num_threads = threads
    if weights_in is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.fspath(weights_in))
    for name, value in settings.items():
        if "." in name:
            options.add_session_config_entry(name, str(value))
        else:
            setattr(options, name, value)
    source = model if isinstance(model, bytes) else os.fspath(model)
    if not isinstance(model, bytes):
        refuse_outside(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def session_with_outputs(path: Path, names: Sequence[str], flag: str | None = None, **settings: Any) -> Any:
    """A session on a file that gives values of these names besides its outputs, and takes a flag besides its inputs."""
    if not names and flag is None:
        return quiet_session(path, **settings)
    refuse_outside(path)
    more = further_outputs(names) + (settable_flag(flag) if flag else b"")
    return quiet_session(path.read_bytes() + more, weights_in=path.parent, **settings)


def threads_asked_for() -> int:
    """By the variable that torch obeys, which onnxruntime itself does not look at; 0 if there is none."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    threads_of_torch = getattr(sys.modules.get("torch"), "get_num_threads", None)  # none while it is being imported
    if asked and threads_of_torch is not None:
        return int(threads_of_torch())
    first = asked.split(",")[0].strip()
    return int(first) if first.isdigit() else 0


def needs_onnxruntime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise problem(
            "E0307",
            "a check runs the artifact in onnxruntime, which is not installed",
            "pip install onnxruntime",
            "export without a check: --no-check",
        ) from error


def check_options(options: Mapping[str, Any]) -> None:
    from onnxruntime import SessionOptions

    unknown = [name for name in options if "." not in name and not hasattr(SessionOptions, name)]
    if unknown:
        known = [name for name in vars(SessionOptions) if isinstance(vars(SessionOptions)[name], property)]
        what = f"onnxruntime's SessionOptions has no {', '.join(unknown)}"
        raise problem("E0306", what, f"it has: {', '.join(known)}" if known else "leave it out")


def as_written() -> dict[str, Any]:
    """Settings of a session that computes what the file says, without onnxruntime's own rewriting."""
    import onnxruntime

    return {"graph_optimization_level": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL}
