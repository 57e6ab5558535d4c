"""What `modelport.capture` promises besides values: the model untouched, readable graphs, guards, symbols, threads."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest
import torch
from tiny_models import tiny

import modelport


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 6)
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x))


def captured_at(function: Any, *shapes: tuple[int, ...], **options: Any) -> modelport.Captured:
    tensors = tuple(torch.randn(*shape) for shape in shapes)
    return modelport.capture(function, tensors, dynamic=True, **options)


def assert_runs(captured: modelport.Captured, function: Any, *shapes: tuple[int, ...]) -> None:
    tensors = [torch.randn(*shape) for shape in shapes]
    with torch.no_grad():
        want, got = function(*[t.clone() for t in tensors]), captured.run(*[t.clone() for t in tensors])
    torch.testing.assert_close(got, want)


def test_every_node_has_the_line_and_the_module_of_the_model() -> None:
    captured = captured_at(Block().eval(), (3, 5, 4))
    nodes = captured.program.nodes()
    assert [n["op"] for n in nodes] == ["aten.linear", "aten.layer_norm"]
    assert [n["module"] for n in nodes] == ["linear", "norm"]
    assert all(n["file"].endswith("capture_test.py") and n["function"] == "Block.forward" for n in nodes)


def test_weights_have_their_checkpoint_names_and_tied_ones_occur_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(4, 4, bias=False)
            self.b = torch.nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    program = captured_at(Tied().eval(), (2, 4)).program
    assert list(program.weights()) == ["a.weight"]
    assert program.tied_names() == {"a.weight": ["b.weight"]}


def test_a_write_through_a_view_is_seen_by_the_base_and_by_other_views() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x.clone()
        column, row = y[:, 1], y.transpose(0, 1)[2]
        column.mul_(3)
        y[:, 2:].add_(1)
        row[0] = 7
        y.view(-1)[0] = 5
        return y, column, row, y.unsqueeze(0).squeeze(0).t()

    captured = captured_at(function, (3, 5))
    assert_runs(captured, function, (3, 5))
    assert_runs(captured, function, (4, 7))


def test_a_plain_tensor_that_gets_traced_contents_is_part_of_the_graph() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        table = torch.zeros(4, 4)
        half = table[:2]
        half[0] = x.sum()
        table[3, 1:3] = x.mean()
        return table + half.sum()

    captured = captured_at(function, (3, 5))
    assert_runs(captured, function, (6, 2))


def test_sizes_are_symbols_in_arithmetic_and_in_scalars() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        batch, length = x.shape
        return (
            x.reshape(batch * length)[: length // 2 + 1] * batch + length**0.5 + torch.arange(length // 2 + 1) / length
        )

    captured = captured_at(function, (3, 8))
    assert_runs(captured, function, (3, 8))
    assert_runs(captured, function, (5, 12))


def test_a_number_read_from_a_tensor_is_a_symbol() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x[:, : n.item()] + torch.full((1,), n.tolist() if n.dim() == 0 else 0)

    x = torch.randn(3, 9)
    captured = modelport.capture(function, (x, torch.tensor(4)), dynamic=True)
    for n in (4, 2, 7):
        torch.testing.assert_close(captured.run(x, torch.tensor(n)), function(x, torch.tensor(n)))


def test_a_size_that_the_data_decides_is_a_symbol() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0] * 2

    captured = captured_at(function, (4, 5))
    assert_runs(captured, function, (4, 5))
    assert_runs(captured, function, (2, 9))


def test_a_branch_on_data_is_an_assumption_and_is_checked_when_the_graph_runs() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x - 1

    captured = modelport.capture(function, (torch.ones(3),))
    assert [a["expected"] for a in captured.assumptions] == [True]
    torch.testing.assert_close(captured.run(torch.full((3,), 2.0)), torch.full((3,), 4.0))
    with pytest.raises(modelport.ExportError, match="branch that was not captured") as error:
        captured.run(-torch.ones(3))
    assert "capture_test.py" in str(error.value)


def test_a_guard_that_makes_no_difference_is_dropped() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 1:
            pass
        return x * 2

    captured = captured_at(function, (3, 5))
    assert_runs(captured, function, (2, 1))


def test_a_graph_that_is_right_at_the_next_size_alone_is_not_taken_for_right_beyond_it() -> None:
    def uneven(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] <= 6:
            return x * x.shape[0]
        return x * 7 if x.shape[0] == 7 else x * 100

    captured = modelport.capture(uneven, (torch.randn(5),), dynamic=True)
    assert next(dim["hi"] for dim in captured.program.dims()) == 7
    x = torch.randn(7)
    torch.testing.assert_close(captured.run(x), uneven(x))
    with pytest.raises(modelport.ExportError, match="E0304"):
        captured.run(torch.ones(8))


def test_a_size_of_zero_that_is_read_as_a_number_gives_the_same_graph() -> None:
    def after_a_past(x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        start = 0 if past.numel() == 0 else past.shape[0]
        return torch.cat([past, x]) + torch.arange(start, start + x.shape[0]).sum()

    shapes = {"x": {0: "new"}, "past": {0: torch.export.Dim("past", min=0)}}
    captured = modelport.capture(after_a_past, (torch.ones(3), torch.ones(4)), dynamic_shapes=shapes)
    assert next(dim["lo"] for dim in captured.program.dims() if dim["name"] == "past") == 0
    assert captured.run(x=torch.ones(3), past=torch.ones(0)).tolist() == [4.0, 4.0, 4.0]


def test_a_guard_that_makes_a_difference_stays_and_names_its_line() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] > 1 else x - 1

    captured = captured_at(function, (3, 5))
    with pytest.raises(modelport.ExportError, match="x_1"):
        captured.run(torch.randn(3, 1))
    assert any("capture_test.py" in guard["file"] for guard in captured.guards)


def test_random_operators_are_recorded_as_such() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x) + torch.randn(x.shape)

    captured = captured_at(function, (3, 5))
    x = torch.zeros(2, 4)
    torch.manual_seed(3)
    want = function(x)
    torch.manual_seed(3)
    torch.testing.assert_close(captured.run(x), want)


def test_a_buffer_that_the_model_changes_is_a_mutation_and_is_put_back() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps.add_(1)
            return x + self.steps

    model = Counter().eval()
    captured = captured_at(model, (3, 2))
    assert model.steps.item() == 0
    assert "mutate @steps" in str(captured)
    torch.testing.assert_close(captured.run(torch.zeros(3, 2)), torch.ones(3, 2))


def test_an_exception_in_the_model_leaves_everything_as_it_was() -> None:
    class Fails(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(2))
            self.cache = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.state.fill_(9)
            self.cache = x * 2
            raise KeyError("lost")

    model = Fails().eval()
    before = (torch.tensor, torch.Tensor.tolist, torch.nn.Module.__call__, torch.compiler._is_exporting_flag)
    with pytest.raises(modelport.ExportError, match="KeyError") as error:
        captured_at(model, (2, 2))
    assert error.value.diagnostics[0]["line"] > 0
    assert model.cache is None and model.state.tolist() == [0, 0]
    assert before == (torch.tensor, torch.Tensor.tolist, torch.nn.Module.__call__, torch.compiler._is_exporting_flag)
    assert type(torch.ones(2) + 1) is torch.Tensor


def test_two_captures_in_two_threads_do_not_disturb_each_other() -> None:
    model = Block().eval()
    alone = str(captured_at(model, (3, 5, 4)))
    texts: list[str] = []

    def work() -> None:
        texts.extend(str(captured_at(model, (3, 5, 4))) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [alone] * 20


def test_the_text_of_a_graph_parses_back() -> None:
    from modelport.base.core import parse_graph

    text = str(captured_at(Block().eval(), (3, 5, 4)))
    assert parse_graph(text).text() == text


def test_check_passes_where_values_agree_and_names_the_first_node_where_they_part() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.factor = 2.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.linear(x) * self.factor).relu()

    model = Scaled().eval()
    captured = captured_at(model, (3, 4))
    assert captured.check(model, {"x": torch.randn(5, 4)})[0].absolute < 1e-5
    model.factor = 3.0
    with pytest.raises(modelport.ExportError, match=r"first node that differs is .*aten\.mul"):
        captured.check(model, {"x": torch.randn(5, 4)})


def test_a_model_output_and_a_cache_come_back_as_the_model_gives_them() -> None:
    model = tiny("llama")
    captured = modelport.capture(model, {"input_ids": torch.randint(0, 99, (3, 7))}, dynamic=True)
    ids = torch.randint(0, 99, (2, 5))
    with torch.no_grad():
        want, got = model(input_ids=ids), captured.run(input_ids=ids)
    assert type(got) is type(want) and type(got.past_key_values) is type(want.past_key_values)
    torch.testing.assert_close(got.logits, want.logits)
    torch.testing.assert_close(got.past_key_values.layers[1].keys, want.past_key_values.layers[1].keys)
    assert "past_key_values.1.value" in captured.output_names


class Remembering(torch.nn.Module):
    @staticmethod
    @functools.lru_cache(maxsize=8)
    def table(length: int) -> torch.Tensor:
        return torch.arange(length).sin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(x.shape[1])


def test_what_a_model_remembers_of_its_calls_is_forgotten_with_the_capture() -> None:
    model, x = Remembering().eval(), torch.randn(2, 5)
    for _ in range(2):
        graph = modelport.capture(model, {"x": x}, dynamic=True)
        assert Remembering.table.cache_info().currsize == 0
    torch.testing.assert_close(model(x), graph.run(x=x))
    longer = torch.randn(3, 9)
    torch.testing.assert_close(graph.run(x=longer), model(longer))


def test_hooks_that_a_model_installs_when_it_is_first_called_are_installed_once() -> None:
    class Watched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.ready = False
            self.seen: list[torch.Tensor] = []

        def forward(self, x: torch.Tensor) -> Any:
            if not self.ready:
                self.linear.register_forward_hook(lambda _module, _args, output: self.seen.append(output))
                self.ready = True
            self.seen.clear()
            self.linear(x)
            return tuple(self.seen)

    model = Watched().eval()
    captured = captured_at(model, (3, 2))
    assert len(captured.output_names) == 1
    with torch.no_grad():
        assert len(model(torch.randn(3, 2))) == 1


def test_what_was_in_new_memory_before_is_no_constant_of_the_graph() -> None:
    def table(x: torch.Tensor) -> torch.Tensor:
        rows = torch.empty(4, 2, dtype=torch.int64)
        others = torch.empty_like(rows), rows.new_empty(4, 2)
        for tensor in (rows, *others):
            for row in range(4):
                tensor[row, 0], tensor[row, 1] = x.shape[0], row
        return x.sum() + rows.sum() + others[0].sum() + others[1].sum()

    captured = modelport.capture(table, (torch.randn(3, 2),), dynamic=True)
    torch.testing.assert_close(captured.run(torch.ones(5, 2)), table(torch.ones(5, 2)))
    whole = [tensor for tensor in captured.program.weights().values() if tensor.numel() == 8]
    assert len(whole) == 3 and not any(tensor.any() for tensor in whole)
