"""How `make setup` hands pip's settings to uv (tools/install_packages.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import install_packages
import pytest

LISTING = """\
:env:.find-links='/wheels'
global.cert='/etc/certs.crt'
global.extra-index-url='https://one.example/simple file:///two/simple'
global.find-links='/elsewhere'
install.index-url='https://mirror.example/simple'
global.index-url='https://other.example/simple'
freeze.all='true'
"""


def test_a_setting_of_the_environment_counts_before_one_of_install_and_that_before_a_global_one() -> None:
    settings = install_packages.settings_of(LISTING)
    assert settings["find-links"] == "/wheels"
    assert settings["index-url"] == "https://mirror.example/simple"
    assert "all" not in settings


def test_uv_is_told_all_indexes_and_the_certificate_of_pip() -> None:
    said = install_packages.for_uv(install_packages.settings_of(LISTING))
    assert said is not None
    arguments, variables = said
    pairs = set(zip(arguments[::2], arguments[1::2], strict=True))
    assert pairs == {
        ("--index-strategy", "unsafe-best-match"),
        ("--default-index", "https://mirror.example/simple"),
        ("--index", "https://one.example/simple"),
        ("--index", "file:///two/simple"),
        ("--find-links", "/wheels"),
    }
    assert variables == {"SSL_CERT_FILE": "/etc/certs.crt"}


def test_a_setting_that_uv_has_no_word_for_is_left_to_pip() -> None:
    assert install_packages.for_uv({"index-url": "https://a.example", "only-binary": ":all:"}) is None


@pytest.mark.parametrize(("exit_code", "installed"), [(0, True), (2, False)])
def test_where_uv_fails_it_is_said_so_and_pip_is_next(
    exit_code: int, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@"\nexit {exit_code}\n')
    uv.chmod(0o755)
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: LISTING)
    assert install_packages.install_by_uv(["-q", "a-package"]) == installed
    told, complained = capfd.readouterr()
    assert told.startswith(f"pip install --python {python} ") and told.endswith(" -q a-package\n")
    assert ("pip tries" in complained) != installed
