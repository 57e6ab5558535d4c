#!/usr/bin/env python3
"""Makes the picture of README: exports examples/teller and photographs its page, with an operator that is looked at."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/pictures/page.png"
WIDTH, HEIGHT, COLOURS = 1180, 620, 128
LOOKED_AT = "layers.0.self_attn attention"


def write_page(folder: Path) -> Path:
    from modelport.cli import main

    out, page = folder / "teller-onnx", folder / "page.html"
    assert main(["export", "onnx", str(ROOT / "examples/teller"), str(out), "--no-check", "--quiet"]) == 0
    assert main(["inspect", str(out), "--html", str(page), "--quiet"]) == 0
    return page


def photograph(page: Path, profile: Path) -> None:
    from chromium import chromium_page
    from PIL import Image

    with chromium_page(profile) as browser:
        browser.size(WIDTH, HEIGHT)
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(page)
        browser.press("/")
        browser.type(LOOKED_AT)
        browser.press("Enter")
        browser.run("document.querySelector('.item.chosen').scrollIntoView({block: 'end'})")
        # Where the folder was on the machine of the picture is nobody's business.
        browser.run("document.querySelector('header p').textContent = 'ONNX · teller-onnx'")
        browser.picture(PICTURE)
    with Image.open(PICTURE) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests/clients"))
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.parent.mkdir(exist_ok=True)
        photograph(write_page(Path(folder)), Path(folder) / "profile")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")
