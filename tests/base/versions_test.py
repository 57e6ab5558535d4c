"""Releases that the source is for: said to pip, to users and to the checks alike."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import modelport
from modelport import _artifact
from modelport.base import versions
from modelport.cli import main
from modelport.cli.doctor import EXTRAS
from modelport.quick_imports.gate import TESTED

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_pip_hears_of_the_releases_that_the_checks_know() -> None:
    low, high = versions.OLDEST, versions.NEWEST
    major, last = versions.number(high["torch"])
    torch = f"torch>={low['torch']},<{major}.{last + 1}"
    assert {torch, f"transformers>={low['transformers']}"} <= set(PROJECT["project"]["dependencies"])
    assert torch in PROJECT["build-system"]["requires"]


def test_the_doctor_names_the_extras_of_the_package() -> None:
    extras = {one for packages in PROJECT["project"]["optional-dependencies"].values() for one in packages}
    for extra in EXTRAS:
        assert extra.requirement in extras
        assert extra.requirement in (f"{extra.name}>={extra.least}", f"{extra.name}=={extra.least}")


def test_quick_imports_were_tried_with_releases_of_that_span() -> None:
    for package, tried in TESTED.items():
        low, high = (versions.number(side[package]) for side in (versions.OLDEST, versions.NEWEST))
        assert all(low <= versions.number(release) <= high for release in tried)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert modelport.__version__.split("+")[0] == PROJECT["tool"]["dynamic-metadata"][0]["version"]
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"modelport {modelport.__version__}\n"


@pytest.mark.parametrize(("label", "version"), [("1", "0.1.0+torch2.13"), ("", "0.1.0")])
def test_a_build_says_which_torch_it_is_for(label: str, version: str, tmp_path: Path) -> None:
    """In a process where torch 2.13 is what is installed, whatever it is here."""
    metadata = tmp_path / "torch-2.13.1+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.1+cpu\n")
    code = "import wheel_metadata as m\nprint(m.dynamic_metadata({'version': '0.1.0'}, {}))\n"
    code += "m.build_state('sdist')\nprint(m.dynamic_metadata({'version': '0.1.0'}, {}))"
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'tools'}", "MODELPORT_LABEL": label}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    wheel, archive = map(eval, done.stdout.splitlines())
    assert wheel == {"version": version, "dependencies": ["torch==2.13.*"]}
    assert archive == {"version": "0.1.0", "dependencies": []}


def test_a_torch_of_the_same_minor_release_is_the_same() -> None:
    built = _artifact.torch_version
    assert versions.other_torch(built, f"{versions.minor(built)}.99+cu130") is None


def test_the_runtime_of_executorch_is_not_called_beside_a_torch_that_it_was_not_built_for() -> None:
    """It would take tensors of an older torch for what they are not."""
    code = (
        "import torch\nfrom modelport.runtimes.executorch import runtime\ntorch.__version__ = '2.12.1+cpu'\nruntime()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "runs beside torch 2.13 and newer, and torch 2.12.1+cpu is installed" in done.stderr
    assert "--no-check" in done.stderr


@pytest.mark.parametrize(
    ("release", "parts"), [("2.13.0+cpu", (2, 13, 0)), ("2.16.0a0+git12", (2, 16)), ("5.22.0.dev0", (5, 22, 0))]
)
def test_releases_are_compared_by_their_numbers(release: str, parts: tuple[int, ...]) -> None:
    assert versions.number(release) == parts
