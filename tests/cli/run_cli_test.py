"""`modelport run`: the words of the model on stdout, everything else on stderr, and what is wrong before it starts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tiny_generators import DECODERS, VOCABULARY, export_decoder, llava, made, prompt, save_tokenizer, whisper
from tiny_models import tiny

from modelport import OnnxConfig, OnnxExporter
from modelport.cli import main
from modelport.cli.run_model import one_shot_options
from modelport.running.media import read_sound, resampled


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    model = made(DECODERS["llama"])
    folder = export_decoder(model, tmp_path_factory.mktemp("run") / "llama")
    save_tokenizer(folder)
    return model, folder


def call(*args: object) -> int:
    try:
        return main(["run", *map(str, args)])
    except SystemExit as left:  # argparse
        return int(left.code or 0)


def words(ids: torch.Tensor) -> str:
    """As the tokenizer has them, without the special ones."""
    return " ".join(f"w{i}" for i in ids.tolist() if 5 <= i < VOCABULARY - 1)


def continued(model: Any, ids: list[int], **settings: Any) -> str:
    """What the model itself says after these tokens."""
    return words(model.generate(torch.tensor([ids]), **settings)[0, len(ids) :])


def error_of(capsys: Any, *args: object) -> str:
    assert call(*args) == 2
    out, err = capsys.readouterr()
    assert out == "" and "way out" in err
    return err


# --- what it prints ---------------------------------------------------------------------------------------------------


def test_the_words_are_those_of_the_model_and_the_speed_goes_to_stderr(llama: Any, capsys: Any) -> None:
    model, folder = llama
    assert call(folder, "w7 w8 w9", "--max-new-tokens", 12) == 0
    out, err = capsys.readouterr()
    assert out == continued(model, [7, 8, 9], max_new_tokens=12) + "\n"
    assert "3 tokens of prompt, 12 new ones" in err and "tokens/s" in err


def test_quiet_leaves_the_text_alone(llama: Any, capsys: Any) -> None:
    assert call(llama[1], "w7 w8", "--max-new-tokens", 4, "--quiet") == 0
    out, err = capsys.readouterr()
    assert len(out.split()) == 4 and err == ""


def test_json_has_the_text_and_the_numbers(llama: Any, capsys: Any) -> None:
    model, folder = llama
    assert call(folder, "w7 w8", "--max-new-tokens", 4, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] and data["text"] == continued(model, [7, 8], max_new_tokens=4)
    assert data["prompt_tokens"] == 2 and data["new_tokens"] == 4
    assert data["tokens_per_second"] > 0 and data["first_token_seconds"] > 0 and data["seconds"]["load"] > 0


def test_a_seed_draws_the_tokens_that_the_model_draws(llama: Any, capsys: Any) -> None:
    model, folder = llama
    flags = ["--temperature", 0.9, "--top-k", 30, "--top-p", 0.95, "--max-new-tokens", 12, "-q"]
    assert call(folder, "w7 w8", *flags, "--seed", 3) == 0
    torch.manual_seed(3)
    want = continued(model, [7, 8], do_sample=True, temperature=0.9, top_k=30, top_p=0.95, max_new_tokens=12)
    assert capsys.readouterr().out == want + "\n"
    assert call(folder, "w7 w8", "--temperature", 0, "--max-new-tokens", 12, "-q") == 0
    assert capsys.readouterr().out == continued(model, [7, 8], max_new_tokens=12) + "\n"


def test_beams_print_the_best_text_at_the_end(llama: Any, capsys: Any) -> None:
    model, folder = llama
    assert call(folder, "w7 w8", "--num-beams", 3, "--max-new-tokens", 8) == 0
    out, err = capsys.readouterr()
    assert out == continued(model, [7, 8], num_beams=3, max_new_tokens=8) + "\n"
    assert "tokens/s" in err


def test_the_chat_template_is_applied_unless_the_prompt_is_raw(llama: Any, tmp_path: Path, capsys: Any) -> None:
    model, folder = llama[0], shutil.copytree(llama[1], tmp_path / "chat")
    save_tokenizer(folder, chat=True)
    assert call(folder, "w7 w8", "--max-new-tokens", 4, "-q") == 0
    assert capsys.readouterr().out == continued(model, [4, 7, 8], max_new_tokens=4) + "\n"
    assert call(folder, "w7 w8", "--max-new-tokens", 4, "-q", "--raw") == 0
    assert capsys.readouterr().out == continued(model, [7, 8], max_new_tokens=4) + "\n"


def test_the_text_ends_where_the_context_ends(llama: Any, capsys: Any) -> None:
    assert call(llama[1], "w7 " * 126, "--max-new-tokens", 50) == 0
    out, err = capsys.readouterr()
    assert len(out.split()) == 2 and "there is room for 2 new ones" in err


def test_a_picture_goes_through_the_processor(tmp_path: Path, capsys: Any) -> None:
    model, folder = made(llava), tmp_path / "llava"
    given = prompt(2, 9)
    given["input_ids"][:, 4:8] = model.config.image_token_id
    given["pixel_values"] = torch.zeros(2, 3, 16, 16)
    OnnxExporter().export_for_generation(model, given, OnnxConfig()).save(folder)
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=save_tokenizer(folder, further="<image>"),
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    processor.save_pretrained(folder)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), dtype=np.uint8))
    picture.save(tmp_path / "cat.png")
    assert call(folder, "w7 w8", "--image", tmp_path / "cat.png", "--max-new-tokens", 8, "-q") == 0
    inputs = processor(text="<image> w7 w8", images=[picture], return_tensors="pt")
    want = model.generate(**inputs, max_new_tokens=8)[0, inputs["input_ids"].shape[1] :]
    assert capsys.readouterr().out == words(want) + "\n"


def test_a_sound_goes_through_the_feature_extractor(tmp_path: Path, capsys: Any) -> None:
    model, folder = made(whisper), tmp_path / "whisper"
    OnnxExporter().export_for_generation(model, {"input_features": torch.zeros(2, 8, 60)}, OnnxConfig()).save(folder)
    extractor = transformers.WhisperFeatureExtractor(
        feature_size=8, sampling_rate=9600, hop_length=160, chunk_length=1, n_fft=400
    )
    transformers.WhisperProcessor(extractor, save_tokenizer(folder)).save_pretrained(folder)
    write_wav(tmp_path / "a.wav", 0.5 * np.sin(np.arange(4800) / 10), 2, rate=9600)
    assert call(folder, "--audio", tmp_path / "a.wav", "--max-new-tokens", 8, "-q") == 0
    samples, _ = read_sound(str(tmp_path / "a.wav"))
    features = extractor(samples, sampling_rate=9600, return_tensors="pt")
    assert capsys.readouterr().out == words(model.generate(**features, max_new_tokens=8)[0]) + "\n"
    assert "reads no text beside" in error_of(capsys, folder, "w7", "--audio", tmp_path / "a.wav")
    assert "modelport run FOLDER --audio FILE" in error_of(capsys, folder, "w7")


def test_the_command_itself_streams_words_and_needs_no_model_hub(llama: Any) -> None:
    command = [sys.executable, "-m", "modelport", "run", llama[1], "w7 w8", "--max-new-tokens", "6", "--num-beams", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == continued(llama[0], [7, 8], num_beams=2, max_new_tokens=6) + "\n"
    assert done.stderr.count("\n") == 1 and "tokens/s" in done.stderr


def test_weights_are_left_as_they_lie_only_where_steps_are_as_fast(llama: Any, tmp_path: Path) -> None:
    model, folder = llama
    assert one_shot_options([folder / "model.onnx"], "x86_64") == {"session.disable_prepacking": "1"}
    assert one_shot_options([folder / "model.onnx"], "aarch64") == {}
    assert one_shot_options([tmp_path / "model.pte"], "x86_64") == {}
    config = OnnxConfig(dtype="int4")
    quantized = OnnxExporter().export_for_generation(model, prompt(2, 6), config).save(tmp_path / "int4")
    assert one_shot_options([quantized / "model.onnx"], "x86_64") == {}


# --- what it refuses --------------------------------------------------------------------------------------------------


def test_a_prompt_longer_than_the_context_is_refused(llama: Any, capsys: Any) -> None:
    assert "129 tokens, and the model reads at most 128" in error_of(capsys, llama[1], "w7 " * 129)
    assert "fills the 128 tokens" in error_of(capsys, llama[1], "w7 " * 128)


def test_a_missing_prompt_is_asked_for(llama: Any, capsys: Any) -> None:
    assert 'modelport run FOLDER "' in error_of(capsys, llama[1])


def test_a_folder_that_is_no_export_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from modelport.cli import main; "
        f"code = main(['run', {str(tmp_path)!r}, 'hi']); sys.exit(code if 'torch' not in sys.modules else 'torch')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no .onnx file in this folder" in done.stderr


def test_a_model_that_cannot_generate_is_refused(tmp_path: Path, capsys: Any) -> None:
    model = tiny("bert for masked words").bert
    model.config.architectures = ["BertModel"]
    model.config.save_pretrained(tmp_path)
    OnnxExporter().export(model, prompt(2, 7), OnnxConfig(dynamic=True)).save(tmp_path / "model.onnx")
    assert "BertModel gives no logits in this export" in error_of(capsys, tmp_path, "hi")


def test_a_decoder_whose_class_nobody_names_says_what_is_missing(llama: Any, tmp_path: Path, capsys: Any) -> None:
    folder = shutil.copytree(llama[1], tmp_path / "llama")
    (folder / "config.json").unlink()
    error = error_of(capsys, folder, "w7")
    assert "no config.json that names its class" in error and "copy the config.json" in error


def test_a_missing_tokenizer_is_named(llama: Any, tmp_path: Path, capsys: Any) -> None:
    folder = shutil.copytree(llama[1], tmp_path / "bare", ignore=shutil.ignore_patterns("tokenizer*"))
    assert "has no tokenizer" in error_of(capsys, folder, "hi")
    (folder / "tokenizer.json").write_text("{}")
    assert "tokenizer" in error_of(capsys, folder, "hi")


def test_weights_that_are_missing_are_named(llama: Any, tmp_path: Path, capsys: Any) -> None:
    folder = shutil.copytree(llama[1], tmp_path / "bare", ignore=shutil.ignore_patterns("*_data"))
    assert "model.onnx_data is missing" in error_of(capsys, folder, "hi")


def test_files_that_are_no_pictures_or_sounds_are_refused(llama: Any, tmp_path: Path, capsys: Any) -> None:
    text = tmp_path / "text.png"
    text.write_text("no picture")
    assert "is no picture that can be read" in error_of(capsys, llama[1], "hi", "--image", text)
    assert "no such file" in error_of(capsys, llama[1], "hi", "--image", tmp_path / "none.png")
    assert "is no WAV file" in error_of(capsys, llama[1], "hi", "--audio", text)


def test_a_model_that_reads_text_alone_refuses_pictures_and_sounds(llama: Any, tmp_path: Path, capsys: Any) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    assert "reads no pictures" in error_of(capsys, llama[1], "hi", "--image", tmp_path / "a.png")
    write_wav(tmp_path / "a.wav", np.zeros(100), 2)
    assert "reads no sounds" in error_of(capsys, llama[1], "hi", "--audio", tmp_path / "a.wav")


@pytest.mark.parametrize(
    "flags", [["--top-p", "2"], ["--temperature", "-1"], ["--max-new-tokens", "0"], ["--seed", "x"]]
)
def test_flags_without_sense_are_refused(flags: list[str], llama: Any, capsys: Any) -> None:
    assert call(llama[1], "hi", *flags) == 2
    assert flags[0] in capsys.readouterr().err


# --- sounds -----------------------------------------------------------------------------------------------------------


def write_wav(path: Path, samples: np.ndarray, width: int, channels: int = 1, rate: int = 8000) -> None:
    raw = np.round(samples * 2 ** (8 * width - 1)).astype("<i4")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        if width == 1:
            file.writeframes((raw + 128).astype(np.uint8).tobytes())
        else:
            file.writeframes(raw[:, None].view(np.uint8)[:, :width].tobytes())


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds_of_every_width_are_read(width: int, tmp_path: Path) -> None:
    samples = 0.9 * np.sin(np.arange(400) / 20)
    write_wav(tmp_path / "a.wav", samples, width)
    read, rate = read_sound(str(tmp_path / "a.wav"))
    assert rate == 8000
    np.testing.assert_allclose(read, samples, atol=0.51 / 2 ** (8 * width - 1) + 1e-7)


def test_channels_become_one(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.tile([0.5, -0.25], 100), 2, channels=2)
    np.testing.assert_allclose(read_sound(str(tmp_path / "a.wav"))[0], np.full(100, 0.125), atol=1e-4)


def test_a_tone_at_another_rate_is_the_same_tone() -> None:
    tone = np.sin(2 * np.pi * 50 * np.arange(8000) / 8000)
    want = np.sin(2 * np.pi * 50 * np.arange(16000) / 16000)
    np.testing.assert_allclose(resampled(tone, 8000, 16000), want, atol=1e-3)
    np.testing.assert_allclose(resampled(want, 16000, 8000), tone, atol=1e-3)
