"""Weights that are rounded by what a model computes on given inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_decoders import exported, made
from tiny_models import tiny

from modelport import ExportError, OnnxConfig, OnnxExporter, load
from modelport.artifacts.artifact import Artifact
from modelport.cli import main
from modelport.exporters import input_facts
from modelport.exporters.input_facts import InputFacts

TELLER = Path(__file__).parents[2] / "examples/teller"
METHODS = ("range", "search", "gptq")
_CODES = "modelport.quantized("


class Products(torch.nn.Module):
    """Two products of one tensor, and one of what comes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(96, 64, bias=False), torch.nn.Linear(96, 64)
        self.three = torch.nn.Linear(64, 32)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.three(torch.tanh(self.one(x)) + self.two(x))


def inputs(rows: int, seed: int) -> dict[str, torch.Tensor]:
    """Numbers that lie nearly in a few directions, as those inside a model do."""
    directions = torch.randn(6, 96, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    along = torch.randn(rows, 6, generator=generator) @ directions
    return {"x": along + 0.3 * torch.randn(rows, 96, generator=generator)}


def products() -> Products:
    torch.manual_seed(0)
    return Products()


@pytest.mark.parametrize("dtype", ["int4", "int8"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_on_inputs_like_those_of_the_calibration_values_move_less(dtype: str, symmetric: bool) -> None:
    model, given, errors = products(), inputs(50, 9), {}
    for method in METHODS:
        how = {"method": method, "symmetric": symmetric, "accuracy_level": 4 if dtype == "int8" else 0}
        config = OnnxConfig(dynamic=True, dtype=dtype, quantization=how, calibration=[inputs(200, 1), inputs(200, 2)])
        program = OnnxExporter().export(model, inputs(3, 3), config)
        errors[method] = float((program(**given)[0] - model(**given).detach()).norm())
    # In 8 bits what the kernel rounds inputs to is most of the error.
    assert errors["gptq"] < (0.7 if dtype == "int4" else 0.97) * errors["search"]
    assert errors["search"] <= errors["range"]


@pytest.mark.parametrize("form", ["dynamic", "static"])
def test_products_of_integers_take_such_weights_too(form: str) -> None:
    model, given = products(), inputs(50, 9)
    how = {"bits": 8, "form": form, "method": "gptq"}
    config = OnnxConfig(dynamic=True, quantization=how, calibration=[inputs(300, 1)])
    got = OnnxExporter().export(model, inputs(3, 3), config)(**given)[0]
    want = model(**given).detach()
    assert 0 < float((got - want).norm() / want.norm()) < 0.03


def test_what_is_known_of_inputs_does_not_depend_on_the_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = products()
    runs: list[Any] = [lambda i=i: model(**inputs(100, i)) for i in range(3)]

    def measured() -> dict[str, bytes]:
        facts = InputFacts(model.parameters())
        facts.measure(runs)
        found = facts.of(model.state_dict(keep_vars=True))
        assert found.places["one.weight"] == found.places["two.weight"] != found.places["three.weight"]
        sizes = {name: 4 * columns * (columns + 2) for name, (_, _, columns) in found.places.items()}
        return {name: Path(f).read_bytes()[at : at + sizes[name]] for name, (f, at, _) in found.places.items()}

    at_once = measured()
    monkeypatch.setattr(input_facts, "_AT_ONCE", 1)
    assert measured() == at_once and set(at_once) == {"one.weight", "two.weight", "three.weight"}


def test_few_or_equal_samples_are_enough() -> None:
    model = products()
    for sample in (inputs(1, 1), {"x": torch.zeros(4, 96)}, {"x": torch.ones(4, 96)}):
        config = OnnxConfig(dynamic=True, dtype="int4", quantization={"method": "gptq"}, calibration=[sample])
        got = OnnxExporter().export(model, inputs(3, 3), config)(**inputs(9, 4))[0]
        want = model(**inputs(9, 4)).detach()
        assert float((got - want).norm() / want.norm()) < 0.3


def test_a_decoder_comes_nearer_to_its_floats(tmp_path: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(TELLER, dtype=torch.float32).eval()
    texts = [_drawn(model, seed) for seed in range(4)]
    ids, lost = _drawn(model, 9), {}
    with torch.no_grad():
        want = model(input_ids=ids).logits.log_softmax(-1)
    for method in METHODS:
        config = OnnxConfig(
            dtype="int4",
            operators="onnxruntime",
            quantization={"method": method},
            calibration=[{"input_ids": text} for text in texts],
        )
        OnnxExporter().export_for_generation(model, {"input_ids": ids[:, :5]}, config).save(tmp_path)
        got = load(tmp_path)(input_ids=ids).logits.log_softmax(-1)
        lost[method] = float((want.exp() * (want - got)).sum(-1).mean())
    assert lost["gptq"] < 0.85 * lost["search"] < 0.85 * lost["range"]


def _drawn(model: Any, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    start = torch.ones(16, 1, dtype=torch.int64)
    settings = {"max_new_tokens": 63, "min_new_tokens": 63, "do_sample": True, "top_k": 0}
    return model.generate(start, attention_mask=torch.ones_like(start), **settings)


@pytest.mark.parametrize("name", ["t5", "gpt2", "whisper"])
def test_every_kind_of_model_that_generates_is_measured(name: str, tmp_path: Path) -> None:
    model = tiny(name, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    sample = _sample(model)
    config = OnnxConfig(dtype="int4", quantization={"method": "gptq", "block_size": 16}, calibration=[sample])
    parts = OnnxExporter().export_for_generation(model, sample, config)
    for part in parts.values():
        lines = str(part.graph).splitlines()
        coded = {line.split("@")[1].split("]")[0] for line in lines if _CODES in line}
        only_looked_up = {name for name in coded if name.endswith(("wpe.weight", "embed_positions.weight"))}
        assert coded and coded - only_looked_up <= part.facts.places.keys()
    parts.save(tmp_path)
    tokens = load(tmp_path).generate(**sample, max_new_tokens=4, do_sample=False)
    assert tokens.shape[0] == next(iter(sample.values())).shape[0]


def _sample(model: Any) -> dict[str, torch.Tensor]:
    if model.main_input_name != "input_ids":
        frames = 2 * model.config.max_source_positions
        return {"input_features": torch.randn(2, model.config.num_mel_bins, frames)}
    return {"input_ids": torch.randint(2, 60, (2, 9))}


def test_without_calibration_it_is_refused() -> None:
    with pytest.raises(ExportError, match=r"none are given") as raised:
        exported(made("qwen3"), dtype="int4", quantization={"method": "gptq"})
    assert "calibration=" in str(raised.value)
    with pytest.raises(ExportError, match="no inputs for calibration"):
        exported(made("qwen3"), dtype="int4", quantization={"method": "gptq"}, calibration=[])
    bad = OnnxConfig(dtype="int4", quantization={"method": "gptq"}, calibration=[{"x": torch.full((2, 96), torch.inf)}])
    with pytest.raises(ExportError, match="not finite"):
        OnnxExporter().export(products(), inputs(3, 3), bad)


@pytest.fixture
def story(tmp_path: Path) -> Path:
    text = "Once upon a time there was a little girl who lived in a small house near the forest. "
    (tmp_path / "story.txt").write_text(text * 40)
    return tmp_path / "story.txt"


def call(*args: Any) -> int:
    return main([str(arg) for arg in args])


def test_the_command_line_calibrates_on_a_text(story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    layers = ("--layers", "model.embed_tokens=int8", "--layers", "*.down_proj=float")
    assert call("export", "onnx", TELLER, out, "--dtype", "int4,fp32", "--calibration", story, *layers) == 0
    assert "perplexity" in capsys.readouterr().out
    how = Artifact(out / "model_q4.onnx").note("quantization")
    assert '"method": "gptq"' in how and '"model.embed_tokens": "int8"' in how
    assert call("run", out, "Once", "--dtype", "q4", "--max-new-tokens", 4, "--quiet") == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dtype", "int4", "--quantization-method", "gptq"), "--calibration FILE"),
        (("--dtype", "fp16", "--calibration", "story.txt"), "measures nothing on --calibration story.txt"),
        (("--dtype", "int8", "--int8", "dynamic", "--calibration", "story.txt"), "--int8 static"),
        (("--dtype", "int4", "--calibration", "missing.txt"), "missing.txt"),
        (("--dtype", "int4", "--layers", "lm_head"), "--layers lm_head=int8"),
        (("--dtype", "int4", "--layers", "lm_heed=int8"), "there are lm_head"),
    ],
)
def test_the_command_line_says_what_is_missing(
    flags: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("export", "onnx", TELLER, tmp_path / "out", *flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
