"""The checkers of tools/: each is shown to pass on this tree and to fail on a tree with one violation in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import check_rooms
import check_size
import pytest
import tidy_changed

ROOT = Path(__file__).resolve().parent.parent

ROOMS = """
[includes]
base = []
shape = ["base"]
"backends/pt2" = ["shape", "base"]
capture = ["shape", "base"]
binding = ["capture", "shape", "base"]
[elsewhere]
binding = "python/modelport/binding"
[libtorch]
headers = ["torch/", "ATen/", "c10/"]
rooms = ["capture", "binding"]
[python]
base = []
runtimes = ["base"]
cli = ["runtimes"]
[python_packages]
onnxruntime = ["runtimes"]
"""
CMAKE = """
modelport_room(base DEPS SYSTEM fmt::fmt)
modelport_room(shape DEPS base)
modelport_room(backends/pt2 DEPS shape base SYSTEM zlib)
if(MODELPORT_WITH_TORCH)
  modelport_room(capture DEPS shape base SYSTEM Torch::Torch)
endif()
"""


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree without a violation."""
    write(tmp_path, "rooms.toml", ROOMS)
    write(tmp_path, "src/CMakeLists.txt", CMAKE)
    write(tmp_path, "src/base/error.h", "#pragma once\n#include <string>\n")
    write(tmp_path, "src/shape/int.cc", '#include "shape/int.h"\n#include "base/error.h"\n')
    write(tmp_path, "src/backends/pt2/writer.cc", '#include "backends/pt2/writer.h"\n#include "shape/int.h"\n')
    write(tmp_path, "src/capture/recorder.cc", '#include <ATen/ATen.h>\n#include "shape/int.h"\n')
    write(
        tmp_path, "python/modelport/binding/module.cc", '#include <torch/csrc/utils/pybind.h>\n#include "capture/c.h"\n'
    )
    write(tmp_path, "python/modelport/__init__.py", "from .cli.main import run\n")
    write(tmp_path, "python/modelport/base/errors.py", "import os\n")
    write(tmp_path, "python/modelport/runtimes/ort.py", "import onnxruntime\nfrom ..base.errors import problem\n")
    write(tmp_path, "python/modelport/cli/main.py", "from .. import _core\nfrom ..runtimes import ort\n")
    return tmp_path


def test_this_tree_obeys_its_rooms() -> None:
    assert check_rooms.check(ROOT) == []


def test_this_tree_keeps_its_sizes() -> None:
    assert check_size.check(ROOT) == []


def test_a_tree_without_a_violation_passes(tree: Path) -> None:
    assert check_rooms.check(tree) == []


@pytest.mark.parametrize(
    ("path", "include", "says"),
    [
        (
            "src/base/error.cc",
            '#include "shape/int.h"',
            "base includes shape/int.h; rooms.toml allows it no other room",
        ),
        ("src/shape/int.h", '  #  include "backends/pt2/writer.h"', "shape includes backends/pt2/writer.h"),
        ("src/shape/int_test.cc", '#include "capture/c.h"', "shape includes capture/c.h"),
        ("src/shape/int.h", "#include <ATen/ATen.h>", "only binding and capture may see libtorch"),
        ("src/backends/pt2/x.h", '#include "c10/core/SymInt.h"', "only binding and capture may see libtorch"),
        ("src/shape/int.h", '#include "int_ranges.h"', "names no room"),
        ("python/modelport/binding/x.cc", '#include "backends/pt2/writer.h"', "binding includes backends/pt2/writer.h"),
    ],
)
def test_a_forbidden_include_is_reported_with_its_line(tree: Path, path: str, include: str, says: str) -> None:
    write(tree, path, f"// first line\n{include}\n")
    [problem] = check_rooms.check(tree)
    assert problem.startswith(f"{path}:2: ")
    assert says in problem


def test_an_operator_named_outside_of_the_table_is_reported(tree: Path) -> None:
    write(tree, "src/capture/x_test.cc", 'CHECK(op == "aten.view");\n')
    write(tree, "src/capture/y.cc", '// "aten.view" in words\nop.starts_with("aten.");\n')
    assert check_rooms.check(tree) == []
    write(tree, "src/capture/z.cc", '\nif (op == "aten.view.dtype") return;  // why\n')
    [problem] = check_rooms.check(tree)
    assert problem.startswith("src/capture/z.cc:2: names aten.view.dtype")


@pytest.mark.parametrize(
    ("path", "statement", "says"),
    [
        ("base/errors.py", "from ..cli import main", "base imports cli; rooms.toml allows it no other room"),
        ("base/errors.py", "def f():\n    from ..runtimes.ort import run", "base imports runtimes"),
        ("cli/main.py", "import onnxruntime", "cli imports onnxruntime; only runtimes may"),
        ("cli/main.py", "from onnxruntime.tools import x", "cli imports onnxruntime; only runtimes may"),
    ],
)
def test_a_forbidden_import_is_reported_with_its_line(tree: Path, path: str, statement: str, says: str) -> None:
    write(tree, f"python/modelport/{path}", f"import re\n{statement}\n")
    [problem] = check_rooms.check(tree)
    assert problem.startswith(f"python/modelport/{path}:{2 + statement.count(chr(10))}: ")
    assert says in problem


def test_files_of_a_room_that_import_each_other_are_reported(tree: Path) -> None:
    write(tree, "python/modelport/base/errors.py", "def late():\n    from . import text\n")
    write(tree, "python/modelport/base/text.py", "from .errors import late\n")
    [problem] = check_rooms.check(tree)
    assert problem.endswith("these files import each other: base/errors.py -> base/text.py -> base/errors.py")


def test_a_python_file_outside_the_rooms_is_reported(tree: Path) -> None:
    write(tree, "python/modelport/extras.py", "")
    assert check_rooms.check(tree) == ["python/modelport/extras.py: is in no room of rooms.toml"]


def test_a_python_room_may_import_what_the_rooms_below_it_reach(tree: Path) -> None:
    write(tree, "python/modelport/cli/text.py", "from ..base import errors\n")
    assert check_rooms.check(tree) == []


def test_a_python_room_that_names_what_another_one_reaches_is_reported(tree: Path) -> None:
    write(tree, "rooms.toml", ROOMS.replace('cli = ["runtimes"]', 'cli = ["runtimes", "base"]'))
    assert check_rooms.check(tree) == ["rooms.toml: python room cli names base, which runtimes reaches already"]


def test_a_folder_that_is_no_room_is_reported(tree: Path) -> None:
    write(tree, "src/extras/thing.cc", "")
    assert check_rooms.check(tree) == ["src/extras/thing.cc: is in no room of rooms.toml"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("modelport_room(shape DEPS base)", "modelport_room(shape DEPS)", "DEPS of shape should be: base"),
        ("DEPS shape base SYSTEM zlib", "DEPS shape base capture SYSTEM zlib", "DEPS of backends/pt2 should be"),
        ("modelport_room(shape DEPS base)", "", "room shape of rooms.toml is missing"),
        (
            "modelport_room(shape",
            "modelport_room(ops DEPS base)\nmodelport_room(shape",
            "room ops is not in rooms.toml",
        ),
    ],
)
def test_cmake_that_links_something_else_is_reported(tree: Path, old: str, new: str, says: str) -> None:
    assert old in CMAKE
    write(tree, "src/CMakeLists.txt", CMAKE.replace(old, new))
    [problem] = check_rooms.check(tree)
    assert says in problem


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("base = []", 'base = ["shape"]', "include each other"),
        ('shape = ["base"]', 'shape = ["base", "cellar"]', "cellar, which is not a room"),
        ('capture = ["shape", "base"]', 'capture = ["shape"]', "capture includes shape but not base"),
        ('rooms = ["capture", "binding"]', 'rooms = ["attic"]', "attic is not a room"),
    ],
)
def test_a_broken_rooms_table_is_reported(tree: Path, old: str, new: str, says: str) -> None:
    assert old in ROOMS
    write(tree, "rooms.toml", ROOMS.replace(old, new))
    assert any(says in problem for problem in check_rooms.check(tree))


def test_a_file_over_the_limit_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "src/base/short.cc", "\n" * 400)
    write(tmp_path, "src/base/long.cc", "\n" * 401)
    [problem] = check_size.check(tmp_path)
    assert problem.startswith("src/base/long.cc: 401 lines")


def test_a_long_python_function_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "python/a.py", "def short():\n" + "    x = 1\n" * 59 + "\n\ndef long():\n" + "    x = 1\n" * 60)
    assert check_size.check(tmp_path) == ["python/a.py:63: long has 61 lines; the limit is 60"]


CPP = """
#define OPEN {
namespace a::b {
constexpr Row kTable[] = {  // an initializer, not a function
    Row{"}", [](int x) { return x; }},
BODY
};
const char* kText = R"(void fake() {
BODY
)";
class Thing : public Base {
 public:
  Thing(int x) : x_(x), y_(0) {}
  int method(const Foo& f) const override {
BODY
  }
};
template <typename T>
auto function(std::span<const T> xs, char c = '{') -> std::vector<T> {
  for (const T& x : xs) { if (x == 1'000) { return "{"; } }
BODY
}
TEST_CASE("a { sentence") {
BODY
}
}  // namespace a::b
"""


def test_long_cpp_functions_are_reported_and_nothing_else_is() -> None:
    names = {name: lines for _, name, lines in check_size.cpp_functions(CPP.replace("BODY", "  ++x;\n" * 80))}
    assert {name for name, lines in names.items() if lines > 60} == {"method", "function", "TEST_CASE"}
    assert names["Thing"] == 1
    short = check_size.cpp_functions(CPP.replace("BODY", ""))
    assert short and all(lines < 10 for _, _, lines in short)


@pytest.mark.parametrize("tool", ["check_rooms.py", "check_size.py"])
def test_the_command_fails_with_the_problem_on_stderr(tree: Path, tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), str(tree)]
    assert subprocess.run(command, check=False).returncode == 0
    write(tree, "src/base/error.cc", '#include "shape/int.h"\n' + "\n" * 400)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "src/base/error.cc" in done.stderr


def fake(folder: Path, name: str, script: str) -> None:
    write(folder, name, f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def install_with_fakes(tmp_path: Path, apt: str) -> subprocess.CompletedProcess[str]:
    """Runs the set-up where doctest is missing until `apt` makes the file `installed`."""
    fakes, mark = tmp_path / "bin", tmp_path / "installed"
    fake(fakes, "c++", f"input=$(cat); [[ $input != *doctest* ]] || test -e {mark}")
    fake(fakes, "apt-get", apt.replace("MARK", str(mark)))
    fake(fakes, "sudo", 'while [ "$1" = -n ]; do shift; done; "$@"')
    environment = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}", "CXX": "c++"}
    command = [str(ROOT / "tools/system_packages.sh"), sys.executable]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def test_a_missing_system_package_is_installed_with_apt(tmp_path: Path) -> None:
    done = install_with_fakes(tmp_path, 'echo "$@" >> MARK.log; [ "$1" = update ] || touch MARK')
    assert done.returncode == 0, done.stderr
    assert "doctest-dev" in (tmp_path / "installed.log").read_text()
    assert "libfmt-dev" not in (tmp_path / "installed.log").read_text()


def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path) -> None:
    done = install_with_fakes(tmp_path, "exit 100")
    assert done.returncode == 1
    assert "By their Debian names: doctest-dev\n" in done.stderr


def test_an_old_python_is_refused_with_a_way_out(tmp_path: Path) -> None:
    fake(tmp_path, "python3", "exit 1")
    command = [str(ROOT / "tools/system_packages.sh"), str(tmp_path / "python3")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr and "make PYTHON=" in done.stderr


def test_the_minutes_of_a_test_run_are_summed_by_step_also_of_steps_side_by_side(tmp_path: Path) -> None:
    lines = ["100 start", "110 > tests", "160 set-up", "165 checks", "230 tests", "400 pytest", "405 checks"]
    write(tmp_path, "steps.txt", "".join(f"{line}\n" for line in lines))
    command = [sys.executable, str(ROOT / "tools/show_minutes.py"), str(tmp_path / "steps.txt")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        *("  0:50  set-up", "  0:10  checks", "  2:00  tests", "  2:50  pytest", "  5:05  in all"),
    ]


def test_a_build_shows_how_far_it_is_and_all_of_it_when_it_fails(tmp_path: Path) -> None:
    script = "echo noise; echo '  [1/2] Building a.cc'; echo 'a.cc: error'; exit 3"
    command = [sys.executable, str(ROOT / "tools/show_build.py"), str(tmp_path / "log.txt"), "bash", "-c"]
    good = subprocess.run([*command, script.replace("3", "0")], check=True, capture_output=True, text=True)
    assert good.stdout == "[1/2] Building a.cc\n"
    bad = subprocess.run([*command, script], check=False, capture_output=True, text=True)
    assert bad.returncode == 3
    assert "a.cc: error" in bad.stdout and str(tmp_path / "log.txt") in bad.stdout
    assert (tmp_path / "log.txt").read_text().startswith("noise")


def test_clang_tidy_looks_at_the_lines_that_a_change_added() -> None:
    diff = """diff --git a/src/a.cc b/src/a.cc
--- a/src/a.cc
+++ b/src/a.cc
@@ -3 +3,2 @@ int f() {
-  old();
+  one();
+  two();
@@ -9,2 +10,0 @@ int f() {
-  gone();
-  gone();
--- a/src/b.h
+++ b/src/b.h
@@ -0,0 +7 @@
+int g();
--- a/src/c.cc
+++ b/src/c.cc
@@ -1 +0,0 @@
-gone
"""
    assert tidy_changed.changed_lines(diff) == {"src/a.cc": [[3, 4]], "src/b.h": [[7, 7]]}
