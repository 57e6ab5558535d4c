"""A page in headless Chromium that runs an exported folder with transformers.js on onnxruntime-web."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE = 240  # seconds; a machine that is busy otherwise takes most of a minute


class _Server(ThreadingHTTPServer):
    """Serves the page, the packages and one model, and keeps what the page answers and asked for."""

    daemon_threads = True

    def __init__(self, packages: Path, folder: Path, request: dict[str, Any]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.packages, self.folder = packages, folder
        self.request = {"name": folder.name, **request}
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.opened: list[str] = []


class _Handler(SimpleHTTPRequestHandler):
    server: _Server
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def do_GET(self) -> None:
        if self.path == "/request":
            self._send(json.dumps(self.server.request).encode())
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self.server.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send(b"{}")

    def translate_path(self, path: str) -> str:
        models = f"/models/{self.server.folder.name}/"
        if path.startswith(models):
            self.server.opened.append(path.removeprefix(models))
            return str(self.server.folder / path.removeprefix(models))
        return str(self.server.packages / (path.lstrip("/") or "page.html"))

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def run_in_browser(packages: Path, folder: Path, profile: Path, **request: Any) -> tuple[dict[str, Any], list[str]]:
    """The answer of the task, and the files of the model that the page opened."""
    with _serving(_Server(packages, folder, request)) as server, _chromium(server.server_port, profile) as browser:
        try:
            answer = server.answers.get(timeout=PATIENCE)
        except queue.Empty:
            browser.kill()
            raise AssertionError(f"no answer in {PATIENCE} s: {browser.communicate()[1][-2000:]}") from None
    assert "error" not in answer, answer["error"]
    return answer["result"], server.opened


@contextmanager
def _serving(server: _Server) -> Iterator[_Server]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def _chromium(port: int, profile: Path) -> Iterator[subprocess.Popen[str]]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "there is no Chromium: make test-clients installs it, or names the package"
    command = [program, *FLAGS, f"--user-data-dir={profile}", f"http://127.0.0.1:{port}/"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as browser:
        try:
            yield browser
        finally:
            browser.kill()
