"""`modelport doctor`: what it tells of this machine, and of machines where something is off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import modelport
from modelport.base.versions import installed
from modelport.cli import main

SOURCES = Path(modelport.__file__).parent.parent
MAIN = "import sys\nfrom modelport.cli import main\nsys.exit(main({arguments}))"


def doctor(before: str = "", first: Path | None = None, options: tuple[str, ...] = ()) -> tuple[int, dict]:
    """Its exit code and its JSON in a process of its own, with a folder that stands before all others."""
    code = before + MAIN.format(arguments=["doctor", "--json"])
    environment = os.environ | ({"PYTHONPATH": str(first)} if first else {})
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def told(report: dict, *, fatal: bool) -> str:
    return "\n".join(f"{one['what']}: {one['mend']}" for one in report["findings"] if one["fatal"] == fatal)


def pretend(folder: Path, package: str, release: str) -> Path:
    """A folder in which Python finds this release of a package."""
    metadata = folder / f"{package}-{release}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {release}\n")
    return folder


def test_it_lists_what_is_installed_and_says_that_it_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert f"{installed('torch')}\n" in said and f"{installed('transformers')}\n" in said
    assert modelport.__version__ in said and said.endswith("modelport works here\n")


def test_with_quiet_it_says_nothing_where_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_it_runs_without_the_extension() -> None:
    code, report = doctor("import sys\nsys.modules['modelport._artifact'] = None\n")
    assert code == 2 and not report["ok"]
    assert "the extension of modelport is missing" in told(report, fatal=True)
    assert "pip install --no-build-isolation ." in told(report, fatal=True)


def test_it_runs_where_nothing_at_all_is_installed() -> None:
    code, report = doctor(f"import sys\nsys.path.insert(0, {str(SOURCES)!r})\n", options=("-I", "-S"))
    assert code == 2
    fatal = told(report, fatal=True)
    assert "torch is not installed" in fatal and "transformers is not installed" in fatal
    assert "pip install 'onnxruntime>=1.23'" in told(report, fatal=False)


def test_a_torch_that_it_was_not_built_for_is_off_and_the_way_back_is_named(tmp_path: Path) -> None:
    code, report = doctor(first=pretend(tmp_path, "torch", "2.12.1"))
    fatal = told(report, fatal=True)
    assert code == 2 and "torch 2.12.1 is installed" in fatal
    assert "pip install 'torch==" in fatal and "--no-build-isolation" in fatal


def test_a_torch_that_the_source_does_not_build_for_is_no_reason_to_build(tmp_path: Path) -> None:
    _, report = doctor(first=pretend(tmp_path, "torch", "2.10.0"))
    assert "pip install 'torch==" in told(report, fatal=True)
    assert "--no-build-isolation" not in told(report, fatal=True)


def test_a_transformers_that_is_too_old_is_off(tmp_path: Path) -> None:
    code, report = doctor(first=pretend(tmp_path, "transformers", "5.12.1"))
    assert code == 2 and "transformers 5.12.1 is too old" in told(report, fatal=True)


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict]:
    """A machine with a transformers that nobody tried and an onnxruntime that is old: both load."""
    folder = pretend(tmp_path_factory.mktemp("packages"), "transformers", "5.99.0")
    return doctor(first=pretend(folder, "onnxruntime", "1.20.1"))


def test_a_transformers_that_nobody_tried_gets_a_note(unusual: tuple[int, dict]) -> None:
    code, report = unusual
    assert code == 0 and "newer than" in told(report, fatal=False)
    assert "commands start some seconds later beside transformers 5.99.0" in told(report, fatal=False)


def test_a_torch_that_does_not_load_is_off(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')")
    code, report = doctor(first=tmp_path)
    assert code == 2 and "torch does not load: ImportError: libcudart.so.13" in told(report, fatal=True)
    assert "pip install --force-reinstall torch==" in told(report, fatal=True)


def test_a_runtime_that_does_not_load_beside_this_torch_is_a_note(tmp_path: Path) -> None:
    package = pretend(tmp_path, "executorch", "1.5.1") / "executorch" / "extension" / "pybindings"
    package.mkdir(parents=True)
    (package / "_C.py").write_text("raise ImportError('undefined symbol: _ZN3c1010')")
    code, report = doctor(first=tmp_path)
    assert code == 0 and "undefined symbol" in told(report, fatal=False)
    assert "--no-check" in told(report, fatal=False)


def test_an_old_onnxruntime_is_a_note(unusual: tuple[int, dict]) -> None:
    code, report = unusual
    assert code == 0 and "onnxruntime 1.20.1 is too old" in told(report, fatal=False)
