"""Shell completion, asked of a real bash."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modelport.cli import main

ASK = """
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
$(complete -p modelport | grep -o -- '-F [^ ]*' | cut -c4-)
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "modelport.bash"
    command = [sys.executable, "-m", "modelport", "completion", "bash"]
    file.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return file


def offers(script: Path, *words: str) -> list[str]:
    """What bash has for the last word."""
    asked = ASK.format(words=shlex.join(["modelport", *words]))
    command = ["bash", "--norc", "-c", f"source {shlex.quote(str(script))}; {asked}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=script.parent)
    assert found.stderr == ""
    return found.stdout.split()


def test_bash_completes_commands_targets_flags_and_their_values(script: Path) -> None:
    assert {"export", "inspect", "run", "completion"} <= set(offers(script, ""))
    assert offers(script, "insp") == ["inspect"]
    assert {"onnx", "executorch", "pt2"} <= set(offers(script, "export", ""))
    assert offers(script, "export", "onnx", "--opse") == ["--opset"]
    assert offers(script, "export", "onnx", "--for", "") == ["genai", "transformers.js"]


def test_bash_completes_files_where_a_command_takes_them(script: Path) -> None:
    for words in (["inspect"], ["export", "onnx"], ["export", "onnx", "--inputs"], ["run"], ["diff"]):
        assert offers(script, *words, "modelp") == ["modelport.bash"], words
    assert offers(script, "export", "onnx", "--dtype", "modelp") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells_name_every_command(shell: str, capsys: Any) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in ("export", "capture", "check", "inspect", "diff", "fleet", "run"):
        assert command in script
