"""A short run of `make test-faults`: whatever happens to an export, the old artifact is there or the new one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_a_disturbed_export_leaves_the_old_artifact_or_the_new_one() -> None:
    # In a process of its own: forked ones must not inherit the threads of other tests.
    command = [
        sys.executable,
        Path(__file__).parents[1] / "faults.py",
        "--runs",
        "8",
        "--commands",
        "1",
        "--seed",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    total = re.search(r"(\d+) runs +(\d+) +(\d+) +(\d+) +0$", done.stdout.strip())
    assert total is not None, done.stdout
    assert int(total[1]) >= 8 and int(total[2]) > 0 and int(total[3]) > 0
