"""What we write runs in onnxruntime-node as it is: a text encoder, a decoder and an image classifier."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from zoo import ROWS

import modelport

SOURCES = Path(__file__).parent / "node"


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: Any) -> Path:
    """A folder with onnxruntime-node installed from npm. Its install script would only fetch CUDA libraries."""
    assert shutil.which("npm"), "npm is missing: apt install npm"
    folder = tmp_path_factory.mktemp("node")
    for file in SOURCES.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    subprocess.run(install, cwd=folder, check=True)
    return folder


def in_node(folder: Path, model: Path, feeds: dict[str, Any]) -> dict[str, torch.Tensor]:
    request = {
        "model": str(model),
        "feeds": {
            name: {"type": str(x.dtype), "data": x.flatten().tolist(), "dims": list(x.shape)}
            for name, x in feeds.items()
        },
    }
    done = subprocess.run(
        ["node", "run_model.mjs"], cwd=folder, input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    return {name: torch.tensor(row["data"]).view(row["dims"]) for name, row in rows.items()}


@pytest.mark.parametrize("name", ["bert", "llama", "vit"])
def test_onnxruntime_node_computes_what_the_model_computes(name: str, node_folder: Path, tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == name)
    model, inputs = row.build()
    program = modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True))
    path = program.save(tmp_path / "model.onnx")
    with torch.no_grad():
        want = list(modelport.get_leaf_tensors(model(**row.inputs(1))).values())
    got = in_node(node_folder, path, program.feeds(row.inputs(1)))
    for output, expected in zip(program.output_names, want, strict=True):
        torch.testing.assert_close(got[output], expected, atol=1e-3, rtol=1e-3, check_dtype=False)
