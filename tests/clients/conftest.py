"""Where the clients are: packages from npm under build/clients, with the scripts of this folder beside them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE.parent.parent / "build/clients"


@pytest.fixture(scope="session")
def packages() -> Path:
    assert (PACKAGES / ".packages").exists(), "the npm packages are missing: make test-clients installs them"
    for script in (*HERE.glob("*.mjs"), HERE / "page.html"):
        # Node.js looks for packages from where a script is. Renamed into place: another worker may be reading it.
        partial = PACKAGES / f".{script.name}.{os.getpid()}"
        shutil.copy(script, partial)
        os.replace(partial, PACKAGES / script.name)
    return PACKAGES
