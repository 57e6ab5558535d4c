"""Headless Chromium, driven through its debugging pipe: pages are opened, clicked, typed into and looked at."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import FLAGS, PATIENCE


class Page:
    """One tab. Clicks and keys go through the browser's own input, as those of a person do."""

    def __init__(self, commands: int, answers: int):
        self._commands, self._answers = commands, answers
        self._read, self._last, self._session = b"", 0, ""
        self.logged: list[str] = []  # what the page complained of
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last:
            pass
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            assert ready, f"Chromium did not answer in {PATIENCE} s"
            piece = os.read(self._answers, 1 << 20)
            assert piece, "Chromium has ended"
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        found = json.loads(message)
        if found.get("method") == "Runtime.exceptionThrown":
            self.logged.append(str(found["params"]["exceptionDetails"].get("exception", {}).get("description")))
        elif found.get("method") == "Log.entryAdded":
            self.logged.append(found["params"]["entry"]["text"])
        return found

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, file: Path) -> float:
        """Returns the seconds until the page has drawn itself."""
        started = time.perf_counter()
        self.call("Page.navigate", url=file.as_uri())
        self.wait("document.documentElement && document.documentElement.dataset.ready !== undefined")
        return time.perf_counter() - started

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"it did not become true: {condition}"
            time.sleep(0.01)

    def click(self, element: str) -> None:
        """On the middle of the element that an expression gives."""
        box = self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}});"
            "const r = e.getBoundingClientRect(); return [r.x + Math.min(r.width / 2, 60), r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium_page(profile: Path) -> Iterator[Page]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "there is no Chromium: make test-clients installs it, or names the package"
    (to_read, commands), (answers, to_write) = os.pipe(), os.pipe()
    # Chromium reads commands from its file 3 and answers in its file 4.
    shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    command = ["bash", "-c", shell, "-", program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    browser = subprocess.Popen(
        command, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Page(commands, answers)
    finally:
        browser.kill()
        browser.wait()
        os.close(commands)
        os.close(answers)
