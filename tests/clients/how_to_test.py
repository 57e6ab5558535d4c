"""The how-to pages of clients, done as they say: their commands export, and their code runs in the client."""

from __future__ import annotations

import re
import shlex
import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as og
import pytest
from exported import built, prompt, row_of, save_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, WhisperFeatureExtractor

from modelport.cli import main
from modelport.contracts import export_for_client

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROMPT = "Once upon a time"


def followed(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The code of the page by language, after its commands were run."""
    (place / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(place)
    code: dict[str, list[str]] = {}
    for language, text in BLOCK.findall((ROOT / "docs/how-to" / page).read_text()):
        code.setdefault(language, []).append(text)
    for line in "\n".join(code[""]).splitlines():
        assert main([*shlex.split(line)[1:], "--no-check", "--quiet"]) == 0, line
    return code


def told(new_tokens: int) -> str:
    """What the model itself says."""
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "examples/teller")
    model = AutoModelForCausalLM.from_pretrained(ROOT / "examples/teller").eval()
    ids = model.generate(**tokenizer(PROMPT, return_tensors="pt"), max_new_tokens=new_tokens, do_sample=False)
    return tokenizer.decode(ids[0], skip_special_tokens=True)


def in_node(code: str, packages: Path, place: Path) -> str:
    (place / "node_modules").symlink_to(packages / "node_modules")
    (place / "page.mjs").write_text(code)
    # WebAssembly is compiled in a second instead of seven where nobody optimizes it.
    command = ["node", "--liftoff-only", "page.mjs"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_genai_tells_what_the_model_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    code = followed("genai.md", tmp_path, monkeypatch)
    [text] = code["python"]
    assert PROMPT in text
    exec(compile(text, "genai.md", "exec"), {})
    said = capsys.readouterr().out.strip()
    assert len(said) > 60
    assert said == told(35).strip()


def test_transformers_js_tells_what_the_model_tells(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, in_browsers = followed("transformers-js.md", tmp_path, monkeypatch)["javascript"]
    assert PROMPT in text
    assert in_node(text.replace("const generator", f"{in_browsers}const generator"), packages, tmp_path) == told(20)


def test_onnxruntime_web_gives_the_shape_that_the_page_tells(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = followed("onnxruntime-web.md", tmp_path, monkeypatch)["javascript"]
    assert in_node(text, packages, tmp_path) == "[ 1, 3, 4096 ]"


def test_the_code_of_the_clients_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/clients.md").read_text()
    export, hear = [code for language, code in BLOCK.findall(text) if language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(compile(export, "clients.md", "exec"), {"model": built(row_of("llama")), "ids": prompt(6)})
    og.Model("out")

    tokenizer, extractor = save_tokenizer(tmp_path / "whisper"), WhisperFeatureExtractor()
    extractor.save_pretrained(tmp_path / "whisper")
    # For this tokenizer the marks of the prompt are letters, one after the other.
    sizes = {"max_source_positions": 1500, "max_target_positions": 128, "num_mel_bins": 80}
    model = built(row_of("whisper", vocab_size=len(tokenizer), **sizes))
    silence = np.zeros(16000, np.int16)
    features = extractor(silence, sampling_rate=16000, return_tensors="pt").input_features
    export_for_client("genai", model, {"input_features": features}, tmp_path / "whisper")
    with wave.open("speech.wav", "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(silence.tobytes())
    opened = og.Model("whisper")
    generator = og.Generator(opened, og.GeneratorParams(opened))
    exec(compile(hear, "clients.md", "exec"), {"model": opened, "og": og, "generator": generator})
    generator.generate_next_token()
