"""`modelport doctor`: what is installed, what is off, and the command that mends it. It needs no extension."""

from __future__ import annotations

import argparse
import dataclasses
import platform
import shutil
import subprocess
import sys
from importlib import import_module
from typing import Any

from ..base.versions import (
    NEWEST,
    OLDEST,
    RUNTIME_TORCH,
    fits_executorch,
    installed,
    minor,
    number,
    other_torch,
    own_version,
)
from ..quick_imports.gate import untested_packages
from .console import Console

_BUILD = "in its source folder: pip install --no-build-isolation ."


@dataclasses.dataclass(frozen=True)
class Extra:
    """A package that one feature needs, as pyproject.toml has it."""

    name: str
    requirement: str
    without: str  # what cannot be done
    least: str = ""


EXTRAS = (
    Extra("onnxruntime", "onnxruntime>=1.23", "ONNX files are not run: no check, no load, no run", "1.23"),
    Extra("onnx", "onnx>=1.19", "ONNX files are not looked into node by node", "1.19"),
    Extra("executorch", "executorch==1.5.1", ".pte files are not run: no check, no load, no run", "1.5.1"),
    Extra("onnxruntime-genai", "onnxruntime-genai>=0.18", "folders of --for genai are not tried here", "0.18"),
    Extra("openvino", "openvino>=2026.4", "no export to OpenVINO, and its models are not run", "2026.4"),
    Extra("ray", "ray>=2.44", "fleets stay on this machine", "2.44"),
)
_LISTED = ("huggingface_hub", "safetensors", "numpy")
_NODE = 18  # the oldest that transformers.js runs in


@dataclasses.dataclass(frozen=True)
class Finding:
    what: str
    mend: str
    fatal: bool  # nothing works; else one feature does not


def run(_args: argparse.Namespace, console: Console) -> bool:
    built_for, findings = _extension()
    findings += _torch(built_for) + _transformers()
    if not any(finding.fatal for finding in findings):
        findings += _loading()
    works = not any(finding.fatal for finding in findings)
    versions = _versions(built_for)
    findings += _extras() + _node(versions["node"]) + _plain_imports()
    text = "\n".join([*_table(versions), "", *_told(findings), _verdict(works)])
    data = {"ok": works, "versions": versions, "findings": [dataclasses.asdict(finding) for finding in findings]}
    if console.quiet and not console.as_json:
        for finding in findings:
            if finding.fatal:
                console.error(f"{finding.what}; mend it with: {finding.mend}")
    console.result(text, data)
    return works


# --- what is installed ------------------------------------------------------------------------------------------------


def _versions(built_for: str | None) -> dict[str, str | None]:
    node = shutil.which("node")
    named = ("torch", "transformers", *_LISTED, *(extra.name for extra in EXTRAS))
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "modelport": own_version(),
        "built for torch": built_for,
        **{name: installed(name) for name in named},
        "node": _said([node, "--version"]).lstrip("v") if node else None,
    }


def _table(versions: dict[str, str | None]) -> list[str]:
    width = max(map(len, versions))
    return [f"{name:{width}}  {found or '-'}" for name, found in versions.items()]


def _told(findings: list[Finding]) -> list[str]:
    lines = []
    for finding in sorted(findings, key=lambda one: not one.fatal):
        lines += [f"{'off ' if finding.fatal else 'note'}  {finding.what}", f"      {finding.mend}"]
    return [*lines, ""] if lines else lines


def _verdict(works: bool) -> str:
    return "modelport works here" if works else "modelport does not work here before that is mended"


# --- what is off ------------------------------------------------------------------------------------------------------


def _extension() -> tuple[str | None, list[Finding]]:
    """The torch that the extension was built for. Its smaller half needs no torch and says so."""
    try:
        artifact: Any = import_module("modelport._artifact")
    except ImportError as error:
        found = f"the extension of modelport is missing, or was built for another Python: {error}"
        return None, [Finding(found, _BUILD, fatal=True)]
    findings = []
    if not hasattr(artifact, "read_executorch"):
        without = "this build has no ExecuTorch: export executorch is refused"
        mend = "apt-get install flatbuffers-compiler libflatbuffers-dev; pip install --no-deps executorch==1.5.1; then "
        findings.append(Finding(without, mend + _BUILD, fatal=False))
    return artifact.torch_version, findings


def _torch(built_for: str | None) -> list[Finding]:
    found = installed("torch")
    if found is None:
        wanted = f"torch=={minor(built_for)}.*" if built_for else f"torch>={OLDEST['torch']},<={NEWEST['torch']}.99"
        return [Finding("torch is not installed", f"pip install '{wanted}'", fatal=True)]
    wrong = other_torch(built_for, found) if built_for else None
    return [Finding(wrong[0], ", or ".join(wrong[1]), fatal=True)] if wrong else []


def _transformers() -> list[Finding]:
    found, least, most = installed("transformers"), OLDEST["transformers"], NEWEST["transformers"]
    mend = f"pip install 'transformers>={least}'"
    if found is None:
        return [Finding("transformers is not installed", mend, fatal=True)]
    if number(found) < number(least):
        return [Finding(f"transformers {found} is too old, {least} is the oldest", f"{mend} -U", fatal=True)]
    if number(minor(found)) > number(most):
        newer = f"transformers {found} is newer than {most}, the newest that was tried"
        return [Finding(newer, f"if something fails: pip install 'transformers=={most}.*'", fatal=False)]
    return []


# What each has to be able to import, one after the other.
_LOADED = {
    "torch": "import torch",
    "transformers": "import transformers",
    "the extension of modelport": "import modelport.base.core",
    "executorch": "from executorch.extension.pybindings import _C",
}


def _loading() -> list[Finding]:
    """Versions that fit may still not load: tried in a process of its own, because a library may take it down."""
    steps = {name: code for name, code in _LOADED.items() if name != "executorch" or installed(name)}
    code = "".join(f"print({name!r}, flush=True)\n{statement}\n" for name, statement in steps.items())
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, errors="replace")
    if tried.returncode == 0:
        fits = "executorch" not in steps or fits_executorch(installed("torch") or "")
        return [] if fits else [_no_runtime(f"needs torch {RUNTIME_TORCH} or newer", "no check, no load, no run")]
    reached = [line for line in tried.stdout.splitlines() if line in steps][-1]
    reason = (tried.stderr.strip().splitlines() or [f"the process ended with {tried.returncode}"])[-1]
    if reached == "executorch":
        return [_no_runtime(f"does not load beside torch {installed('torch')}", reason)]
    again = reached if reached in ("torch", "transformers") else None
    mend = f"pip install --force-reinstall {again}=={installed(again)}" if again else _BUILD
    return [Finding(f"{reached} does not load: {reason}", mend, fatal=True)]


def _no_runtime(what: str, reason: str) -> Finding:
    told = f"executorch {installed('executorch')} {what}, so that .pte files are not run: {reason}"
    return Finding(told, "export executorch with --no-check", fatal=False)


def _extras() -> list[Finding]:
    findings = []
    for extra in EXTRAS:
        found = installed(extra.name)
        if found is None:
            findings.append(Finding(f"{extra.name} is not installed: {extra.without}", _install(extra), fatal=False))
        elif number(found) < number(extra.least):
            old = f"{extra.name} {found} is too old, {extra.least} is the oldest: {extra.without}"
            findings.append(Finding(old, f"{_install(extra)} -U", fatal=False))
    return findings


def _install(extra: Extra) -> str:
    return f"pip install '{extra.requirement}'"


def _node(found: str | None) -> list[Finding]:
    without = "transformers.js cannot be tried here, browsers are another matter"
    if found is None:
        return [Finding(f"node is not installed: {without}", f"install Node.js {_NODE} or newer", fatal=False)]
    if number(found) < (_NODE,):
        return [Finding(f"node {found} is too old: {without}", f"install Node.js {_NODE} or newer", fatal=False)]
    return []


def _plain_imports() -> list[Finding]:
    """Beside releases that quick imports were not tried with, commands import all of torch: slower, nothing else."""
    untested = [one for one in untested_packages() if "unknown" not in one]
    if not untested:
        return []
    what = f"commands start some seconds later beside {' and '.join(untested)}: quick imports were not tried there"
    return [Finding(what, "nothing to mend; docs/quick-imports.md tells more", fatal=False)]


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout.strip()
