"""Models exported to ExecuTorch and run in its runtime, and what is said of inputs and settings that do not fit."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import tiny
from transformers import PreTrainedConfig, PreTrainedModel

import modelport
from modelport.artifacts.pte import read_program
from modelport.runtimes.executorch_compilers import tools_for

pytest.importorskip("executorch")


class Scorer(PreTrainedModel):
    """Tokens in, two scores each: operators that every build of the runtime has."""

    config_class = PreTrainedConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = torch.nn.Embedding(50, 16)
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 2)

    def forward(self, input_ids: torch.Tensor, scale: float = 1.0) -> Any:
        hidden = torch.relu(self.up(self.embed(input_ids)))
        return {"scores": self.down(hidden) * scale, "tokens": input_ids.shape[1]}


@pytest.fixture(scope="module")
def scorer() -> Any:
    torch.manual_seed(0)
    return Scorer(PreTrainedConfig(max_position_embeddings=24)).eval()


def ids(batch: int, length: int) -> dict[str, Any]:
    return {"input_ids": torch.randint(0, 50, (batch, length), generator=torch.Generator().manual_seed(length))}


def exported(model: Any, inputs: dict[str, Any], **config: Any) -> Any:
    return modelport.ExecutorchExporter().export(model, inputs, modelport.ExecutorchConfig(**config))


def same(program: Any, model: Any, inputs: dict[str, Any]) -> None:
    with torch.no_grad():
        found, wanted = program(**inputs), model(**inputs)
    assert type(found) is type(wanted) and list(found) == list(wanted)
    torch.testing.assert_close(dict(found), dict(wanted), rtol=1e-5, atol=1e-5)


def refusal(program: Any, **inputs: Any) -> modelport.ExportError:
    with pytest.raises(modelport.ExportError) as caught:
        program(**inputs)
    return caught.value


def test_a_static_program_gives_the_values_of_the_model_in_its_structure(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5))
    assert program.methods == ["forward"] and program.notes == []
    same(program, scorer, ids(2, 5))
    error = refusal(program, **ids(2, 6))
    assert error.code == "E0304" and "axis 1" in str(error)


def test_dynamic_axes_run_at_any_size_up_to_bounds_that_the_report_names(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5), dynamic=True)
    assert program.limits.ranges == {"batch": (1, 8), "seq": (1, 24)}
    for size in ((2, 5), (8, 24), (1, 1)):
        same(program, scorer, ids(*size))
    batch, seq = program.notes
    assert "axis batch is at most 8: four times the example's 2" in batch and "--dims batch=1:N" in batch
    assert "axis seq is at most 24: max_position_embeddings" in seq
    assert seq in program.report()


def test_sizes_beyond_a_bound_are_refused_before_the_run_with_a_way_to_raise_it(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5), dynamic=True, dims={"seq": (2, 9)})
    assert program.limits.ranges["seq"] == (2, 9)
    for length in (1, 10):
        error = refusal(program, **ids(2, length))
        assert error.code == "E0304" and f"seq is {length}" in str(error)
        assert 'dims={"seq": (2, N)}' in str(error)
    same(program, scorer, ids(2, 9))


def test_max_seq_len_bounds_sequences_and_other_names_of_axes_are_known(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5), dynamic=True, max_seq_len=11, dims={"batch_size": 3})
    assert program.limits.ranges == {"batch": (1, 3), "seq": (1, 11)}
    assert program.notes == []


def test_a_declared_largest_size_is_the_bound(scorer: Any) -> None:
    shapes = {"input_ids": {1: torch.export.Dim("length", min=1, max=13)}}
    assert exported(scorer, ids(2, 5), dynamic_shapes=shapes).limits.ranges == {"length": (1, 13)}


@pytest.mark.parametrize(
    ("dims", "said"),
    [({"width": (1, 4)}, "it has: batch, seq"), ({"seq": (9, 2)}, "no smallest"), ({"seq": "9"}, "no smallest")],
)
def test_bounds_that_make_no_sense_are_refused(scorer: Any, dims: Any, said: str) -> None:
    with pytest.raises(modelport.ExportError, match=said) as caught:
        exported(scorer, ids(2, 5), dynamic=True, dims=dims)
    assert caught.value.code == "E0303"


class Pairs(torch.nn.Module):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return (input_ids[:, :, None] * input_ids[:, None, :]).relu()


def test_memory_that_no_machine_has_is_refused_before_a_file_is_written() -> None:
    with pytest.raises(modelport.ExportError, match=r"would set aside [\d,]+ GiB .* seq up to 300000") as caught:
        exported(Pairs().eval(), {"input_ids": torch.ones(2, 5)}, dynamic=True, dims={"seq": (1, 300_000)})
    assert caught.value.code == "E0303" and "--dims AXIS=1:N" in str(caught.value)


def test_bounds_that_nobody_asked_for_fall_until_the_memory_set_aside_is_small() -> None:
    inputs = {"input_ids": torch.ones(2, 5000)}
    program = exported(Pairs().eval(), inputs, dynamic=True)
    assert program.write_to_file(io.BytesIO()) is None
    assert program.written["forward"]["arena_bytes"] > 512 << 20, "never below twice the example"
    assert program.limits.ranges == {"batch": (1, 4), "seq": (1, 10000)}
    assert all("more would set aside over 512 MiB" in note for note in program.notes)

    inputs = {"input_ids": torch.ones(2, 50)}
    small = exported(Pairs().eval(), inputs, dynamic=True, dims={"batch": (1, 4000)})
    small.write_to_file(io.BytesIO())
    assert small.limits.ranges["batch"] == (1, 4000) and 100 <= small.limits.ranges["seq"][1] < 256
    assert small.written["forward"]["arena_bytes"] <= 512 << 20


class Chosen(torch.nn.Module):
    """As many rows as the number in it says."""

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        return x[:1].expand(int(count), 2) * 2


def test_a_size_that_data_decides_has_room_and_a_run_that_needs_more_fails() -> None:
    x = torch.ones(1, 2)
    program = exported(Chosen().eval(), {"x": x, "count": torch.tensor(3)})
    (note,) = program.notes
    assert "which data decides, is at most 16" in note
    for count in (1, 3, 16):
        torch.testing.assert_close(program(x=x, count=torch.tensor(count)), 2 * x.expand(count, 2))
    with pytest.raises(modelport.ExportError):
        program(x=x, count=torch.tensor(17))


class Filling(torch.nn.Module):
    """Features of pictures go to the places of their tokens, as vision models do it."""

    def forward(self, ids: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        hidden = ids[..., None] * torch.ones(3)
        hidden[ids == 7] = features
        return hidden


def test_rows_go_where_a_mask_is_true() -> None:
    ids = torch.tensor([[1, 7, 7, 2], [7, 3, 4, 5]])
    program = exported(Filling().eval(), {"ids": ids, "features": torch.rand(3, 3)}, dynamic=True)
    longer, features = torch.cat([ids, ids.flip(0), ids]), torch.rand(9, 3)
    wanted = Filling()(longer, features)
    torch.testing.assert_close(program(ids=longer, features=features), wanted)


class Ends(torch.nn.Module):
    """Refuses rows with different numbers of end tokens, as classifiers of BART's kind do."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        ends = ids == 2
        if len(torch.unique_consecutive(ends.sum(1))) > 1:
            raise ValueError("every row must have as many")
        return ends.float().cumsum(1)


def test_a_model_that_counts_what_differs_runs_where_the_count_is_the_same() -> None:
    ids = torch.tensor([[1, 2, 5], [2, 3, 4]])
    program = exported(Ends().eval(), {"ids": ids}, dynamic=True)
    torch.testing.assert_close(program(ids=ids.repeat(2, 1)), Ends()(ids.repeat(2, 1)))
    refusal(program, ids=torch.tensor([[1, 2, 2], [2, 3, 4]]))


class Positions(torch.nn.Module):
    """How many rows the result has is a matter of the data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = int(x.sum())
        torch._check(rows >= 1)
        return torch.relu(x[:1].expand(rows, 2))


def test_a_size_that_only_the_data_knows_needs_a_bound_or_a_cell() -> None:
    with pytest.raises(modelport.ExportError) as caught:
        exported(Positions().eval(), {"x": torch.ones(2, 2, dtype=torch.float32)}).buffer  # noqa: B018
    assert caught.value.code in ("E0303", "E0203")
    assert caught.value.diagnostics[0]["ways_out"]


def test_inputs_of_a_wrong_kind_are_refused_before_the_runtime_sees_them(scorer: Any) -> None:
    program = exported(scorer, {**ids(2, 5), "scale": 2.0})
    same(program, scorer, {**ids(2, 5), "scale": 2.0})
    assert "int32, and the program takes int64" in str(refusal(program, input_ids=ids(2, 5)["input_ids"].int()))
    assert "the input input_ids is missing" in str(refusal(program))
    assert "takes no input 'mask'" in str(refusal(program, **ids(2, 5), mask=torch.ones(2)))
    assert "scale was 2.0" in str(refusal(program, **ids(2, 5), scale=3.0))


def test_feeds_are_in_the_order_and_the_layout_that_the_runtime_takes(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5))
    strided = {"input_ids": ids(5, 2)["input_ids"].T}
    assert not strided["input_ids"].is_contiguous()
    [fed] = program.feeds(strided).values()
    assert fed.is_contiguous() and torch.equal(fed, strided["input_ids"])
    same(program, scorer, strided)


def test_one_file_by_three_ways_to_write_it(scorer: Any, tmp_path: Path) -> None:
    program = exported(scorer, ids(2, 5), output_path=tmp_path / "at_once.pte")
    stream = io.BytesIO()
    program.write_to_file(stream)
    assert program.save(tmp_path / "saved.pte").read_bytes() == stream.getvalue() == program.buffer
    assert (tmp_path / "at_once.pte").read_bytes() == program.buffer
    assert read_program(tmp_path / "saved.pte")["methods"]["forward"]["operators"]["aten::linear.out"] == 2


@pytest.mark.parametrize("name", ["coreml_int4", "fast"])
def test_a_recipe_that_is_not_there_is_no_other_recipe(name: str) -> None:
    with pytest.raises(modelport.ExportError, match=name) as caught:
        modelport.ExecutorchConfig(backend=name)
    assert caught.value.code == "E0203" and "portable" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("coreml_fp16_ne", "coremltools"),
        ("cuda", "CUDA"),
        ("openvino", "pip install openvino"),
        ("mlx", "pip install mlx"),
        ("qnn", "QNN_SDK_ROOT"),
        ("metal", "macOS"),
        ("vulkan", "pip install executorch"),
    ],
)
def test_a_backend_whose_tools_are_missing_says_what_to_install(scorer: Any, name: str, tool: str) -> None:
    try:
        tools_for(name)
        pytest.skip("its tools are installed")
    except modelport.ExportError as error:
        assert error.code == "E0203" and tool in str(error) and "xnnpack" in str(error)
    with pytest.raises(modelport.ExportError, match=tool):
        exported(scorer, ids(2, 5), backend=name)


def test_models_that_generate_are_not_compiled_by_other_tools() -> None:
    with pytest.raises(modelport.ExportError, match="not for openvino"):
        modelport.ExecutorchExporter().export_for_generation(None, config={"recipe": "openvino"})


@pytest.mark.parametrize("name", ["openvino", "vulkan"])
def test_a_backend_whose_tools_are_installed_gets_the_captured_program(scorer: Any, name: str, tmp_path: Path) -> None:
    try:
        tools_for(name)
    except modelport.ExportError as error:
        pytest.skip(str(error))
    program = exported(scorer, ids(2, 5), backend=name)
    assert isinstance(program.exported, torch.export.ExportedProgram) and program.exported.example_inputs is not None
    method = read_program(program.save(tmp_path / "model.pte"))["methods"]["forward"]
    assert {backend.lower().removesuffix("backend") for backend, *_ in method["delegates"]} == {name}


def test_memory_of_the_caller_and_two_names_of_a_recipe_are_refused() -> None:
    with pytest.raises(modelport.ExportError, match="alloc_graph_input=False"):
        modelport.ExecutorchConfig(alloc_graph_input=False)
    with pytest.raises(modelport.ExportError, match="two names"):
        modelport.ExecutorchConfig(backend="portable", recipe="xnnpack")


def test_the_registry_knows_the_exporter() -> None:
    config = modelport.AutoExportConfig.from_dict({"export_format": "executorch", "dynamic": True})
    assert type(config) is modelport.ExecutorchConfig and config.backend == "portable"
    assert type(modelport.get_hf_exporter(config)) is modelport.ExecutorchExporter


class Unlowered(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(torch.linalg.det(x)).abs()


def test_operators_without_a_rule_are_all_named_with_the_models_line() -> None:
    with pytest.raises(modelport.ExportError) as caught:
        exported(Unlowered().eval(), {"x": torch.randn(4, 2, 2)})
    named = caught.value.diagnostics
    assert {row["code"] for row in named} <= {"E0201", "E0203"}
    assert all(row["line"] and row["ways_out"] for row in named)


def test_a_runtime_that_is_not_installed_is_said_with_what_to_install(
    scorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from modelport.runtimes import executorch as executorch_runtime

    program = exported(scorer, ids(2, 5))
    executorch_runtime.runtime.cache_clear()
    monkeypatch.setitem(sys.modules, "executorch.extension.pybindings", None)
    assert "pip install executorch==" in str(refusal(program, **ids(2, 5)))


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) if bool(x[0] > 0) else torch.neg(x)


def test_data_of_another_case_is_refused_in_a_call_and_the_file_says_what_it_does_not_test(tmp_path: Path) -> None:
    x = torch.tensor([2.0, -1.0])
    program = exported(Branching().eval(), {"x": x})
    assert torch.equal(program(x=x), torch.relu(x))
    assert refusal(program, x=-x).code == "E0304"
    assert any("checks_as_outputs" in note for note in program.notes)
    tested = exported(Branching().eval(), {"x": x}, checks_as_outputs=True)
    assert not tested.notes
    model = modelport.load(tested.save(tmp_path / "model.pte"))
    assert torch.equal(model(x=x)[0], torch.relu(x))
    with pytest.raises(modelport.ExportError, match="E0304"):
        model(x=-x)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        return torch.neg(self.count)


def test_buffers_are_kept_from_call_to_call_until_reset() -> None:
    program = exported(Counter().eval(), {"x": torch.ones(2)})
    ones = torch.ones(2)
    assert [program(x=ones)[0].item() for _ in range(3)] == [-1.0, -2.0, -3.0]
    program.reset()
    assert program(x=ones)[0].item() == -1.0


def test_a_file_is_loaded_as_a_plain_model(scorer: Any, tmp_path: Path) -> None:
    exported(scorer, ids(2, 5), dynamic=True).save(tmp_path / "model.pte")
    with torch.no_grad():
        wanted = scorer(**ids(3, 4))
    for place in (tmp_path, tmp_path / "model.pte"):
        model = modelport.load(place)
        assert (model.input_names, model.output_names) == (["input_ids"], ["scores", "tokens"])
        torch.testing.assert_close(model(**ids(3, 4)).scores, wanted["scores"])
        with pytest.raises(modelport.ExportError, match="seq is 25"):
            model(**ids(2, 25))
        with pytest.raises(modelport.ExportError, match="cannot generate"):
            model.generate()


def test_a_check_finds_equal_values_and_a_changed_weight(scorer: Any) -> None:
    program = exported(scorer, ids(2, 5), dynamic=True)
    sizes = [ids(2, 5), ids(1, 7), ids(4, 24)]
    assert modelport.check(program, scorer, sizes).ok
    other = Scorer(scorer.config).eval()
    assert not modelport.check(program, other, sizes).ok


@pytest.mark.parametrize("dynamic", [False, True])
def test_bert_gives_the_values_of_the_model(dynamic: bool) -> None:
    model = tiny("bert", max_position_embeddings=64, intermediate_size=37)
    inputs = [{**ids(*size), "attention_mask": torch.ones(size, dtype=torch.int64)} for size in ((2, 7), (3, 11))]
    try:
        program = exported(model, inputs[0], dynamic=dynamic)
    except modelport.ExportError as error:
        if error.code != "E0203":
            raise
        pytest.skip("operators of BERT without a cell: " + ", ".join({row["what"] for row in error.diagnostics}))
    for given in inputs if dynamic else inputs[:1]:
        same(program, model, given)
