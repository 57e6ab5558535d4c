"""Decoders as ExecuTorch programs that XNNPACK computes, in ExecuTorch's own runner: whole weights, and fewer bits."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import executorch_runner
import pytest
import torch
from dequantized_models import EMBEDDING, LINEAR, dequantized, with_dequantized_weights, with_rounded_inputs
from executorch_decoders import PROMPT, TOKENS, generated, tiny
from executorch_runner import EOS, ids_of

from modelport import ExecutorchExporter, ExportError
from modelport.artifacts.pte import read_program

pytest.importorskip("executorch")

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "qwen3": ("qwen3", {"tie_word_embeddings": True}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"sliding_window": 5}),
    "gemma3": ("gemma3_text", {"sliding_window": 5}),
    "phi": ("phi", {}),
    "phi3": ("phi3", {"pad_token_id": EOS}),
    "smollm3": ("smollm3", {"pad_token_id": EOS}),
}
KERNELS = {"use_custom_sdpa": True, "use_custom_kv_cache": True}
# A row: a family, and what its program is made with.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{family: (family, {}) for family in FAMILIES},
    **{f"{family} with kernels": (family, KERNELS) for family in FAMILIES},
    **{
        f"{family} {linear}": (family, {"qlinear": linear, "qembedding": "8w"} | KERNELS)
        for family in ("llama", "qwen3", "gemma", "phi", "smollm3")
        for linear in LINEAR
    },
    "qwen3 without kernels": ("qwen3", {"qlinear": "8da4w", "qembedding": "4w"}),
    "one token at a time": ("llama", {"disable_dynamic_shapes": True}),
}


class Row:
    def __init__(self, name: str, folder: Path):
        family, self.settings = ROWS[name]
        kind, sizes = FAMILIES[family]
        self.model = tiny(kind, **{"intermediate_size": 64} | sizes)
        config = {"max_seq_len": 48, "recipe": "xnnpack"} | self.settings
        self.parts = ExecutorchExporter().export_for_generation(self.model, config=config)
        self.file = self.parts.save(folder / f"{name.replace(' ', '_')}.pte")
        self.text = ""

    def reference(self) -> Any:
        """PyTorch with the numbers that the program computes with."""
        linear, embedding = self.settings.get("qlinear"), self.settings.get("qembedding")
        if linear is None:
            return self.model
        model = with_dequantized_weights(self.model, LINEAR[linear], EMBEDDING[embedding])
        return with_rounded_inputs(model) if linear.startswith("8da") else model


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """All programs, run by one process of the runner."""
    folder = tmp_path_factory.mktemp("programs")
    found = {name: Row(name, folder) for name in ROWS}
    tokenizer = executorch_runner.write_tokenizer(folder / "tokenizer.json")
    runs = {name: (row.file, PROMPT, TOKENS) for name, row in found.items()}
    for name, text in executorch_runner.texts(runs, tokenizer).items():
        found[name].text = text
    return found


def rounds_inputs(row: Row) -> bool:
    return row.settings.get("qlinear", "").startswith("8da")


@pytest.mark.parametrize("name", ROWS)
def test_executorchs_own_runner_says_what_pytorch_says_with_the_same_numbers(rows: dict[str, Row], name: str) -> None:
    row, reference = rows[name], rows[name].reference()
    said, prompt = ids_of(row.text), ids_of(PROMPT)
    assert len(set(said)) > 2  # else any mistake could say the same
    if not rounds_inputs(row):
        assert said == generated(reference)
        return
    # An input between two of 256 steps falls to one side or the other; what it does to a narrow model shows in a token
    # only where two are nearly as likely.
    assert said[:3] == generated(reference)[:3]
    with torch.no_grad():
        logits = reference(torch.tensor([prompt + said])).logits[0, len(prompt) - 1 : -1]
    short_of_best = logits.amax(-1) - logits.gather(-1, torch.tensor(said)[:, None])[:, 0]
    assert (short_of_best <= MOST * logits.norm(dim=-1)).all()


# Of the norm of the logits: what one step of an input makes, in layers of 32 columns. The best token is ahead of an
# average one by ten times that.
MOST = 0.05


@pytest.mark.parametrize("linear", LINEAR)
def test_logits_are_those_of_rounded_weights_and_inputs(rows: dict[str, Row], linear: str) -> None:
    row = rows[f"qwen3 {linear}"]
    ids = torch.tensor([ids_of(PROMPT)])
    with torch.no_grad():
        found = row.parts["forward"](input_ids=ids, cache_position=torch.arange(ids.shape[1]))["logits"][0, -1]
        want, whole = row.reference()(ids).logits[0, -1], row.model(ids).logits[0, -1]
    assert (found - want).norm() < (MOST if rounds_inputs(row) else 1e-5) * want.norm()
    assert (found - whole).norm() > 1e-3 * whole.norm()


def test_a_layer_is_cut_by_its_attention_only(rows: dict[str, Row]) -> None:
    """Before the first attention, between the two, after the second, and behind the choice of the last token."""
    for name in ("llama", "qwen3 with kernels", "qwen3 8da4w"):
        assert len(read_program(rows[name].file)["methods"]["forward"]["delegates"]) == 4


def test_a_tied_weight_is_stored_as_an_embedding_and_as_a_product(rows: dict[str, Row]) -> None:
    used = read_program(rows["qwen3 8da4w"].file)["methods"]["forward"]["operators"]
    assert used["quantized_decomposed::embedding_byte.out"] == 1 and "aten::embedding.out" not in used
    assert used["llama::custom_sdpa.out"] == 2 and used["llama::update_cache.out"] == 4


def test_rows_that_groups_do_not_divide_can_have_another_form() -> None:
    """The rows of the second layer of an MLP have 48 columns."""
    model = tiny("llama")
    config = {"max_seq_len": 48, "recipe": "xnnpack", "qlinear": "8da4w,8da8w"}
    program = ExecutorchExporter().export_for_generation(model, config=config)["forward"]
    want = copy.deepcopy(model)
    for module in want.modules():
        if isinstance(module, torch.nn.Linear):
            form = LINEAR["8da4w" if module.in_features % 32 == 0 else "8da8w"]
            module.weight = torch.nn.Parameter(dequantized(module.weight.detach(), *form))
    ids = torch.tensor([ids_of(PROMPT)])
    with torch.no_grad():
        logits = with_rounded_inputs(want)(ids).logits[0, -1]
        found = program(input_ids=ids, cache_position=torch.arange(ids.shape[1]))["logits"][0, -1]
    assert (found - logits).norm() < MOST * logits.norm()


def test_a_group_that_does_not_divide_is_named_before_anything_is_written(tmp_path: Path) -> None:
    config = {"max_seq_len": 16, "recipe": "xnnpack", "qlinear": "8da4w"}
    with pytest.raises(ExportError, match="cannot be quantized with groups of 32"):
        parts = ExecutorchExporter().export_for_generation(tiny("llama"), config=config)
        parts.save(tmp_path / "out" / "m.pte")
    assert not list(tmp_path.iterdir())
