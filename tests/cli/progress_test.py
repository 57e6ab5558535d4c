"""What a person sees while a command works: on a terminal a step that takes its time, and nobody else sees anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

BEGIN = """
import sys, time
from modelport.cli.console import Console
console = Console(quiet={quiet}, as_json=False)
"""
SLOW = """
with console.stage("capture"):
    time.sleep(0.1)
with console.stage("write", lambda: 3_000_000, 4_000_000):
    time.sleep(1.2)
    console.note("an axis [batch] is at most 8")
    time.sleep(0.4)
"""
QUICK = """
with console.stage("capture"):
    time.sleep(0.1)
"""
END = """
print("rich" in sys.modules)
"""


def seen(code: str, *, terminal: bool = True, quiet: bool = False) -> tuple[str, bool]:
    """What came on stderr, a terminal or not, and whether rich was imported."""
    watched, given = os.openpty()
    command = [sys.executable, "-c", textwrap.dedent(BEGIN.format(quiet=quiet) + code + END)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=given if terminal else subprocess.STDOUT,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        text=True,
    )
    os.close(given)
    said = ""
    try:
        while piece := os.read(watched, 1 << 16):
            said += piece.decode()
    except OSError:  # so Linux says that the other end was closed
        pass
    os.close(watched)
    out = process.communicate()[0]
    assert process.returncode == 0
    *others, imported = out.split("\n")[:-1]
    return said + "\n".join(others), imported == "True"


def test_a_slow_step_shows_how_far_it_is_and_is_gone_at_the_end() -> None:
    said, imported = seen(SLOW)
    assert imported
    assert re.search(r"capture 0\.\d s · write", said) and "3.0/4.0 MB" in said
    assert re.search(r"^.*note: an axis \[batch\] is at most 8 *\r?$", said, re.MULTILINE)
    assert said.endswith("\x1b[2K"), "the line stays"
    assert "\x1b[?25l" not in said, "a process that is killed would leave a terminal without a cursor"


def test_quick_steps_show_nothing_and_do_not_import_what_would_show_it() -> None:
    assert seen(QUICK) == ("", False)


def test_nothing_moves_where_nobody_watches() -> None:
    assert seen(SLOW, terminal=False) == ("note: an axis [batch] is at most 8", False)
    assert seen(SLOW, quiet=True) == ("", False)
