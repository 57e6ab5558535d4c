"""Locked versions and the table of tried ones: they name no place on a network, and fit what they were made of."""

from __future__ import annotations

import json
import re
from pathlib import Path

import list_requirements
import lock
import pytest
import try_versions
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCKED = [Requirement(line) for line in lock.CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
CLIENTS = json.loads((lock.CLIENTS / "package-lock.json").read_text())


def test_constraints_allow_what_the_project_asks_for() -> None:
    versions = {one.name: str(one.specifier).removeprefix("==") for one in LOCKED}
    pyproject = ROOT / "pyproject.toml"
    asked = map(
        Requirement, list_requirements.requirements(pyproject) + list_requirements.requirements(pyproject, "run")
    )
    for requirement in asked:
        name = canonicalize_name(requirement.name)
        if not lock.LEFT_OUT.fullmatch(name):
            assert name in versions, f"{name} is not locked: make lock"
            assert requirement.specifier.contains(versions[name]), f"{requirement}: make lock"


def test_constraints_are_versions_alone_and_leave_torch_to_the_makefile() -> None:
    for one in LOCKED:
        assert one.url is None and re.fullmatch(r"==[\w.]+", str(one.specifier)), one
        assert not lock.LEFT_OUT.fullmatch(one.name), one


def test_the_lock_of_npm_is_of_these_packages_for_every_system_and_names_no_registry() -> None:
    packages = CLIENTS["packages"]
    wanted = json.loads((lock.CLIENTS / "package.json").read_text())
    assert packages[""]["dependencies"] == wanted["dependencies"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)
    assert {"x64", "arm64"} <= {cpu for package in packages.values() for cpu in package.get("cpu", ())}


def test_a_package_that_a_requirement_brings_along_is_locked_too() -> None:
    found = lock.closure(["pytest"])
    assert {"pytest", "pluggy", "iniconfig"} <= set(found)
    assert "torch" not in lock.closure(["torch"])


PAGE = f"before\n{try_versions.BEGIN}\n{try_versions.END}\nafter\n"


def row(name: str, outcome: str = "same values") -> dict[str, str]:
    return {"row": name, "pt2": outcome, "onnx": "same values", "pte": "no runtime"}


def test_the_table_of_one_pair_leaves_that_of_the_other() -> None:
    both = try_versions.written(PAGE, {"oldest": [row("bert")], "newest": [row("bert"), row("vit")]})
    assert "| vit | not tried | not tried | not tried | same values | same values | no runtime |" in both
    again = try_versions.written(both, {"oldest": [row("bert", "E0203"), row("vit")]})
    assert "| bert | E0203 | same values | no runtime | same values | same values | no runtime |" in again
    assert "| vit | same values | same values | no runtime | same values | same values | no runtime |" in again
    assert again.startswith("before\n") and again.endswith("\nafter\n")


def test_other_values_a_process_that_ended_and_a_refusal_of_the_runtime_are_failures() -> None:
    assert try_versions.is_fine("pte", "E0203") and try_versions.is_fine("pte", "no runtime")
    assert not try_versions.is_fine("onnx", "E0203")
    for outcome in ("E0301", "AssertionError", "the process ended with -11"):
        assert not try_versions.is_fine("pte", outcome)


@pytest.mark.parametrize("pair", try_versions.PAIRS)
def test_the_pairs_are_the_ends_that_the_package_names(pair: str) -> None:
    from modelport.base import versions

    side = {"oldest": versions.OLDEST, "newest": versions.NEWEST}[pair]
    assert tuple(map(versions.minor, try_versions.PAIRS[pair])) == (side["torch"], side["transformers"])
    assert try_versions.BEGIN in try_versions.TABLE.read_text()
