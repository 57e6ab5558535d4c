"""What pages show is what the artifact has, and nothing of it leaves the place of data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any

import drawn_models
import pytest
import tiny_checkpoints
import torch

import modelport
from modelport import ExportError
from modelport.cli import main
from modelport.pages import read_report
from modelport.pages.page import page_text
from modelport.pages.record import ModuleTree, Part, Report
from modelport.pages.report import report_data
from modelport.pages.runs import Runs, read_runs


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with bert/, out/, run.json and page.html."""
    folder = tmp_path_factory.mktemp("exported")
    tiny_checkpoints.save("bert", folder)
    command = [str(folder / "bert"), str(folder / "out"), "--json"]
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("modelport.cli.console.say", lambda text, end="": said.append(text))
        assert main(["export", "onnx", *command]) == 0
    (folder / "run.json").write_text(said[0])
    return folder


@pytest.fixture(scope="module")
def captured() -> Any:
    class Sizes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if y.shape[0] == 3:
                return self.inner(x[: y.shape[0]]) + y
            return x

    return modelport.capture(Sizes().eval(), {"x": torch.ones(8, 4), "y": torch.ones(3, 4)}, dynamic=True)


def data_of(page: Path | str) -> dict[str, Any]:
    text = page.read_text() if isinstance(page, Path) else page
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(block)


def test_the_modules_of_an_export_add_up_to_all_of_it(exported: Path) -> None:
    [part] = read_report(exported / "out").parts
    tree = ModuleTree(part)
    root = tree.modules[0]
    assert root.nodes == len(part.nodes) == part.node_count > 50
    assert root.bytes == sum(weight.bytes for weight in part.weights)
    query = next(module for module in tree.modules if module.path == "bert.encoder.layer.0.attention.self.query")
    assert (query.nodes, query.parameters, query.bytes) == (2, 32 * 32, 4 * 32 * 32)  # it has no bias that is not zero
    for module in tree.modules[1:]:
        assert module.nodes <= tree.modules[module.parent].nodes
    # Constants that only the exporter made have no name of a module: they are where they are used.
    assert all(tree.modules[home].path for home, one in zip(tree.weight_homes, part.weights, strict=True) if one.bytes)


def test_a_node_has_its_module_its_line_and_its_attributes(exported: Path) -> None:
    [part] = read_report(exported / "out").parts
    node = next(node for node in part.nodes if node.op == "Transpose" and "layer.0" in node.module)
    assert node.module.startswith("bert.encoder.layer.0.attention")
    assert re.fullmatch(r"\w+\.py:\d+", node.place.line)
    assert node.text == "perm=[0, 2, 1, 3]"


def test_an_axis_says_who_bounded_it(exported: Path, captured: Any) -> None:
    [part] = read_report(exported / "out").parts
    batch, sequence = part.axes
    assert (batch.name, batch.sizes, batch.reasons) == ("batch_size", "1 or more", ())
    assert (sequence.name, sequence.sizes) == ("sequence_length", "1 to 512")
    assert sequence.reasons[0].what == "at most 512"
    assert sequence.reasons[0].place.function == "BertEmbeddings.forward"


def test_a_capture_shows_what_was_pinned_and_what_was_tried(captured: Any, tmp_path: Path) -> None:
    captured.report_html(tmp_path / "page.html", title="Sizes <of> two & more")
    text = (tmp_path / "page.html").read_text()
    assert "<title>Sizes &lt;of&gt; two &amp; more</title>" in text
    data = data_of(text)
    [part] = data["parts"]
    [pinned] = [axis for axis in part["axes"] if axis[1] == "3"]
    assert "pinned" in pinned[3][0][0]
    assert "report_test.py:" in pinned[3][0][1]
    assert data["attempts"][0][1:] == ["shapes only", "most models need no more", "kept"]
    assert "inner" in [module[0] for module in part["modules"]]


def test_a_pt2_shows_the_graph_that_was_saved(captured: Any, tmp_path: Path, capsys: Any) -> None:
    modelport.ExportedProgram(captured).save(tmp_path / "sizes.pt2")
    [part] = read_report(tmp_path / "sizes.pt2").parts
    linear = next(node for node in part.nodes if node.op == "aten.linear")
    assert linear.module == "inner" and "report_test.py:" in linear.place.line
    assert {"inner.weight", "inner.bias"} <= set(linear.inputs)
    assert {weight.name: weight.bytes for weight in part.weights} == {"inner.weight": 64, "inner.bias": 16}
    assert main(["inspect", str(tmp_path / "sizes.pt2")]) == 0
    assert "1 aten.linear" in capsys.readouterr().out


def test_a_program_for_executorch_shows_its_kernels_and_memory(exported: Path, tmp_path: Path, capsys: Any) -> None:
    out, page = tmp_path / "model.pte", tmp_path / "page.html"
    assert main(["export", "executorch", str(exported / "bert"), str(out), "--recipe", "xnnpack", "--no-check"]) == 0
    assert main(["inspect", str(out), "--html", str(page)]) == 0
    data = data_of(page)
    [part] = data["parts"]
    assert part["delegates"][0][0] == "XnnpackBackend" and part["delegates"][0][2] > 1000
    assert part["axes"][1][:2] == ["seq", "1 to 512"]
    assert dict(part["facts"])["arena"].endswith(" bytes")
    assert "not the modules" in part["missing"][0]


def test_the_page_has_the_check_the_steps_and_the_attempts_of_a_run(exported: Path, capsys: Any) -> None:
    page = exported / "page.html"
    assert main(["inspect", str(exported / "out"), "--html", str(page), "--report", str(exported / "run.json")]) == 0
    assert "wrote" in capsys.readouterr().out
    data = data_of(page)
    assert data["title"] == "BertForMaskedLM"
    assert {row["size"] for row in data["check"]["rows"]} == {"example", "batch 1", "longer", "odd"}
    steps = {name: (seconds, memory) for name, seconds, memory in data["steps"]}
    assert {"capture", "write", "check"} <= steps.keys()
    assert all(memory > 50_000_000 for _, memory in steps.values())
    assert data["attempts"][0] == ["", "shapes only", "most models need no more", "kept"]


def test_of_two_runs_the_later_check_counts(exported: Path, tmp_path: Path) -> None:
    run = json.loads((exported / "run.json").read_text())
    check = run["check"] | {"ok": False}
    (tmp_path / "check.json").write_text(json.dumps(check))
    runs = read_runs([str(exported / "run.json"), str(tmp_path / "check.json")])
    assert runs.check is not None and not runs.check["ok"]
    assert "capture" in runs.seconds


@pytest.mark.parametrize("text", ["no json", "[]", "{}", '{"seconds": [1]}', '{"rows": [{"size": "odd"}]}'])
def test_a_report_that_no_command_wrote_is_refused(text: str, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ExportError, match="E0103"):
        read_runs([str(tmp_path / "other.json")])


def test_a_report_without_a_page_is_refused(exported: Path, capsys: Any) -> None:
    assert main(["inspect", str(exported / "out"), "--report", str(exported / "run.json")]) == 2
    assert "--html" in capsys.readouterr().err


def test_the_page_asks_nothing_of_the_network_and_runs_nothing_but_its_own_script(exported: Path) -> None:
    text = page_text("report", report_data(read_report(exported / "out"), Runs()))
    assert not re.search(r"(src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(|new Function", text)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert policy == f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"


def test_names_from_a_file_stay_data(tmp_path: Path) -> None:
    report = read_report(drawn_models.save_hostile(tmp_path / "hostile.onnx"))
    report.title = drawn_models.HOSTILE
    text = page_text("report", report_data(report, Runs()))
    assert text.count("<script") == 2 and "<img" not in text
    assert "\u202e" not in text and "\x1b" not in text
    data = data_of(text)
    assert data["parts"][0]["weights"][0][0].startswith("w</script><script>")  # shown as what it is
    assert len(data["parts"][0]["modules"]) < 100  # though a name has 5000 dots


def test_a_check_that_found_infinity_is_shown(tmp_path: Path) -> None:
    report = Report("x", "", "ONNX", {}, [Part("x")])
    data = data_of(page_text("report", report_data(report, Runs(check={"perplexity": float("inf"), "ok": False}))))
    assert data["check"]["perplexity"] == "inf"


def test_the_page_of_20000_nodes_is_written_in_seconds(tmp_path: Path) -> None:
    file = drawn_models.save_large(tmp_path / "large.onnx")
    started = time.perf_counter()
    assert main(["inspect", str(file), "--html", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert time.perf_counter() - started < 10
    assert len(data_of(tmp_path / "page.html")["parts"][0]["nodes"]) == 20_000
