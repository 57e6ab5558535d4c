"""What the command line leaves out of torch and transformers: files stay the same, and what is asked for is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest
import tiny_checkpoints
import zoo_files
from zoo import ROWS

from modelport.cli import main
from modelport.quick_imports import gate
from modelport.quick_imports.records import PackagesByModule


def run(script: str, *args: object, plain: bool = False) -> str:
    """What a script prints in a process of its own, which has the environment variable that leaves nothing out."""
    environment = os.environ | ({"MODELPORT_PLAIN_IMPORTS": "1"} if plain else {})
    command = [sys.executable, "-c", script, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


EXPORT = """
import sys
from modelport.cli import main
from modelport.quick_imports import command
from modelport.quick_imports.deferred import Shell
command.allow()
code = main(["export", "onnx", *sys.argv[1:3], "--no-check"])
print("left out:", *sorted(name for name, module in sys.modules.items() if isinstance(module, Shell)))
print("imported:", *sorted({"sympy", "scipy", "torch.distributed.tensor"} & sys.modules.keys()))
import transformers, transformers.models
names = [*transformers._class_to_module.items(), *transformers.models.__all__]
print("names:", *sorted(map(str, names)))
sys.exit(code)
"""


def test_the_files_of_an_export_are_the_same(tmp_path: Path) -> None:
    checkpoint = tiny_checkpoints.save("vit", tmp_path)
    quick, _, names = run(EXPORT, checkpoint, tmp_path / "quick").partition("names:")
    plain, _, all_names = run(EXPORT, checkpoint, tmp_path / "plain", plain=True).partition("names:")
    # Convolutions have their meta kernels in Python.
    assert "left out: torch._dynamo\n" in quick and "left out:\n" in plain
    assert "scipy" not in quick and "torch.distributed.tensor" not in quick and "sympy" in quick
    assert "BertModel" in names and names.splitlines()[0] == all_names.splitlines()[0]
    assert_same_files(tmp_path)


def test_the_files_are_those_of_a_process_that_has_imported_everything(tmp_path: Path) -> None:
    checkpoint = tiny_checkpoints.save("bert", tmp_path)
    quick, _, _ = run(EXPORT, checkpoint, tmp_path / "quick").partition("names:")
    assert "left out: torch._dynamo torch._meta_registrations torch._prims\n" in quick
    assert "scipy" not in quick and "torch.distributed.tensor" not in quick and "sympy" not in quick
    assert main(["export", "onnx", str(checkpoint), str(tmp_path / "plain"), "--no-check"]) == 0
    assert_same_files(tmp_path)


def assert_same_files(folder: Path) -> None:
    files = sorted(path.name for path in (folder / "plain").iterdir())
    assert "model.onnx_data" in files
    for file in files:
        assert (folder / "quick" / file).read_bytes() == (folder / "plain" / file).read_bytes(), file


def test_models_of_the_zoo_have_the_same_files() -> None:
    """A few of them, which this process exports with plain imports; `make test-imports` compares all."""
    names = ["qwen3", "mamba", "recurrent_gemma"]
    quick = zoo_files.digests(names, plain=False)
    plain = {str(row): zoo_files.digests_of(row) for row in ROWS if str(row) in names}
    assert sorted(quick) == sorted(names) and quick == plain
    assert all(len(digest) == 64 for files in plain.values() for digest in files), plain


ASKED_FOR = """
from modelport.quick_imports.command import allow, import_quickly
allow()
import_quickly()
import sys
import torch
from transformers.utils import is_scipy_available, is_torch_distributed_available

def imported():
    compiler, kernels = "torch._dynamo.eval_frame" in sys.modules, "torch._refs" in sys.modules
    return "all" if compiler and kernels else "kernels" if kernels else "compiler" if compiler else "nothing"

assert is_scipy_available() and not is_torch_distributed_available()
assert "scipy" not in sys.modules and "sympy" not in sys.modules
assert torch.compiler.disable(abs)(-1) == 1
assert torch.Generator().manual_seed(0).initial_seed() == 0
assert (torch.empty(2, 3, device="meta") @ torch.empty(3, 4, device="meta")).shape == (2, 4)
assert imported() == "nothing"
"""
WITH_TORCHAO = """
from modelport.quick_imports.command import allow, import_quickly
allow()
import_quickly()
import sys
from transformers.utils import is_torchao_available
assert is_torchao_available() and "torchao" not in sys.modules
"""


def test_torchao_which_comes_with_executorch_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers imports it with the modules that all models share; it imports the compiler, and prints."""
    (tmp_path / "torchao").mkdir()
    (tmp_path / "torchao" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "torchao-9.0.0.dist-info").mkdir()
    (tmp_path / "torchao-9.0.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchao\nVersion: 9.0.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run(WITH_TORCHAO)


BY_NAME = """
assert torch.ops.prims.sum.default is not None and torch._prims.add is not None
from torch.distributed.tensor import DTensor
assert imported() == "kernels"
torch._dynamo.reset()
assert imported() == "all"
"""
BY_IMPORT = """
import modelport.quick_imports.deferred as deferred
assert deferred.load() and not deferred.load()
assert imported() == "kernels"
from torch._dynamo.exc import Unsupported
import torch._dynamo as compiler
assert compiler.exc.Unsupported is Unsupported and compiler.exc.__spec__.origin == compiler.exc.__file__
program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
assert program.module()(-torch.ones(2)).sum() == 0
assert imported() == "all"
"""


@pytest.mark.parametrize("use", [BY_NAME, BY_IMPORT], ids=["by name", "by import"])
def test_what_is_asked_for_is_there(use: str) -> None:
    run(ASKED_FOR + use)


START_OVER = """
import os, sys
from modelport.cli import main
from modelport.quick_imports import command as quick_imports
if not os.environ.get("MODELPORT_PLAIN_IMPORTS"):
    def fails():
        quick_imports._quick = True
        raise AttributeError("torch has changed")
    quick_imports.import_quickly = fails
    from modelport.cli import export_onnx
    export_onnx.import_quickly = fails
main()
"""


def test_a_command_that_fails_starts_over_with_everything(tmp_path: Path) -> None:
    checkpoint = tiny_checkpoints.save("bert", tmp_path)
    said = run(START_OVER, "export", "onnx", checkpoint, tmp_path / "out", "--no-check")
    assert "starting over" in said and "wrote" in said
    assert (tmp_path / "out" / "model.onnx").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]


SHELLS = """
import sys
from modelport.cli import main
from modelport.quick_imports import command
from modelport.quick_imports.deferred import InShells, Shell, ShellOfOperators
if sys.argv[1] == "command":
    command.allow()
    command.import_quickly()
else:
    assert main(["export", "onnx", *sys.argv[2:4], "--no-check"]) == 0
import torch
assert torch.distributed.is_available() or sys.argv[1] == "command"
shells = [name for name, module in sys.modules.items() if isinstance(module, Shell)]
finders = [one for one in sys.meta_path if isinstance(one, InShells)]
print("left out:", *shells, *finders, *(name for name, x in vars(torch.ops).items() if isinstance(x, ShellOfOperators)))
"""


def test_a_process_that_goes_on_after_the_command_has_plain_imports(tmp_path: Path) -> None:
    checkpoint = tiny_checkpoints.save("bert", tmp_path)
    assert "left out:\n" in run(SHELLS, "called", checkpoint, tmp_path / "out")


def test_a_command_has_quick_imports() -> None:
    assert "left out: torch._prims" in run(SHELLS, "command")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_release_that_was_not_tested_has_plain_imports(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / f"{package}-99.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 99.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "left out:\n" in run(SHELLS, "command")


def test_quick_imports_are_tested_with_what_is_installed() -> None:
    assert gate.untested_packages() == []


RENAMINGS = """
from modelport.quick_imports import command
command.allow()
command.import_quickly()
from transformers import conversion_mapping, core_model_loading
for name, entries in conversion_mapping._build_checkpoint_conversion_mapping().items():
    for entry in entries:
        if isinstance(entry, core_model_loading.WeightTransform):
            known = entry.compiled_sources
            print(name, known.pattern, known.flags, dict(known.groupindex), known.sub("", "model.layers.0.mlp.weight"))
print("patterns:", core_model_loading.re.__name__, core_model_loading.re.compile.__name__)
"""


def test_weights_are_renamed_by_the_same_patterns() -> None:
    quick, _, lazy = run(RENAMINGS).partition("patterns:")
    plain, _, eager = run(RENAMINGS, plain=True).partition("patterns:")
    assert quick == plain and len(quick.splitlines()) > 100
    assert "PatternWhenAsked" in lazy and "compile" in eager


def test_packages_of_modules_are_those_of_importlib_without_reading_all_records() -> None:
    read: list[int] = []

    def read_all() -> Mapping[str, list[str]]:
        read.append(1)
        return metadata.packages_distributions()

    packages = PackagesByModule(read_all)
    everything = metadata.packages_distributions()
    for module in ("torch", "numpy", "tokenizers", "huggingface_hub"):
        assert packages.get(module, []) == list(dict.fromkeys(everything[module]))
    assert not read
    assert packages.get("no_such_module", []) == []
    assert packages["yaml"] == everything["yaml"]  # of a package with another name
    assert dict(packages) == everything
    assert len(read) == 1
