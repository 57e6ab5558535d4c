"""When values count as the same: by the output's own scale, whatever that is."""

from __future__ import annotations

import pytest
import torch

import modelport
from modelport.checking.report import CheckReport, Row
from modelport.checking.tolerance import row_of
from modelport.observing.discrepancies import compared
from modelport.values.tolerance import Tolerance, cosine, same_values, scale

NAN, INF = float("nan"), float("inf")
LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0001], True),
        ([1.0, 2.0], [1.0, 2.001], False),
        ([0.0, 1e6], [0.0, 1e6 + 50], True),  # by its own magnitude
        ([1e-9, 2e-9], [1e-9, 2.0001e-9], True),
        ([1e-9, 2e-9], [1e-9, 2.001e-9], False),  # small throughout is no excuse
        ([0.0, 0.0], [0.0, 0.0], True),
        ([0.0, 1e-9], [0.0, 0.0], False),  # of zeros there is no scale
        ([0.0, 1e-40], [0.0, 0.0], True),  # some kernels take this for zero
        ([0.0, 5e-3, 3e38], [0.0, 0.0, 3e38], False),  # a mask does not make the rest loose
        ([1.0, 2.001, LOWEST, LOWEST, LOWEST], [1.0, 2.0, LOWEST, LOWEST, LOWEST], False),  # nor many of them
        ([1.0, 2.001, -1e9], [1.0, 2.0, -1e9], False),
        ([1.0, 2.001, -INF], [1.0, 2.0, -INF], False),
        ([1.0, 2.0, -1e9 + 64], [1.0, 2.0, -1e9], True),
        ([0.5, 3000.0, 20000.0], [0.8, 3000.0, 20000.0], True),  # large numbers without a gap are no mask
        ([NAN, 1.0], [NAN, 1.0], True),
        ([NAN, 1.0], [0.0, 1.0], False),
        ([INF, 1.0], [INF, 1.0], True),
        ([-INF, 1.0], [INF, 1.0], False),
        ([1e38, 1.0], [INF, 1.0], False),
    ],
)
def test_numbers_are_the_same_within_the_scale_of_the_output(got: list[float], want: list[float], same: bool) -> None:
    assert same_values(torch.tensor(got), torch.tensor(want)) is same
    row = row_of(Row("", {}, ""), torch.tensor(got), torch.tensor(want), Tolerance.of({torch.float32}))
    assert row.ok is same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_probabilities_that_became_zeros_differ(dtype: torch.dtype) -> None:
    for words in (1000, 30522):
        probabilities = torch.softmax(torch.randn(4, words, generator=torch.Generator().manual_seed(0)), -1).to(dtype)
        assert not same_values(torch.zeros_like(probabilities), probabilities)
        assert same_values(probabilities.clone(), probabilities)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_normalised_embedding_that_is_off_by_a_quarter_differs(dtype: torch.dtype) -> None:
    draws = torch.Generator().manual_seed(0)
    embedding = torch.nn.functional.normalize(torch.randn(4, 768, generator=draws), dim=-1)
    off = embedding + 0.0099 * torch.randn(4, 768, generator=draws).sign()
    assert not same_values(off.to(dtype), embedding.to(dtype))
    assert same_values((embedding * (1 + 2**-9)).to(dtype), embedding.to(dtype))


def test_low_precision_keeps_direction_or_choice_whatever_tolerance_is_asked_for() -> None:
    draws = torch.Generator().manual_seed(0)
    want = torch.randn(4, 500, generator=draws)
    noisy = want + 0.2 * torch.randn(4, 500, generator=draws)
    assert same_values(noisy, want, Tolerance.of({torch.float32}, 1.0))
    assert not same_values(noisy.half(), want.half(), 1.0)
    assert not same_values(noisy, want, Tolerance.of({torch.float16}, 1.0))  # computed in fp16, given in float32
    row = row_of(Row("example", {}, "logits"), noisy.half(), want.half(), Tolerance.of({torch.float16}, 1.0))
    assert not row.ok and 0.9 < row.cosine < 0.999 and row.argmax < 1
    report = CheckReport("a.onnx", 1.0, [row])
    assert f"{row.cosine:.6f}" in str(report) and f"{100 * row.argmax:.4g} %" in str(report)
    assert f"cosine {row.cosine:.4f}, argmax kept in" in str(report.error())
    chosen = torch.nn.functional.one_hot(torch.arange(4), 500) * 5.0 + noisy  # the same choice in every row
    assert same_values((chosen + 0.3 * (noisy - want)).half(), chosen.half(), 1.0)


def test_the_scale_is_that_of_what_is_no_mask() -> None:
    assert scale(torch.tensor([3.0, 4.0])) == pytest.approx(12.5**0.5)
    assert scale(torch.tensor([3.0, 4.0, -1e9, -INF, NAN])) == pytest.approx(12.5**0.5)
    assert scale(torch.tensor([0.0, LOWEST])) == 0
    assert scale(torch.tensor([LOWEST, LOWEST])) == pytest.approx(-LOWEST)
    assert scale(torch.tensor([0.0])) == 0 and scale(torch.tensor([])) == 0
    assert scale(torch.tensor([3 + 4j])) == pytest.approx(5)
    assert cosine(torch.tensor([1.0, 2.0, -1e9]), torch.tensor([-1.0, -2.0, -1e9])) == pytest.approx(-1)


def test_integers_must_be_equal_and_types_and_shapes_the_same() -> None:
    def row(got: torch.Tensor, want: torch.Tensor) -> Row:
        return row_of(Row("", {}, ""), got, want, Tolerance(1.0))

    assert row(torch.tensor([1, 2]), torch.tensor([1, 2])).ok
    assert not row(torch.tensor([1, 2]), torch.tensor([1, 3])).ok
    assert not row(torch.tensor([True]), torch.tensor([False])).ok
    assert "int32 instead of int64" in row(torch.tensor([1]).int(), torch.tensor([1])).what
    assert "shape [2] instead of [1]" in row(torch.ones(2), torch.ones(1)).what
    assert row(torch.ones(0, 3), torch.ones(0, 3)).ok
    assert row(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [0.9, 1.0]])).argmax == 0.5
    assert not same_values(torch.ones(2), torch.ones(1)) and not same_values(torch.ones(1), torch.ones(1).half())


def test_observed_calls_are_held_to_the_scale_of_their_results() -> None:
    want = torch.softmax(torch.randn(4, 30522, generator=torch.Generator().manual_seed(0)), -1)

    def success(got: torch.Tensor, atol: float = 1e-3) -> bool:
        return compared([("p", got, want)], atol=atol, rtol=0.1, hist=(), skip_none=True)["SUCCESS"]

    assert success(want * (1 + 1e-6)) and not success(torch.zeros_like(want))


def test_a_graph_is_compared_with_its_model_by_the_same_notion() -> None:
    class Small(torch.nn.Module):
        factor = 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x) * self.factor

    model = Small().eval()
    inputs = {"x": torch.randn(3, 4)}
    captured = modelport.capture(model, inputs, dynamic=True)
    assert captured.check(model, inputs)[0].relative < 1e-6
    model.factor = 1.1e-6
    with pytest.raises(modelport.ExportError, match=r"values differ.*aten\.mul"):
        captured.check(model, inputs)
    assert captured.check(model, inputs, atol=0.2)


def test_numbers_that_a_model_returns_are_compared_by_value() -> None:
    class Counting(torch.nn.Module):
        more = 1

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int, int]:
            return x + 1, x.shape[0] + self.more, self.more

    model = Counting().eval()
    inputs = {"x": torch.randn(3, 4)}
    captured = modelport.capture(model, inputs, dynamic=True)
    assert [row.name for row in captured.check(model, {"x": torch.randn(5, 4)})] == captured.outputs.names
    model.more = 2
    with pytest.raises(modelport.ExportError, match="values differ"):
        captured.check(model, {"x": torch.randn(5, 4)})
