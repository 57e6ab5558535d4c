"""Graphs in ExecuTorch's dialect, written as .pte files and run in ExecuTorch's own runtime, next to torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch_process import RuntimeProcess

from modelport import ExportError
from modelport.base import core
from modelport.exporters.executorch_file import Method, write_executorch

pytest.importorskip("executorch")


@pytest.fixture(scope="module")
def runtime() -> Iterator[RuntimeProcess]:
    process = RuntimeProcess()
    yield process
    process.close()


def method(text: str, weights: dict[str, torch.Tensor] | None = None, name: str = "forward", **more: Any) -> Method:
    return Method(name, core._modelport.parse_graph(text, weights or {}), **more)


def same(found: Any, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


LINEAR = """
graph g(%x: f32[batch, 4])
  where batch in 1..16 = 3
  weights @w: f32[3, 4], @b: f32[3]
{
  %1 = et.aten.linear.out(input=%x, weight=@w, bias=@b) : f32[batch, 3]
  %2 = et.aten.relu.out(self=%1) : f32[batch, 3]
  %3 = et.view(self=%2, size=[3*batch]) : f32[3*batch]
  return y = %3, n = 3*batch
}
"""


def linear_weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {"w": torch.randn(3, 4, generator=generator), "b": torch.randn(3, generator=generator)}


def test_a_dynamic_batch_runs_at_any_size_up_to_its_bound(runtime: RuntimeProcess, tmp_path: Path) -> None:
    weights = linear_weights()
    written = write_executorch(tmp_path / "m.pte", [method(LINEAR, weights)])
    assert [Path(file).name for file in written["files"]] == ["m.pte"]
    xs = [torch.randn(n, 4) for n in (16, 3, 1)]
    outputs = runtime.run(tmp_path / "m.pte", [("forward", [x]) for x in xs])
    for x, (y, n) in zip(xs, outputs, strict=True):
        same(y, torch.relu(torch.nn.functional.linear(x, weights["w"], weights["b"])).reshape(-1))
        assert n == 3 * x.shape[0]
    with pytest.raises(RuntimeError):
        runtime.run(tmp_path / "m.pte", [("forward", [torch.randn(17, 4)])])


def test_weights_beside_the_program_are_found_by_name(runtime: RuntimeProcess, tmp_path: Path) -> None:
    weights = linear_weights()
    written = write_executorch(tmp_path / "m.pte", [method(LINEAR, weights)], weights_beside=True)
    assert [Path(file).name for file in written["files"]] == ["m.pte", "m.ptd"]
    x = torch.randn(2, 4)
    ((y, _),) = runtime.run(tmp_path / "m.pte", [("forward", [x])], data=tmp_path / "m.ptd")
    same(y, torch.relu(torch.nn.functional.linear(x, weights["w"], weights["b"])).reshape(-1))
    with pytest.raises(RuntimeError):
        runtime.run(tmp_path / "m.pte", [("forward", [x])])


COUNTER = """
graph g(%x: f32[2])
  weights @count: f32[2] buffer, @last: f32[2] buffer
{
  %1 = et.aten.add.out(self=@count, other=%x, alpha=1) : f32[2]
  %2 = et.aten.mul.out(self=%1, other=@last) : f32[2]
  return sum = %1, product = %2, before = @last
  mutate @count = %1
  mutate @last = %x
}
"""


def test_state_begins_with_its_value_and_counts_the_calls(runtime: RuntimeProcess, tmp_path: Path) -> None:
    weights = {"count": torch.tensor([5.0, 7.0]), "last": torch.tensor([1.0, 2.0])}
    written = write_executorch(tmp_path / "m.pte", [method(COUNTER, weights)])
    assert written["methods"]["forward"]["state_bytes"] == 16
    count, last = weights["count"], weights["last"]
    xs = [torch.randn(2) for _ in range(4)]
    outputs = runtime.run(tmp_path / "m.pte", [("forward", [x]) for x in xs])
    for x, (total, product, before) in zip(xs, outputs, strict=True):
        count = count + x
        same(total, count)
        same(product, count * last)
        same(before, last)
        last = x


SWAP = """
graph g(%x: f32[2])
  weights @a: f32[2] buffer, @b: f32[2] buffer
{
  %1 = et.aten.add.out(self=@a, other=%x, alpha=1) : f32[2]
  return y = %1
  mutate @a = @b
  mutate @b = @a
}
"""


def test_two_states_that_change_places_do_not_overwrite_each_other(runtime: RuntimeProcess, tmp_path: Path) -> None:
    weights = {"a": torch.tensor([1.0, 1.0]), "b": torch.tensor([10.0, 20.0])}
    write_executorch(tmp_path / "m.pte", [method(SWAP, weights)])
    outputs = runtime.run(tmp_path / "m.pte", [("forward", [torch.zeros(2)])] * 3)
    same(torch.stack([y for (y,) in outputs]), torch.stack([weights["a"], weights["b"], weights["a"]]))


def test_methods_share_constants_and_keep_their_own_state(runtime: RuntimeProcess, tmp_path: Path) -> None:
    big = torch.randn(200, 200)  # too large to be compared by its contents
    text = """
graph g(%x: f32[1, 200])
  weights @w: f32[200, 200], @n: f32[1, 200] buffer
{
  %1 = et.aten.mm.out(self=%x, mat2=@w) : f32[1, 200]
  %2 = et.aten.add.out(self=@n, other=%1, alpha=1) : f32[1, 200]
  return y = %2
  mutate @n = %2
}
"""
    plain = """
graph g(%x: f32[1, 200])
  weights @v: f32[200, 200]
{
  %1 = et.aten.mm.out(self=%x, mat2=@v) : f32[1, 200]
  %2 = et.aten.mm.out(self=%1, mat2=@v) : f32[1, 200]
  return y = %2
}
"""
    methods = [
        method(text, {"w": big, "n": torch.ones(1, 200)}, "step"),
        method(text.replace("@n", "@m"), {"w": big, "m": torch.zeros(1, 200)}, "other"),
        method(plain, {"v": big.clone()}, "plain"),
    ]
    write_executorch(tmp_path / "m.pte", methods)
    assert (tmp_path / "m.pte").stat().st_size < 2 * big.nbytes
    x = torch.randn(1, 200) / 10
    calls = [(name, [x]) for name in ("step", "plain", "other", "step", "other")]
    product = x @ big
    expected = [1 + product, product @ big, product, 1 + 2 * product, 2 * product]
    for shared in (False, True):
        outputs = runtime.run(tmp_path / "m.pte", calls, methods_share_arenas=shared)
        for (y,), wanted in zip(outputs, expected, strict=True):
            torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-4)


def test_methods_that_name_the_same_state_share_it_where_they_share_arenas(
    runtime: RuntimeProcess, tmp_path: Path
) -> None:
    text = """
graph g(%x: f32[2])
  weights @n: f32[2] buffer
{
  %1 = et.aten.add.out(self=@n, other=%x, alpha=1) : f32[2]
  return y = %1
  mutate @n = %1
}
"""
    methods = [method(text, {"n": torch.ones(2)}, name) for name in ("prefill", "decode")]
    write_executorch(tmp_path / "m.pte", methods)
    calls = [(name, [torch.ones(2)]) for name in ("prefill", "decode", "prefill")]
    outputs = runtime.run(tmp_path / "m.pte", calls, methods_share_arenas=True)
    assert [float(y[0]) for (y,) in outputs] == [2, 3, 4]


def test_constant_methods_give_what_they_were_given(runtime: RuntimeProcess, tmp_path: Path) -> None:
    table = torch.arange(6, dtype=torch.int64).reshape(2, 3)
    constants = {
        "get_max_seq_len": 128,
        "use_kv_cache": True,
        "get_scale": 0.5,
        "get_name": "tiny",
        "get_eos_ids": [7, 9],
        "get_table": table,
    }
    write_executorch(tmp_path / "m.pte", [method(LINEAR, linear_weights())], constant_methods=constants)
    found = dict(zip(constants, runtime.run(tmp_path / "m.pte", [(name, []) for name in constants]), strict=True))
    assert torch.equal(found.pop("get_table")[0], table)
    assert found == {
        "get_max_seq_len": [128],
        "use_kv_cache": [True],
        "get_scale": [0.5],
        "get_name": ["tiny"],
        "get_eos_ids": [7, 9],
    }


def test_the_file_says_what_its_methods_are_valid_for(runtime: RuntimeProcess, tmp_path: Path) -> None:
    write_executorch(tmp_path / "m.pte", [method(LINEAR, linear_weights(), bounds={"batch": 8})])
    ((limits,), (outputs,)) = runtime.run(tmp_path / "m.pte", [("modelport_limits", []), ("modelport_outputs", [])])
    assert json.loads(outputs) == {"forward": ["y", "n"]}
    record = json.loads(limits)["forward"]
    assert [entry["name"] for entry in record["inputs"]] == ["x"]
    assert "8" in json.dumps(record["dims"]) and "16" not in json.dumps(record["dims"])


CHECKED = """
graph g(%x: f32[2], %skip: bool[1])
{
  %1 = et.aten.logical_not.out(self=%skip) : bool[1]
  assume %1 == true  # model.py:7 in Model.forward
  return y = %x
}
"""


def test_what_a_graph_assumes_of_data_comes_behind_its_outputs(runtime: RuntimeProcess, tmp_path: Path) -> None:
    methods = [method(CHECKED, frozen={"use_cache": False})]
    write_executorch(tmp_path / "m.pte", methods, checks_as_outputs=True)
    x, records = torch.randn(2), [("modelport_limits", []), ("modelport_outputs", [])]
    calls = [("forward", [x, torch.tensor([skip])]) for skip in (False, True)]
    right, wrong, (limits,), (outputs,) = runtime.run(tmp_path / "m.pte", [*calls, *records])
    assert bool(right[1]) and not bool(wrong[1])
    assert json.loads(outputs) == {"forward": ["y", "check.0"]}
    record = json.loads(limits)["forward"]
    assert record["checks"][0]["output"] == "check.0" and "use_cache" in json.dumps(record["frozen"])
    write_executorch(tmp_path / "m.pte", methods)
    assert len(runtime.run(tmp_path / "m.pte", calls)[0]) == 1


def test_weights_are_converted_to_the_type_of_the_graph(runtime: RuntimeProcess, tmp_path: Path) -> None:
    text = """
graph g(%x: f16[2, 2])
  weights @w: f16[4]
{
  %1 = et.view(self=@w, size=[2, 2]) : f16[2, 2]
  %2 = et.aten.mul.out(self=%x, other=%1) : f16[2, 2]
  return y = %2
}
"""
    w, x = torch.tensor([1.0, 2.0, 1e6, 0.1]), torch.ones(2, 2, dtype=torch.float16)
    for beside in (False, True):
        written = write_executorch(tmp_path / "m.pte", [method(text, {"w": w})], weights_beside=beside)
        assert written["losses"] == [("w", "f32", "f16", 1, 0)]
        ((y,),) = runtime.run(tmp_path / "m.pte", [("forward", [x])], data=tmp_path / "m.ptd" if beside else None)
        assert torch.equal(y, w.half().reshape(2, 2))


NUMBERS = """
graph g(%x: f32[a, 8], %y: f32[2*b + 1])
  where a in 1..9 = 3, b in 0..9 = 2
{
  %1 = et.aten.full.out(size=[a//2 + max(a, b)], fill_value=1.5) : f32[a//2 + max(a, b)]
  %2 = et.aten.slice_copy.Tensor_out(self=%x, dim=0, start=0, end=min(a, b), step=1) : f32[min(a, b), 8]
  %3 = et.view(self=%x, size=[4, 2*a]) : f32[4, 2*a]
  return full = %1, cut = %2, flat = %3, down = (a - 2*b)//3, rest = (a - 2*b)%4, choice = select(a == b, 7, a*a - b)
}
"""


@pytest.mark.parametrize(("a", "b"), [(3, 2), (9, 0), (1, 9), (4, 4)])
def test_sizes_are_computed_at_run_time(runtime: RuntimeProcess, tmp_path: Path, a: int, b: int) -> None:
    write_executorch(tmp_path / "m.pte", [method(NUMBERS)])
    x = torch.randn(a, 8)
    ((full, cut, flat, down, rest, choice),) = runtime.run(
        tmp_path / "m.pte", [("forward", [x, torch.zeros(2 * b + 1)])]
    )
    same(full, torch.full((a // 2 + max(a, b),), 1.5))
    same(cut, x[: min(a, b)])
    same(flat, x.reshape(4, 2 * a))
    assert (down, rest, choice) == ((a - 2 * b) // 3, (a - 2 * b) % 4, 7 if a == b else a * a - b)


REALS = """
graph g(%x: f32[n])
  where n in 1..64 = 3
{
  %1 = et.aten.mul.Scalar_out(self=%x, other=real(float(n)**-0.5)) : f32[n]
  return y = %1, up = ceil(float(n)/2.0), down = floor(float(n)/2.0), even = round(float(n)/2.0),
    root = trunc(sqrt(float(n)))
}
"""


@pytest.mark.parametrize("n", [1, 3, 5, 16, 50])
def test_fractions_of_sizes_are_computed_as_python_does(runtime: RuntimeProcess, tmp_path: Path, n: int) -> None:
    write_executorch(tmp_path / "m.pte", [method(REALS)])
    x = torch.randn(n)
    ((y, up, down, even, root),) = runtime.run(tmp_path / "m.pte", [("forward", [x])])
    same(y, x * n**-0.5)
    assert (up, down, even, root) == (-(-n // 2), n // 2, round(n / 2), int(n**0.5))


DATA = """
graph g(%x: f32[6], %start: i64[1])
  where u0 in 0..5 = 2 from data, u1 in 0.. = 3 from data
{
  %1 = et.aten._local_scalar_dense(self=%start) : int u0
  %2 = et.aten.slice_copy.Tensor_out(self=%x, dim=0, start=u0, end=6, step=1) : f32[6 - u0]
  %3 = et.aten.nonzero.out(self=%x) : i64[u1, 1]
  return tail = %2, where = %3, count = u1 + u0
}
"""


def test_numbers_read_from_data_are_sizes(runtime: RuntimeProcess, tmp_path: Path) -> None:
    write_executorch(tmp_path / "m.pte", [method(DATA)])
    x = torch.tensor([0.0, 1.0, 0.0, 2.0, 3.0, 0.0])
    ((tail, where, count),) = runtime.run(tmp_path / "m.pte", [("forward", [x, torch.tensor([4])])])
    same(tail, x[4:])
    assert torch.equal(where, x.nonzero()) and count == 7


LISTS = """
graph g(%x: f32[4, 6], %i: i64[3])
{
  %1, %2, %3 = et.aten.split_copy.Tensor_out(self=%x, split_size=2, dim=1) : f32[4, 2], f32[4, 2], f32[4, 2]
  %4 = et.aten.cat.out(tensors=[%3, %1], dim=1) : f32[4, 4]
  %5 = et.aten.index.Tensor_out(self=%4, indices=[%i]) : f32[3, 4]
  %6, %7 = et.aten.topk.values(self=%x, k=2, dim=-1, largest=true, sorted=true) : f32[4, 2], i64[4, 2]
  %8 = et.constant(values=[1.0, 2.0]) : f32[2]
  %9 = et.aten.mul.out(self=%6, other=%8) : f32[4, 2]
  %10 = et.dim_order_ops._to_dim_order_copy.out(self=%9, non_blocking=false, dim_order=[0, 1]) : f16[4, 2]
  return picked = %5, top = %9, places = %7, half = %10
}
"""


def test_lists_of_tensors_several_results_and_casts(runtime: RuntimeProcess, tmp_path: Path) -> None:
    write_executorch(tmp_path / "m.pte", [method(LISTS)])
    x, i = torch.randn(4, 6), torch.tensor([3, 0, 3])
    ((picked, top, places, half),) = runtime.run(tmp_path / "m.pte", [("forward", [x, i])])
    same(picked, torch.cat([x[:, 4:], x[:, :2]], 1)[i])
    values, indices = x.topk(2)
    same(top, values * torch.tensor([1.0, 2.0]))
    assert torch.equal(places, indices) and half.dtype == torch.float16
    same(half, top.half())


def test_an_axis_without_a_bound_is_named_with_what_to_type(tmp_path: Path) -> None:
    text = LINEAR.replace("batch in 1..16 = 3", "batch in 2.. = 3")
    with pytest.raises(ExportError, match=r'axis batch(.|\n)*dims=\{"batch": \(2, 2048\)\}'):
        write_executorch(tmp_path / "m.pte", [method(text, linear_weights())])
    assert not (tmp_path / "m.pte").exists()
    write_executorch(tmp_path / "m.pte", [method(text, linear_weights(), bounds={"batch": 4})])


CACHE = """
graph g(%q: f32[1, s, 2, 4], %k: f32[1, s, 1, 4], %start: i64[1])
  where s in 1..8 = 2, u0 in 0..7 = 0 from data
  weights @keys: f32[1, 8, 1, 4] buffer
{
  %1 = et.aten._local_scalar_dense(self=%start) : int u0
  %2 = et.llama.update_cache.out(value=%k, cache=@keys, start_pos=u0) : f32[1, 8, 1, 4]
  %3 = et.llama.custom_sdpa.out(query=%q, key=%2, value=%2, start_pos=u0, attn_mask=None, drpout_p=0.0, is_causal=true,
    scale=None) : f32[1, s, 2, 4]
  return y = %3
  mutate @keys = %2
}
"""


def test_a_cache_is_updated_where_it_lies(runtime: RuntimeProcess, tmp_path: Path) -> None:
    write_executorch(tmp_path / "m.pte", [method(CACHE, {"keys": torch.zeros(1, 8, 1, 4)})])
    q, k = torch.randn(1, 6, 2, 4), torch.randn(1, 6, 1, 4)
    steps = [(0, 4), (4, 5), (5, 6)]
    calls = [("forward", [q[:, a:b].contiguous(), k[:, a:b].contiguous(), torch.tensor([a])]) for a, b in steps]
    outputs = runtime.run(tmp_path / "m.pte", calls, custom_operators=True)
    heads, keys = q.transpose(1, 2), k.transpose(1, 2).expand(1, 2, 6, 4)
    whole = torch.nn.functional.scaled_dot_product_attention(heads, keys, keys, is_causal=True).transpose(1, 2)
    same(torch.cat([y for (y,) in outputs], 1), whole)
