#!/usr/bin/env python3
"""Builds docs/ as a site: README is its first page, CONTRIBUTING and CHANGELOG are pages, pictures of rooms are drawn.

usage: tools/build_site.py [FOLDER]      (build/site)

The sources stay Markdown as GitHub shows it; what only a site has (the list of pages, drawings) is added to a copy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import draw_graph

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path(__file__).resolve().parent / "site"
OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md")
# Every page of docs/ has to be here, with another title where its own is long: Sphinx warns of one that is not, and a
# warning fails the build.
PAGES = {
    "Start": ["tour"],
    "How to run a model in": [
        "PyTorch (.pt2) <how-to/pt2>",
        "onnxruntime <how-to/onnxruntime>",
        "onnxruntime-genai <how-to/genai>",
        "transformers.js <how-to/transformers-js>",
        "a browser <how-to/onnxruntime-web>",
        "ExecuTorch <how-to/executorch>",
        "openvino",
    ],
    "Topics": ["generation", "onnx", "clients", "observer", "limits", "pages", "fleet"],
    "Reference": [
        "cli",
        "api",
        "errors",
        "Support by architecture <SUPPORT>",
        "plain-modules",
        "COMPATIBILITY",
        "CHANGELOG",
    ],
    "Inside": ["ARCHITECTURE", "adding-an-operator", "quick-imports", "status", "CONTRIBUTING"],
}
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def build(site: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        gather(sources)
        shutil.rmtree(site, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", f"{folder}/trees"]
        subprocess.run([*command, str(sources), str(site)], check=True)


def gather(sources: Path) -> None:
    """The pages as Sphinx takes them."""
    shutil.copytree(SETTINGS, sources)
    shutil.copytree(ROOT / "docs", sources, dirs_exist_ok=True)
    shutil.copy(ROOT / "LICENSE", sources)
    for page in OUTSIDE:
        (sources / page).write_text(_moved((ROOT / page).read_text()))
    (sources / "index.md").write_text(_moved((ROOT / "README.md").read_text()) + _lists())
    for page in sources.rglob("*.md"):
        page.write_text(_MERMAID.sub(_drawn, page.read_text()))


def _moved(text: str) -> str:
    """A page from above docs/, in it."""
    return text.replace("](docs/", "](")


def _drawn(block: re.Match[str]) -> str:
    return draw_graph.svg(draw_graph.read(block[1]))


def _lists() -> str:
    lists = [
        "```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(pages) + "\n```\n"
        for title, pages in PAGES.items()
    ]
    return "\n" + "\n".join(lists)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/site")
