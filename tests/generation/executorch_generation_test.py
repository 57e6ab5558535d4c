"""Decoders as ExecuTorch programs with a cache of their own, in ExecuTorch's own runner for language models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import executorch_runner
import pytest
import torch
from executorch_decoders import LINEAR, PROMPT, TOKENS, generated, tiny
from executorch_runner import BOS, EOS, VOCABULARY, ids_of

from modelport import ExecutorchExporter
from modelport.artifacts.pte import read_program

pytest.importorskip("executorch")

# Windows are shorter than the prompt, and than what is generated after it.
FAMILIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", {}, {}),
    "qwen3": ("qwen3", {}, {}),
    "gemma": ("gemma", {}, {}),
    "gemma2": ("gemma2", {"sliding_window": 5}, {}),
    "gemma3": ("gemma3_text", {"sliding_window": 5}, {}),
    "phi": ("phi", {}, {}),
    "phi3": ("phi3", {"pad_token_id": EOS}, {}),
    "smollm3": ("smollm3", {"pad_token_id": EOS}, {}),
    "one token at a time": ("llama", {}, {"disable_dynamic_shapes": True}),
    "a prompt in pieces": ("llama", {}, {"dims": {"seq": (1, 4)}}),
    "linear attention": ("qwen3_next", LINEAR, {}),
    "no keys": ("mamba", {"state_size": 4}, {}),
}


class Row:
    def __init__(self, name: str, folder: Path):
        kind, settings, config = FAMILIES[name]
        self.model = tiny(kind, **settings)
        self.parts = ExecutorchExporter().export_for_generation(self.model, config={"max_seq_len": 48} | config)
        self.file = self.parts.save(folder / f"{name.replace(' ', '_')}.pte")
        self.text = ""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Every family, run by one process of the runner."""
    folder = tmp_path_factory.mktemp("programs")
    found = {name: Row(name, folder) for name in FAMILIES}
    runs = {name: (row.file, PROMPT, TOKENS) for name, row in found.items()}
    tokenizer = executorch_runner.write_tokenizer(folder / "tokenizer.json")
    for name, text in executorch_runner.texts(runs, tokenizer).items():
        found[name].text = text
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_executorchs_own_runner_says_what_generate_says(rows: dict[str, Row], family: str) -> None:
    want = generated(rows[family].model)
    assert len(set(want)) > 2  # else any mistake could say the same
    assert ids_of(rows[family].text) == want


def test_a_program_tells_the_runner_about_the_model(rows: dict[str, Row]) -> None:
    told = read_program(rows["a prompt in pieces"].file)["constant_methods"]
    assert told["get_max_seq_len"] == [4] and told["get_max_context_len"] == [48]
    assert told["use_kv_cache"] == told["enable_dynamic_shape"] == [True] and told["use_sdpa_with_kv_cache"] == [False]
    assert told["get_eos_ids"] == told["get_eos_id"] == [EOS] and told["get_bos_id"] == [BOS]
    assert (told["get_vocab_size"], told["get_n_layers"], told["get_head_dim"]) == ([VOCABULARY], [2], [8])
    assert read_program(rows["gemma3"].file)["constant_methods"]["sliding_window"] == [5]
    assert read_program(rows["one token at a time"].file)["constant_methods"]["enable_dynamic_shape"] == [False]
    assert read_program(rows["no keys"].file)["constant_methods"]["use_kv_cache"] == [False]


def test_the_cache_is_written_where_it_lies(rows: dict[str, Row]) -> None:
    method = read_program(rows["llama"].file)["methods"]["forward"]
    assert "aten::copy_" not in method["operators"] and method["operators"]["aten::index_put_"] == 4
    assert rows["llama"].parts.written["forward"]["state_bytes"] == 2 * 2 * 48 * 2 * 8 * 4


def test_only_the_last_tokens_logits_are_computed(rows: dict[str, Row]) -> None:
    (logits,) = read_program(rows["llama"].file)["methods"]["forward"]["outputs"]
    assert logits["sizes"] == [1, 1, VOCABULARY]


def test_what_is_read_one_by_one_is_told(rows: dict[str, Row]) -> None:
    assert any("one by one" in note for note in rows["linear attention"].parts.notes)
    assert any("reads the whole text" in note for note in rows["no keys"].parts.notes)


# Models whose attention the kernels compute; that of gemma2 (caps) and of gpt-oss (sinks) stays their own.
CUSTOM = {
    "llama": ({}, 2),
    "gemma3_text": ({"sliding_window": 5}, 2),
    "gemma2": ({"sliding_window": 5}, 0),
    "gpt_oss": ({"sliding_window": 5, "num_local_experts": 4, "num_experts_per_tok": 2}, 0),
}


@pytest.mark.parametrize("kernels", ["use_custom_sdpa", "use_custom_kv_cache", "both"])
@pytest.mark.parametrize("kind", CUSTOM)
def test_kernels_for_language_models_serve_what_they_can(kind: str, kernels: str, tmp_path: Path) -> None:
    settings, attentions = CUSTOM[kind]
    model = tiny(kind, **settings)
    sdpa, cache = kernels != "use_custom_kv_cache", kernels != "use_custom_sdpa"
    config = {"max_seq_len": 48, "use_custom_sdpa": sdpa, "use_custom_kv_cache": cache}
    parts = ExecutorchExporter().export_for_generation(model, config=config)
    program = parts["forward"]
    used = read_program(parts.save(tmp_path / "m.pte"))["methods"]["forward"]["operators"]
    assert used.get("llama::custom_sdpa.out", 0) == (attentions if sdpa else 0)
    assert used.get("llama::update_cache.out", 0) == (4 if cache else 0)
    assert parts.constant_methods["use_sdpa_with_kv_cache"] is sdpa
    tokens, start, said = torch.tensor([ids_of(PROMPT)]), 0, []
    for _ in range(TOKENS):
        places = torch.arange(start, start + tokens.shape[1])
        logits = program(input_ids=tokens, cache_position=places)["logits"]
        start, tokens = start + tokens.shape[1], logits.argmax(-1)
        said.append(int(tokens))
    want = generated(model)
    assert said[: len(want)] == want


def test_linear_attention_is_one_kernel_that_reads_a_prompt_at_once(tmp_path: Path) -> None:
    model = tiny("qwen3_next", **LINEAR)
    for recipe in ("portable", "xnnpack"):
        config = {"max_seq_len": 48, "use_custom_sdpa": True, "recipe": recipe}
        parts = ExecutorchExporter().export_for_generation(model, config=config)
        assert parts.notes == []
        file = parts.save(tmp_path / f"{recipe}.pte")
        assert read_program(file)["methods"]["forward"]["operators"]["llama::gated_delta_rule.out"] == 3
        tokenizer = executorch_runner.write_tokenizer(tmp_path / "tokenizer.json")
        assert ids_of(executorch_runner.texts({"": (file, PROMPT, TOKENS)}, tokenizer)[""]) == generated(model)


def test_the_model_is_as_before_after_an_export_with_custom_kernels() -> None:
    model = tiny("llama")
    before, attention = generated(model), model.config._attn_implementation
    ExecutorchExporter().export_for_generation(model, config={"max_seq_len": 16, "use_custom_sdpa": True})
    assert model.config._attn_implementation == attention and generated(model) == before
