"""How the files of a folder are opened: before torch is imported, and with messages that one can read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_generators import DECODERS, export_decoder, made

from modelport import ExportError
from modelport.base.printable import listed
from modelport.running import OpeningModel, open_any


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_decoder(made(DECODERS["llama"]), tmp_path_factory.mktemp("opened") / "llama")


def test_onnxruntime_begins_to_load_files_before_torch_is_imported(llama: Path) -> None:
    code = (
        "import sys; from modelport.running import OpeningModel, open_any\n"
        "opening = OpeningModel(open_any(sys.argv[1]))\n"
        "assert opening._opening._begun and 'torch' not in sys.modules\n"
        "print(type(opening.model()).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, llama], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "LlamaForCausalLM" in done.stdout, done.stderr


def test_what_is_wrong_with_a_file_is_said_to_who_asks_for_the_model(llama: Path) -> None:
    opening = OpeningModel(open_any(llama), threads=1, graph_optimization_level="none")
    with pytest.raises(ExportError, match="onnxruntime does not load"):
        opening.model()


def test_a_message_about_many_inputs_names_the_first_ones() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, 8"
    assert listed(f"past.{i}" for i in range(60)).endswith("past.7 and 52 more")
