"""The last line of an export, "try it: ...", names something that works, whatever the folder was written for."""

from __future__ import annotations

import shlex
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tiny_generators import DECODERS, llava, made, save_tokenizer, t5, whisper

import modelport
from modelport.cli import main

KINDS = (None, "genai", "transformers.js")
SETTINGS = ["--max-new-tokens", "4", "-q"]


def saved(maker: Any, folder: Path, **tokenizer: Any) -> Any:
    made(maker).save_pretrained(folder)
    return save_tokenizer(folder, **tokenizer)


def line_after(capsys: Any, source: Path, out: Path, client: str | None, *flags: str) -> str:
    assert main(["export", "onnx", str(source), str(out), *(["--for", client] if client else []), *flags]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("try it: ")
    return last.removeprefix("try it: ")


def run(line: str, **places: object) -> int:
    """The command of the line, with something in the place of words in it."""
    program, *args = shlex.split(line)
    assert program == "modelport"
    meant = {"...": "w7 w8"} | places
    return main([*(str(meant.get(arg, arg)) for arg in args), *SETTINGS])


@pytest.mark.parametrize("client", KINDS)
def test_a_language_model_is_given_a_prompt(client: str | None, tmp_path: Path, capsys: Any) -> None:
    saved(DECODERS["llama"], tmp_path / "llama")
    line = line_after(capsys, tmp_path / "llama", tmp_path / "out", client, "--no-check")
    assert line == f'modelport run {tmp_path / "out"} "..."'
    assert run(line) == 0


@pytest.mark.parametrize("client", KINDS)
def test_without_a_tokenizer_it_is_given_tokens(client: str | None, tmp_path: Path, capsys: Any) -> None:
    made(DECODERS["llama"]).save_pretrained(tmp_path / "llama")
    line = line_after(capsys, tmp_path / "llama", tmp_path / "out", client, "--no-check")
    assert line == f'modelport.load("{tmp_path / "out"}").generate(input_ids) in Python'
    given = {"modelport": modelport, "input_ids": torch.tensor([[5, 6]])}
    assert eval(line.removesuffix(" in Python"), given).shape[1] > 2


@pytest.mark.parametrize("client", [None, "transformers.js"])
def test_an_encoder_decoder_is_given_a_prompt(client: str | None, tmp_path: Path, capsys: Any) -> None:
    saved(t5, tmp_path / "t5")
    assert run(line_after(capsys, tmp_path / "t5", tmp_path / "out", client, "--no-check")) == 0


@pytest.mark.parametrize("client", KINDS)
def test_whisper_is_given_a_sound(client: str | None, tmp_path: Path, capsys: Any) -> None:
    source, out = tmp_path / "whisper", tmp_path / "out"
    extractor = transformers.WhisperFeatureExtractor(feature_size=8, sampling_rate=9600, chunk_length=1)
    transformers.WhisperProcessor(extractor, saved(whisper, source)).save_pretrained(source)
    line = line_after(capsys, source, out, client, "--no-check")
    if client == "genai":  # divided as only the client runs it
        assert line == f'onnxruntime_genai.Model("{out}") in Python, see docs/clients.md'
        return
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 9600, 0, "NONE", ""))
        file.writeframes((9000 * np.sin(np.arange(4800) / 10)).astype(np.int16).tobytes())
    assert line == f"modelport run {out} --audio FILE"
    assert run(line, FILE=tmp_path / "a.wav") == 0


@pytest.mark.parametrize("client", [None, "transformers.js"])
def test_a_model_that_sees_is_given_a_picture(client: str | None, tmp_path: Path, capsys: Any) -> None:
    source, out = tmp_path / "llava", tmp_path / "out"
    transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=saved(llava, source, further="<image>"),
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(source)
    line = line_after(capsys, source, out, client, "--no-check")
    assert line == f'modelport run {out} "..." --image FILE'
    Image.new("RGB", (30, 40), (200, 90, 20)).save(tmp_path / "a.png")
    assert run(line, FILE=tmp_path / "a.png") == 0
