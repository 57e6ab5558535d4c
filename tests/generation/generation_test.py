"""Export for generation: one graph for the prompt and every later token, caches with names, parts by name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import onnx
import pytest
import tiny_models
import torch
import transformers
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

import modelport
from modelport import ExportError, OnnxConfig, OnnxExporter
from modelport.checking.generation import compare_generation

TINY = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip


def tiny(name: str, **more: Any) -> Any:
    cls = getattr(transformers, name)
    torch.manual_seed(7)
    return tiny_models.lively(cls(cls.config_class(**TINY | more)).eval(), 4)


def t5() -> Any:
    return tiny_models.tiny("t5", vocab_size=61)


def prompt(batch: int, length: int, seed: int = 0) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 60, (batch, length), generator=torch.Generator().manual_seed(seed))
    mask = torch.ones_like(ids)
    mask[0, : length // 3] = 0  # padded on the left
    return {"input_ids": ids, "attention_mask": mask}


def exported(model: Any, **config: Any) -> Any:
    return OnnxExporter().export_for_generation(model, prompt(2, 5), OnnxConfig(**config))


class Continued:
    """Both sides of a text that goes on: the model with its own cache, the file with the tensors that it gave."""

    def __init__(self, model: Any, program: Any, batch: int):
        self.model, self.program = model, program
        self.mask = torch.zeros(batch, 0, dtype=torch.int64)
        self.cache = DynamicCache(config=model.config)
        sizes = {d.name: d for d in program.model_proto.graph.input}
        self.past = {}
        for name in program.input_names:
            if name.startswith("past_key_values."):
                dims = sizes[name].type.tensor_type.shape.dim
                self.past[name] = torch.zeros([batch, *(d.dim_value for d in dims[1:])])

    def read(self, ids: torch.Tensor, mask: torch.Tensor) -> None:
        """Reads some tokens and compares their logits."""
        self.mask = torch.cat([self.mask, mask], 1)
        positions = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        call = {"input_ids": ids, "attention_mask": self.mask, "position_ids": positions}
        with torch.no_grad():
            want = self.model(**call, past_key_values=self.cache, use_cache=True)
        feeds = {n: v for n, v in call.items() if n in self.program.input_names} | self.past
        got = dict(zip(self.program.output_names, self.program(**feeds), strict=True))
        self.past = {name: got[name.replace("past_key_values", "present", 1)] for name in self.past}
        seen = mask.bool()
        torch.testing.assert_close(got["logits"][seen], want.logits[seen], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("LlamaForCausalLM", {}),
        ("Qwen3ForCausalLM", {}),
        ("Gemma3ForCausalLM", {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}),
        ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    ],
)
def test_one_graph_reads_a_prompt_then_a_token_then_several(name: str, more: dict[str, Any], batch: int) -> None:
    model = tiny(name, **more)
    text = Continued(model, exported(model)["model"], batch)
    text.read(**_ids_and_mask(prompt(batch, 6)))
    for length in (1, 4, 1):
        ids = torch.randint(3, 60, (batch, length), generator=torch.Generator().manual_seed(length))
        text.read(ids, torch.ones_like(ids))


def _ids_and_mask(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"ids": given["input_ids"], "mask": given["attention_mask"]}


def test_a_decoder_has_the_names_that_clients_know_and_no_branches() -> None:
    program = exported(tiny("LlamaForCausalLM"))["model"]
    assert program.input_names == [
        "input_ids", "attention_mask", "position_ids",
        "past_key_values.0.key", "past_key_values.0.value", "past_key_values.1.key", "past_key_values.1.value",
    ]  # fmt: skip
    assert program.output_names == [
        "logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value"
    ]  # fmt: skip
    proto = program.model_proto
    shapes = {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in proto.graph.input}
    assert shapes["input_ids"] == ["batch_size", "sequence_length"]
    assert shapes["past_key_values.0.key"] == ["batch_size", 2, "past_sequence_length", 8]
    assert "If" not in {node.op_type for node in proto.graph.node}
    onnx.checker.check_model(proto, full_check=True)


def test_a_state_space_model_has_its_states_as_inputs_and_outputs() -> None:
    parts = exported(tiny_models.tiny("mamba"))
    names = next(iter(reversed(parts.values()))).input_names
    assert "past_conv.0" in names and "past_recurrent.1" in names


def test_a_decoder_projects_the_states_of_its_encoder_once_without_branches() -> None:
    model = t5()
    parts = OnnxExporter().export_for_generation(model, prompt(2, 6), OnnxConfig())
    assert list(parts) == ["encoder_model", "decoder_model_merged"]
    decoder = parts["decoder_model_merged"]
    assert "If" not in {node.op_type for node in decoder.model_proto.graph.node}
    given = prompt(3, 8, seed=3)
    (states,) = parts["encoder_model"](**given)
    with torch.no_grad():
        wanted_states = model.get_encoder()(**given).last_hidden_state
    torch.testing.assert_close(states, wanted_states, atol=1e-4, rtol=1e-4)
    past = {n: torch.zeros(3, 4, 0, 8) for n in decoder.input_names if n.startswith("past_key_values.")}
    cache = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    for length in (3, 1, 2):
        ids = torch.randint(3, 60, (3, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            want = model(
                decoder_input_ids=ids, encoder_outputs=(wanted_states,), attention_mask=given["attention_mask"],
                past_key_values=cache, use_cache=True,
            )  # fmt: skip
        feeds = {"input_ids": ids, "encoder_hidden_states": states, "encoder_attention_mask": given["attention_mask"]}
        got = dict(zip(decoder.output_names, decoder(**feeds, **past), strict=True))
        torch.testing.assert_close(got["logits"], want.logits, atol=1e-4, rtol=1e-4)
        past = {name: got[name.replace("past_key_values", "present", 1)] for name in past}
        assert past["past_key_values.0.encoder.key"].shape == (3, 4, 8, 8)


def test_a_check_compares_what_the_encoder_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompts = t5(), [("example", prompt(2, 6))]
    loaded = modelport.load(OnnxExporter().export_for_generation(model, prompt(2, 6)).save(tmp_path))
    report = compare_generation(loaded, model, prompts, None, "t5")
    assert report.ok
    assert [row.output for row in report.rows] == ["encoder", "logits", "tokens"]
    encode = loaded._parts.encode
    monkeypatch.setattr(loaded._parts, "encode", lambda given: {n: v + 0.01 for n, v in encode(given).items()})
    assert not compare_generation(loaded, model, prompts, None, "t5").rows[0].ok


def test_watching_generate_leaves_the_model_as_it_was() -> None:
    model = tiny("Gemma3ForCausalLM", sliding_window=4)
    before = set(vars(model)), model.generation_config.to_dict(), copy.deepcopy(model.config.to_dict())
    exported(model)
    assert (set(vars(model)), model.generation_config.to_dict(), model.config.to_dict()) == before


def test_each_part_has_its_config_where_they_are_given_by_name() -> None:
    parts = OnnxExporter().export_for_generation(
        t5(), prompt(2, 6), {"encoder_model": OnnxConfig(opset_version=18), "decoder_model_merged": OnnxConfig()}
    )
    assert parts["encoder_model"].opset == 18
    assert parts["decoder_model_merged"].opset == 23
    with pytest.raises(ExportError, match="none for decoder_model_merged"):
        OnnxExporter().export_for_generation(t5(), prompt(2, 6), {"encoder_model": OnnxConfig()})


def test_a_dict_of_fields_is_one_config_for_all_parts() -> None:
    config = {"names": {"logits": "scores"}}
    program = OnnxExporter().export_for_generation(tiny("LlamaForCausalLM"), prompt(2, 5), config)["model"]
    assert program.output_names[0] == "scores"


def test_only_the_logits_of_the_last_tokens_are_computed_where_that_is_asked_for() -> None:
    model = tiny("LlamaForCausalLM")
    program = exported(model, num_logits_to_keep=1)["model"]
    given = prompt(2, 6)
    given["position_ids"] = (given["attention_mask"].cumsum(1) - 1).clamp(min=0)
    past = {n: torch.zeros(2, 2, 0, 8) for n in program.input_names if n.startswith("past_key_values.")}
    with torch.no_grad():
        want = model(**given).logits
    torch.testing.assert_close(program(**given, **past)[0], want[:, -1:], atol=1e-4, rtol=1e-4)


def test_a_model_that_gives_all_logits_whatever_it_is_told_is_refused_with_a_way_out() -> None:
    with pytest.raises(ExportError, match="T5ForConditionalGeneration gives the logits of all tokens"):
        OnnxExporter().export_for_generation(t5(), prompt(2, 6), OnnxConfig(num_logits_to_keep=1))


def test_a_model_that_cannot_generate_is_refused_with_a_way_out() -> None:
    with pytest.raises(ExportError, match=r"BertModel cannot generate(.|\n)*way out"):
        exported(tiny_models.tiny("bert"))


def test_parts_for_torch_export_have_the_names_of_transformers() -> None:
    model = tiny("LlamaForCausalLM")
    parts = modelport.decompose_prefill_decode(model, prompt(2, 5))
    assert list(parts) == ["prefill", "decode"]
    assert parts["prefill"][1]["input_ids"].shape == (2, 5)
    assert parts["decode"][1]["input_ids"].shape == (2, 1)
    several = modelport.decompose_for_generation(model, prompt(2, 5), multi_token_decode=True)
    assert several["decode"][1]["input_ids"].shape == (2, 3)
    assert not modelport.is_multimodal(model)
