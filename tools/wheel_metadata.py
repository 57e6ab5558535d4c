"""What scikit-build-core asks while it builds: which torch the extension is for.

It becomes a requirement, torch==2.15.*. With MODELPORT_LABEL=1 in the environment the version says it, too
(0.1.0+torch2.15), so that wheels for several releases of torch can lie in one folder. Without, there is no label: the
version of a source archive must be that of what is built from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

_states = {"now": "wheel"}


def build_state(state: str) -> None:
    _states["now"] = state


def dynamic_metadata(settings: Mapping[str, Any], _project: Mapping[str, Any]) -> dict[str, Any]:
    if _states["now"] == "sdist":  # of no torch yet
        return {"version": settings["version"], "dependencies": []}
    torch = ".".join(version("torch").split("+")[0].split(".")[:2])
    label = f"+torch{torch}" if os.environ.get("MODELPORT_LABEL") == "1" else ""
    return {"version": settings["version"] + label, "dependencies": [f"torch=={torch}.*"]}


def dynamic_wheel(_settings: Mapping[str, Any]) -> dict[str, bool]:
    """Wheels have requirements that their source archive does not name."""
    return {"dependencies": True}
