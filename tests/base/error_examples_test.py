"""The examples of docs/errors.md, each of which has to end in the error under whose heading it stands."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch

import modelport
from modelport.base.errors import CODES

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^## (E\d{4}) \w+$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> dict[str, str]:
    page = (ROOT / "docs/errors.md").read_text()
    found = {code: EXAMPLE.findall(text) for code, text in SECTION.findall(page)}
    return {code: "\n".join(texts) for code, texts in found.items() if texts}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.save("llama", tmp_path_factory.mktemp("errors"))


def names_of_examples(checkpoint: Path, place: Path) -> dict[str, Any]:
    from transformers import AutoModelForCausalLM

    folder, out = place / "checkpoint", place / "out"
    folder.mkdir()
    for file in checkpoint.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    out.mkdir()
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    inputs = {"input_ids": torch.randint(0, 100, (2, 5))}
    return {"modelport": modelport, "torch": torch, "model": model, "inputs": inputs, "folder": folder, "out": out}


@pytest.mark.parametrize("code", examples())
def test_an_example_of_the_page_ends_in_its_error(
    code: str, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(modelport.ExportError) as error:
        exec(compile(examples()[code], f"example of {code}", "exec"), names_of_examples(checkpoint, tmp_path))
    assert error.value.code == code, str(error.value)


def codes_in_the_sources() -> dict[str, list[str]]:
    """Every code that a call of `problem` has, with the places."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "python/modelport").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "problem":
                for argument in node.args[:1]:
                    if isinstance(argument, ast.Constant):
                        found.setdefault(argument.value, []).append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return found


def test_codes_of_python_are_raised_and_have_examples_and_no_code_is_for_everything() -> None:
    raised = codes_in_the_sources()
    page = dict(SECTION.findall((ROOT / "docs/errors.md").read_text()))
    assert sorted(set(raised) - set(page)) == [], "codes without a section in docs/errors.md"
    assert sorted(set(CODES) - set(raised)) == [], "codes that nobody raises"
    without = [code for code in (*CODES, "E0301", "E0302", "E0303", "E0304") if code not in examples()]
    assert without == [], "sections without an example"
    # A code with more places than this says little to whoever looks it up: divide it by what went wrong.
    assert max(len(places) for places in raised.values()) <= 50
