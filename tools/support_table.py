#!/usr/bin/env python3
"""Writes docs/SUPPORT.md: what becomes of each architecture of the zoo.

The table says what the tests say: they run every row, and fail where one of the lists of expected failures is not true
(tests/expected_failures.py, expected_onnx_failures.py, expected_generation_failures.py). The clients' columns say which
model types a client takes; tests/clients runs some of each."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/SUPPORT.md"
CLIENTS = ("genai", "transformers.js")
HEAD = """# What works

One row for each class of the zoo (`tests/zoo`): tiny models with random weights. Written by `make support`; the tests
hold it against the code. A number refers to the reasons below the table.

- **.pt2**, **ONNX**: the export gives the values of eager PyTorch at three sizes (`tests/zoo_test.py`,
  `tests/zoo_onnx_test.py`).
- **generates**: `modelport.load(folder).generate(...)` gives the 32 greedy tokens of PyTorch, for one prompt and for
  two of which one is padded (`tests/generation/zoo_generation_test.py`); – where the class does not generate.
- **in place**: with `--operators onnxruntime`, attention is fused with its cache, which is then written in place
  (`tests/generation/zoo_in_place_test.py`).
- **genai**, **transformers.js**: what `modelport export onnx --for CLIENT` writes. "runs": `tests/clients` runs it in
  the client. "known": the client takes models of this class, and no test of ours runs one in it.

| architecture | class | .pt2 | ONNX | generates | in place | genai | transformers.js |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> int:
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/clients")]
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    reasons: dict[str, int] = {}
    lines = [" | ".join(cells(row, reasons)) for row in classes()]
    body = "".join(f"| {line} |\n" for line in lines)
    listed = "".join(f"{number}. {reason}\n" for reason, number in reasons.items())
    return f"{HEAD}{body}\n## Reasons\n\n{listed}"


def classes() -> list[Any]:
    """The first row of each class; further ones show it with other inputs."""
    from zoo import ROWS

    first: dict[str, Any] = {}
    for row in ROWS:
        first.setdefault(row.model_class, row)
    return sorted(first.values(), key=lambda row: (row.name.split()[0], row.model_class))


def cells(row: Any, reasons: dict[str, int]) -> list[str]:
    import transformers
    from expected_failures import EXPECTED
    from expected_generation_failures import EXPECTED_FAILURES
    from expected_onnx_failures import EXPECTED as EXPECTED_ONNX

    def mark(reason: str | None) -> str:
        return "yes" if reason is None else f"no ({reasons.setdefault(reason, len(reasons) + 1)})"

    generative = getattr(transformers, row.model_class).can_generate()
    generates = mark(EXPECTED_FAILURES.get(row.model_class)) if generative else "–"
    found = [mark(EXPECTED.get(str(row))), mark(EXPECTED_ONNX.get(str(row))), generates]
    clients = ["" if generates.startswith("no") else in_client(row, client) for client in CLIENTS]
    return [row.name.split()[0], row.model_class, *found, "yes" if row.model_class in in_place() else "", *clients]


@functools.cache
def in_place() -> set[str]:
    """The classes of which a test shows that their cache is written in place."""
    text = (ROOT / "tests/zoo/generating.py").read_text()
    return set(re.findall(r'"(\w+)"', text.partition("IN_PLACE = (")[2].partition(")")[0]))


def in_client(row: Any, client: str) -> str:
    from modelport import ExportError
    from modelport.contracts import refuse_unknown

    try:
        refuse_unknown(client, row.make_config(), row.model_class)
    except ExportError:
        return ""
    return "runs" if row.name.split()[0] in tested(client) else "known"


def tested(client: str) -> set[str]:
    """The rows of the zoo that the tests of the client name."""
    file = {"genai": "genai_test.py", "transformers.js": "transformers_js_test.py"}[client]
    return set(re.findall(r'"([a-z0-9_]+)"', (ROOT / "tests/clients" / file).read_text()))


if __name__ == "__main__":
    sys.exit(main())
