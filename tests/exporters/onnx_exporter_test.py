"""The ONNX exporter as its users meet it: names, files, weights, metadata, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from tiny_models import tiny
from transformers import (
    BertConfig,
    BertModel,
    LlamaForCausalLM,
    SwitchTransformersConfig,
    SwitchTransformersModel,
)

import modelport
from modelport.runtimes.sessions import quiet_session

IDS = {"input_ids": torch.randint(5, 90, (2, 7)), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}


@pytest.fixture(scope="module")
def bert() -> BertModel:
    return tiny("bert")


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return tiny("llama")


def export(model: Any, inputs: Any = None, **fields: Any) -> modelport.OnnxProgram:
    config = modelport.OnnxConfig(**{"dynamic": True, **fields})
    return modelport.OnnxExporter().export(model, dict(inputs or IDS), config)


def test_a_call_gives_the_values_of_the_model_at_another_size(bert: BertModel) -> None:
    program = export(bert)
    inputs = {"input_ids": torch.randint(5, 90, (3, 11)), "attention_mask": torch.ones(3, 11, dtype=torch.int64)}
    want = bert(**inputs)
    got = dict(zip(program.output_names, program(**inputs), strict=True))
    torch.testing.assert_close(got["last_hidden_state"], want.last_hidden_state, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(got["pooler_output"], want.pooler_output, atol=1e-4, rtol=1e-4)


def test_inputs_outputs_and_axes_have_the_names_that_people_know(bert: BertModel) -> None:
    graph = export(bert).model_proto.graph
    assert [i.name for i in graph.input] == ["input_ids", "attention_mask"]
    assert [o.name for o in graph.output] == ["last_hidden_state", "pooler_output"]
    axes = [d.dim_param for d in graph.input[0].type.tensor_type.shape.dim]
    assert axes == ["batch_size", "sequence_length"]


def test_a_cache_goes_out_as_present(llama: LlamaForCausalLM) -> None:
    names = export(llama).output_names
    assert names[:3] == ["logits", "present.0.key", "present.0.value"]


def test_a_flag_that_is_given_reaches_parts_that_have_a_config_of_their_own() -> None:
    config = SwitchTransformersConfig(
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=32,
        num_heads=4,
        num_layers=1,
        num_decoder_layers=1,
        num_sparse_encoder_layers=0,
        num_sparse_decoder_layers=0,
    )
    inputs = IDS | {"decoder_input_ids": torch.randint(5, 90, (2, 3)), "use_cache": False}
    program = export(SwitchTransformersModel(config).eval(), inputs)
    assert program.output_names == ["last_hidden_state", "encoder_last_hidden_state"]


def test_names_can_be_changed(bert: BertModel) -> None:
    program = export(bert, names={"input_ids": "tokens", "last_hidden_state": "hidden"})
    assert program.input_names == ["tokens", "attention_mask"]
    assert program.output_names == ["hidden", "pooler_output"]
    assert set(program.feeds(IDS)) == {"tokens", "attention_mask"}


def test_a_name_that_is_not_there_cannot_be_changed(bert: BertModel) -> None:
    with pytest.raises(modelport.ExportError, match=r"renames nonsense[\s\S]*it has: input_ids"):
        export(bert, names={"nonsense": "x"})


@pytest.mark.parametrize("opset", [3, 16, 99])
def test_an_opset_that_cannot_be_written_is_an_error_that_names_those_that_can(bert: BertModel, opset: int) -> None:
    with pytest.raises(modelport.ExportError, match=rf"opset {opset}[\s\S]*from 17 to"):
        export(bert, opset_version=opset)


@pytest.mark.parametrize("opset", [17, 18, 20, 21, 22, 23, 24])
def test_every_opset_gives_the_same_values(llama: LlamaForCausalLM, opset: int) -> None:
    program = export(llama, opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    torch.testing.assert_close(program(**IDS)[0], llama(**IDS).logits, atol=1e-4, rtol=1e-4)


def test_the_plain_lowering_computes_the_same_with_more_nodes(llama: LlamaForCausalLM) -> None:
    plain, optimized = export(llama, optimize=False), export(llama)
    assert plain.node_count > optimized.node_count
    torch.testing.assert_close(plain(**IDS)[0], llama(**IDS).logits, atol=1e-4, rtol=1e-4)


def test_weights_go_beside_inside_in_shards_or_nowhere(llama: LlamaForCausalLM, tmp_path: Path) -> None:
    program = export(llama)
    want = program(**IDS)[0]

    def logits(path: Path) -> torch.Tensor:
        return torch.from_numpy(quiet_session(path).run(["logits"], program.feeds(IDS))[0])

    beside = program.save(tmp_path / "beside.onnx")
    assert (tmp_path / "beside.onnx_data").stat().st_size > 10_000
    assert torch.equal(logits(beside), want)

    inside = program.save(tmp_path / "inside.onnx", external_data=False)
    assert not (tmp_path / "inside.onnx_data").exists()
    assert torch.equal(logits(inside), want)

    shards = program.save(tmp_path / "shards.onnx", shard_bytes=10_000)
    assert len(list(tmp_path.glob("shards.onnx_data*"))) > 2
    assert torch.equal(logits(shards), want)

    bare = program.save(tmp_path / "bare.onnx", export_params=False)
    inputs = [i.name for i in onnx.load(str(bare)).graph.input]
    assert "model.embed_tokens.weight" in inputs


def test_initializers_can_be_inputs_too(bert: BertModel) -> None:
    names = [i.name for i in export(bert, keep_initializers_as_inputs=True).model_proto.graph.input]
    assert "embeddings.word_embeddings.weight" in names


def test_complex_weights_are_stored_as_pairs() -> None:
    class Turned(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("turns", torch.randn(8, 4, dtype=torch.complex64), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * self.turns
            return torch.view_as_real(turned).flatten(2)

    model = Turned().eval()
    program = export(model, {"x": torch.randn(2, 8, 8)})
    larger = torch.randn(5, 8, 8)
    torch.testing.assert_close(program(x=larger)[0], model(larger))


def test_tied_weights_are_stored_once(bert: BertModel, tmp_path: Path) -> None:
    tied = tiny("llama", vocab_size=999, num_hidden_layers=1, tie_word_embeddings=True)
    export(tied).save(tmp_path / "tied.onnx", external_data=True)
    bytes_of_model = sum(p.numel() * 4 for p in tied.parameters())
    # The head is the transposed embedding, and reads it as it is stored.
    assert (tmp_path / "tied.onnx_data").stat().st_size < bytes_of_model + 8192


def test_the_same_model_gives_the_same_bytes(bert: BertModel) -> None:
    assert export(bert).to_bytes() == export(bert).to_bytes()


def test_the_file_says_for_which_sizes_it_is_valid(llama: LlamaForCausalLM) -> None:
    proto = export(llama).model_proto
    metadata = {row.key: row.value for row in proto.metadata_props}
    dims = {dim["name"]: dim for dim in json.loads(metadata["modelport.limits"])["dims"]}
    assert (dims["batch_size"]["lo"], dims["batch_size"]["hi"]) == (1, None)
    assert proto.producer_name == "modelport"
    assert proto.graph.node[-1].metadata_props[0].value.startswith("modeling_llama.py:")


def test_a_folder_is_exported_without_copying_its_weights(llama: LlamaForCausalLM, tmp_path: Path) -> None:
    llama.save_pretrained(tmp_path / "model")
    program = export(str(tmp_path / "model"))
    path = program.save(tmp_path / "model" / "linked.onnx", weights="link")
    assert not (tmp_path / "model" / "linked.onnx_data").exists()
    # What is in the file: the graph, and constants that the checkpoint does not have.
    assert path.stat().st_size < 60_000
    got = quiet_session(path).run(["logits"], program.feeds(IDS))[0]
    torch.testing.assert_close(torch.from_numpy(got), llama(**IDS).logits, atol=1e-4, rtol=1e-4)


def test_a_model_in_memory_has_nothing_to_link_to(bert: BertModel, tmp_path: Path) -> None:
    with pytest.raises(modelport.ExportError, match="needs a checkpoint to point into"):
        export(bert, weights="link").save(tmp_path / "x.onnx")


def test_a_model_on_the_meta_device_has_no_values_and_its_graph_alone_can_be_had(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = BertModel(BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=2)).eval()
    with pytest.raises(modelport.ExportError, match=r"E0104.*has no values[^~]*export_params=False"):
        export(model).save(tmp_path / "x.onnx")
    graph = onnx.load(str(export(model).save(tmp_path / "x.onnx", export_params=False))).graph
    assert "embeddings.word_embeddings.weight" in {row.name for row in graph.input}


def test_a_save_that_fails_leaves_what_was_there(bert: BertModel, tmp_path: Path) -> None:
    program = export(bert)
    path = program.save(tmp_path / "model.onnx")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(modelport.ExportError, match="cannot write"):
            program.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_operators_without_a_rule_are_listed_all_at_once_with_their_lines() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x) + torch.igamma(x, x)

    with pytest.raises(modelport.ExportError) as error:
        modelport.OnnxExporter().export(Odd().eval(), {"x": torch.rand(3)}, modelport.OnnxConfig())
    text = str(error.value)
    assert "aten.special_bessel_j0" in text and "aten.igamma" in text
    assert "onnx_exporter_test.py" in text and "way out" in text


def test_the_auto_classes_know_onnx() -> None:
    config = modelport.AutoExportConfig.from_dict({"export_format": "onnx", "opset_version": 18})
    assert isinstance(config, modelport.OnnxConfig)
    assert isinstance(modelport.AutoHfExporter.from_config(config), modelport.OnnxExporter)


def test_a_session_has_as_many_threads_as_torch_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "relu", [value("x", 1, [2])], [value("y", 1, [2])])
    opset = onnx.helper.make_opsetid("", 20)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert quiet_session(model).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    expected = torch.get_num_threads()
    assert quiet_session(model).get_session_options().intra_op_num_threads == expected
    assert quiet_session(model, threads=3).get_session_options().intra_op_num_threads == 3
