"""What a file is laid out for: on x86_64 attention has a branch for one token, which any processor runs."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoints
import torch
from tiny_decoders import DECODERS, exported, made, padded

import modelport
from modelport import ExportError, OnnxConfig
from modelport.cli import main

# Their scores have a cap or sinks: the kernel has no blocks for them, so that no branch goes around these.
WITHOUT_BLOCKS = ("gemma2", "gpt_oss")


def program_of(name: str, processor: str, **config: Any) -> Any:
    return exported(made(name), processor=processor, **config)["model"]


def lines_of_branches(program: Any) -> list[str]:
    return re.findall(r"onnx\.If\(.*", str(program.graph))


@pytest.mark.parametrize("name", DECODERS)
def test_attention_of_one_token_has_no_factor_left_and_sinks(name: str) -> None:
    program = program_of(name, "x86_64")
    branches = lines_of_branches(program)
    assert len(branches) == (0 if name in WITHOUT_BLOCKS else 2)
    for line in branches:
        alone, several = line.split(" else=")
        assert "scale=1.0}" in alone and re.search(r", , , input_\d+\) \{", alone)
        assert several.count("GroupQueryAttention(input_1, ") == 1 and ", , , input_" not in several
    outside = re.findall(r"= com\.microsoft\.GroupQueryAttention\(inputs=.*", str(program.graph))
    assert len(outside) == 2 - len(branches) and all("scale=1.0" in line for line in outside)


def test_other_processors_get_no_branch() -> None:
    for processor in ("aarch64", "any"):
        assert not lines_of_branches(program_of("llama", processor))


def test_in_fp16_attention_stays_as_it_is_and_the_file_says_why() -> None:
    program = exported(made("llama").half(), processor="x86_64")["model"]
    assert not lines_of_branches(program)
    assert ("attention of single tokens for x86_64", "the kernel has other products in this type") in {
        (fusion, why) for fusion, why, _ in program.graph.fusions()
    }


@pytest.mark.parametrize(
    ("machine", "has_branches"), [("x86_64", True), ("AMD64", True), ("arm64", False), ("mips", False)]
)
def test_without_a_word_it_is_this_machine(machine: str, has_branches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert bool(lines_of_branches(program_of("llama", None))) == has_branches  # type: ignore[arg-type]


def test_a_processor_that_nothing_is_laid_out_for_is_refused() -> None:
    with pytest.raises(ExportError, match=r"(?s)E0306.*processor='z80' is none.*processor='x86_64' or"):
        OnnxConfig(processor="z80")


@pytest.mark.parametrize("name", ["qwen3", "mistral", "gpt_oss"])
def test_both_layouts_generate_the_same_with_a_cache_in_place(name: str, tmp_path: Path) -> None:
    said = []
    for processor in ("any", "x86_64"):
        exported(made(name), processor=processor, last_logits=True).save(tmp_path / processor)
        loaded = modelport.load(tmp_path / processor)
        greedy = loaded.generate(**padded(5, 1, 3), max_new_tokens=12, do_sample=False)
        beams = loaded.generate(**padded(4, 6), max_new_tokens=8, num_beams=3, do_sample=False)
        said.append((greedy, beams))
    for plain, branched in zip(*said, strict=True):
        torch.testing.assert_close(plain, branched, rtol=0, atol=0)


def test_an_export_tells_what_it_is_laid_out_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_checkpoints.MAKERS["llama"]().save_pretrained(tmp_path / "llama")
    words = ["export", "onnx", str(tmp_path / "llama"), str(tmp_path / "out"), "--operators", "onnxruntime"]
    assert main([*words, "--processor", "x86_64"]) == 0
    assert "laid out for x86_64 processors" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "out")]) == 0
    assert "attention of single tokens for x86_64" in capsys.readouterr().out
    assert main([*words, "--processor", "aarch64"]) == 0
    assert "laid out" not in capsys.readouterr().out
