"""Code in the documents does what they say: Python runs, commands are commands of ours, and no flag is missing."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import modelport
from modelport.cli import main
from modelport.cli.arguments import parser

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Pages that stand on their own: all their commands and all their Python run, from the first to the last.
COMPLETE = ["README.md", "docs/tour.md", *(f"docs/how-to/{name}.md" for name in ("pt2", "onnxruntime", "executorch"))]
# Pages that speak of "model" and "inputs" and mean those of the reader; errors.md has a test of its own.
ABOUT = ["docs/generation.md", "docs/onnx.md", "docs/observer.md", "docs/openvino.md"]
# Run where the clients are (tests/clients).
OF_CLIENTS = [
    "docs/clients.md",
    "docs/how-to/genai.md",
    "docs/how-to/transformers-js.md",
    "docs/how-to/onnxruntime-web.md",
]


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert len(found) > 20
    return found


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def commands(text: str) -> Iterator[list[str]]:
    """The words of each line that begins with modelport, without what explains it or what is done with its output."""
    for line in text.splitlines():
        if line.startswith("modelport "):
            command = re.split(r"\s{2,}|\s#|\s[>|]\s", line)[0]
            yield shlex.split(command.replace("[", "").replace("]", ""))[1:]


def runs(words: list[str]) -> None:
    """What is compared after an export, and by `check`, has tests of its own; here it would take a minute."""
    if words[0] == "check":
        return
    further = {"export": ["--no-check"], "run": ["--max-new-tokens", "4"]}.get(words[0], [])
    assert main([*words, *further]) == 0, words


def test_every_page_with_python_is_in_one_of_the_lists() -> None:
    with_python = {str(page.relative_to(ROOT)) for page in pages() if "```python" in page.read_text()}
    listed = {*COMPLETE, *ABOUT, *OF_CLIENTS, "docs/errors.md"}
    assert sorted(with_python - listed) == []


@pytest.mark.parametrize("page", COMPLETE)
def test_a_page_that_stands_on_its_own_runs_from_its_first_line_to_its_last(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    done = 0
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec"), names)
            done += 1
        for words in commands(text):
            runs(words)
            done += 1
    assert done > 3


@pytest.fixture
def names_of_readers(tmp_path: Path) -> dict[str, Any]:
    import torch
    from tiny_generators import DECODERS, made, prompt, whisper
    from tiny_models import tiny

    model, inputs = made(DECODERS["llama"]), prompt(2, 6)
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    bert = tiny("bert for masked words")
    bert.config.architectures = [type(bert).__name__]
    modelport.OnnxExporter().export(bert, dict(inputs), {"dynamic": True}).save(tmp_path / "bert-onnx/model.onnx")
    bert.config.save_pretrained(tmp_path / "bert-onnx")
    given = {"model": model, "inputs": inputs, "ids": ids, "input_ids": ids, "mask": mask, "modelport": modelport}
    return given | {"whisper": made(whisper), "features": torch.randn(1, 8, 60)}


@pytest.mark.parametrize("page", ABOUT)
def test_python_about_a_model_of_the_reader_runs_with_one(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names_of_readers: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = [text for language, text in blocks(page) if language == "python"]
    assert code
    for text in code:
        exec(compile(text, page, "exec"), names_of_readers)


def commands_of_pages() -> list[tuple[str, list[str]]]:
    found = [
        (str(page.relative_to(ROOT)), words)
        for page in pages()
        for _, text in BLOCK.findall(page.read_text())
        for words in commands(text)
    ]
    assert len(found) > 40
    return found


def test_every_command_in_the_documents_is_one_that_the_command_line_takes(capsys: Any) -> None:
    bad = []
    for page, words in commands_of_pages():
        try:
            parser().parse_args(words)
        except SystemExit:
            bad.append(f"{page}: {shlex.join(words)}: {capsys.readouterr().err.splitlines()[-1]}")
    assert bad == []


def actions_of(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in command._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from actions_of(below)


def test_the_documents_name_every_flag_and_no_flag_that_there_is_not() -> None:
    actions = list(actions_of(parser()))
    assert len(actions) > 80
    text = "\n".join(page.read_text() for page in ROOT.glob("docs/**/*.md"))
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
    unnamed = [action.option_strings for action in actions if not named & set(action.option_strings)]
    assert unnamed == [], "not in docs/"
    known = {flag for action in actions for flag in action.option_strings}
    assert sorted(set(re.findall(r"`(--[a-z][\w-]*)", text)) - known) == [], "not in the parser"
