"""What a capture learned holds wherever its artifact runs: values are the model's, or the call is refused."""

import pytest
import torch

import modelport
from modelport import ExportError


def exported(model, inputs, tmp_path, **config):
    """Every way to run a model that we have, by name."""
    config = {"dynamic": True} | config
    captured = modelport.capture(model, inputs, dynamic=config["dynamic"])
    program = modelport.OnnxExporter().export(model, dict(inputs), modelport.OnnxConfig(**config))
    program.save(tmp_path / "model.onnx")
    loaded = modelport.load(tmp_path / "model.onnx")
    modelport.DynamoExporter().export(model, dict(inputs), modelport.DynamoConfig(dynamic=config["dynamic"])).save(
        tmp_path / "model.pt2"
    )
    read = modelport.load_pt2(tmp_path / "model.pt2")
    return {
        "captured": lambda **given: captured.run(**given),
        "onnx": lambda **given: program(**given)[0],
        "load": lambda **given: next(iter(loaded(**given).values())),
        "pt2": lambda **given: read.run(**given),
    }


def agrees_or_refuses(ways, model, given, *, inside):
    want = model(**given)
    for name, run in ways.items():
        if inside:
            torch.testing.assert_close(run(**given), want, msg=lambda text, name=name: f"{name}: {text}")
            continue
        with pytest.raises(ExportError) as refused:
            run(**given)
        assert refused.value.code in ("E0304", "E0301"), (name, refused.value)


class Doubles(torch.nn.Module):
    def forward(self, x):
        out = x + 1
        if x.shape[-1] > 64:
            out = out * 2
        return out


def test_a_bound_on_a_size_holds_in_every_way_to_run(tmp_path):
    model = Doubles().eval()
    ways = exported(model, {"x": torch.randn(3, 16)}, tmp_path)
    agrees_or_refuses(ways, model, {"x": torch.randn(2, 64)}, inside=True)
    agrees_or_refuses(ways, model, {"x": torch.randn(2, 80)}, inside=False)


def test_the_refusal_names_axis_limit_and_line(tmp_path):
    ways = exported(Doubles().eval(), {"x": torch.randn(3, 16)}, tmp_path)
    for run in ways.values():
        with pytest.raises(ExportError, match=r"(?s)is 80 \(axis 1 of input x\).*1 to 64.*limits_test.py:\d+.*way out"):
            run(x=torch.randn(3, 80))


class Thresholds(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] > 8:
            pass
        if x.shape[0] > 32:
            return x * 2
        return x + 1


def test_a_range_is_widened_to_the_next_bound_and_no_further(tmp_path):
    model = Thresholds().eval()
    ways = exported(model, {"x": torch.randn(7)}, tmp_path)
    for size, inside in ((8, True), (9, True), (32, True), (33, False), (40, False)):
        agrees_or_refuses(ways, model, {"x": torch.randn(size)}, inside=inside)


class Alternating(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] % 2 == 0:
            return x + 1
        if x.shape[0] > 50:
            return x * 3
        return x + 1


def test_a_bound_behind_a_condition_that_was_dropped_still_holds(tmp_path):
    model = Alternating().eval()
    ways = exported(model, {"x": torch.randn(8)}, tmp_path)
    for size, inside in ((8, True), (9, True), (49, True), (51, False)):
        agrees_or_refuses(ways, model, {"x": torch.randn(size)}, inside=inside)


@pytest.mark.parametrize("read", ["item", "int", "tolist", "float", "bool"])
def test_a_branch_on_data_is_an_assumption_however_the_model_asks(read, tmp_path):
    class Branches(torch.nn.Module):
        def forward(self, x, n):
            if read == "item":
                large = n.item() > 5
            elif read == "int":
                large = int(n) > 5
            elif read == "tolist":
                large = n.reshape(1).tolist()[0] > 5
            elif read == "float":
                large = float(n) / 2 > 2.5
            else:
                large = bool(n > 5)
            return x * 2 if large else x - 1

    model = Branches().eval()
    inputs = {"x": torch.ones(3), "n": torch.tensor(7)}
    assert modelport.capture(model, inputs).assumptions
    ways = exported(model, inputs, tmp_path, dynamic=False)
    another = 7 if read == "float" else 9  # Python's float() knows no symbols: the number itself is assumed
    agrees_or_refuses(ways, model, {"x": torch.ones(3), "n": torch.tensor(another)}, inside=True)
    agrees_or_refuses(ways, model, {"x": torch.ones(3), "n": torch.tensor(2)}, inside=False)


class Counted(torch.nn.Module):
    def forward(self, x):
        positive = x[x > 0]
        if positive.shape[0] == 3:
            return x * 2
        return x - 1


def test_a_size_that_the_data_decides_is_an_assumption_too(tmp_path):
    model = Counted().eval()
    ways = exported(model, {"x": torch.tensor([1.0, 2.0, 3.0, -1.0])}, tmp_path, dynamic=False)
    agrees_or_refuses(ways, model, {"x": torch.tensor([1.0, -2.0, 3.0, 1.0])}, inside=True)
    agrees_or_refuses(ways, model, {"x": torch.tensor([1.0, -2.0, -3.0, 1.0])}, inside=False)


class MatchesLength(torch.nn.Module):
    def forward(self, x, n):
        if n.item() == x.shape[0]:
            return x * 2
        return x + 1


def test_a_number_that_has_to_be_a_size_is_compared_with_it(tmp_path):
    model = MatchesLength().eval()
    ways = exported(model, {"x": torch.randn(6), "n": torch.tensor(6)}, tmp_path)
    agrees_or_refuses(ways, model, {"x": torch.randn(4), "n": torch.tensor(4)}, inside=True)
    agrees_or_refuses(ways, model, {"x": torch.randn(4), "n": torch.tensor(5)}, inside=False)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.steps.add_(1)
        return x + self.steps


def test_what_a_run_leaves_in_a_buffer_is_there_in_the_next(tmp_path):
    ways = exported(Counter().eval(), {"x": torch.zeros(2)}, tmp_path)
    for run in ways.values():
        assert [run(x=torch.zeros(2))[0].item() for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_state_is_an_input_with_a_value_to_begin_with(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    exported(Counter().eval(), {"x": torch.zeros(2)}, tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [x.name for x in session.get_inputs()] == ["x"]
    x = torch.zeros(2).numpy()
    _, steps = session.run(None, {"x": x})
    assert session.run(None, {"x": x, "steps": steps})[0][0] == 2.0


def test_a_loaded_model_and_a_program_can_be_put_back_to_their_beginning(tmp_path):
    program = modelport.OnnxExporter().export(Counter().eval(), {"x": torch.zeros(2)}, modelport.OnnxConfig())
    program.save(tmp_path / "model.onnx")
    loaded = modelport.load(tmp_path / "model.onnx")
    for run in (program, loaded):
        run(x=torch.zeros(2))
        run.reset()
    assert program(x=torch.zeros(2))[0][0] == loaded(x=torch.zeros(2))["output"][0] == 1.0


class Options(torch.nn.Module):
    def forward(self, x, mask=None, power=2, flag=False):
        out = x**power
        if flag:
            out = -out
        return out if mask is None else out * mask


@pytest.mark.parametrize(
    "changed", [{"power": 3}, {"flag": True}, {"mask": torch.zeros(4)}, {"power": torch.tensor(2)}, {"unknown": 1}]
)
def test_arguments_that_became_part_of_the_program_cannot_change(changed, tmp_path):
    model = Options().eval()
    inputs = {"x": torch.randn(4), "mask": None, "power": 2, "flag": False}
    ways = exported(model, inputs, tmp_path)
    for run in ways.values():
        torch.testing.assert_close(run(**inputs), model(**inputs))
        with pytest.raises(ExportError, match="E0301"):
            run(**(inputs | changed))


def test_an_axis_with_nothing_on_it_is_refused(tmp_path):
    ways = exported(Doubles().eval(), {"x": torch.randn(3, 16)}, tmp_path)
    agrees_or_refuses(ways, Doubles().eval(), {"x": torch.randn(0, 16)}, inside=False)


def test_limits_can_be_put_into_the_graph_for_other_runtimes(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    program = modelport.OnnxExporter().export(
        Doubles().eval(), {"x": torch.randn(3, 16)}, modelport.OnnxConfig(dynamic=True, limits_in_graph=True)
    )
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    x = torch.randn(2, 30)
    torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), x + 1)
    with pytest.raises(Exception, match=r"limit: .*x_1 <= 64 .*limits_test.py:\d+"):
        session.run(None, {"x": torch.randn(2, 80).numpy()})


def test_conditions_on_data_in_the_graph_fail_in_the_runtime(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")

    class Branches(torch.nn.Module):
        def forward(self, x, n):
            return x * 2 if n.item() > 5 else x - 1

    inputs = {"x": torch.ones(3), "n": torch.tensor(7)}
    program = modelport.OnnxExporter().export(Branches().eval(), inputs, modelport.OnnxConfig(limits_in_graph=True))
    session = onnxruntime.InferenceSession(program.to_bytes())
    assert session.run(None, {"x": inputs["x"].numpy(), "n": inputs["n"].numpy()})[0][0] == 2.0
    with pytest.raises(Exception, match="limit: "):
        session.run(None, {"x": inputs["x"].numpy(), "n": torch.tensor(2).numpy()})


def test_a_graph_that_mixes_rows_is_not_taken_for_right():
    """The first row stands for all in the branch of the example: rows that repeat would hide it."""

    class Mixes(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] > 2:
                return x + 1
            return x[:1].expand(x.shape[0], -1) + 1

    captured = modelport.capture(Mixes().eval(), (torch.randn(1, 3).expand(2, 3).contiguous(),), dynamic=True)
    x = torch.randn(4, 3)
    try:
        got = captured.run(x)
    except ExportError as error:
        assert error.code == "E0304"
    else:
        torch.testing.assert_close(got, Mixes()(x))
