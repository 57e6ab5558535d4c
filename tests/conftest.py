"""What every test process does first."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """torch and transformers are a million objects that stay: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
