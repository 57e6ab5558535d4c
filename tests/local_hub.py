"""A hub on this machine: the endpoints that huggingface_hub asks for models, over folders, and what it sent of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_of_the_tests"


@dataclasses.dataclass
class Content:
    """The bytes of a file; after those that are there come zeros, up to its size."""

    start: bytes
    size: int

    def part(self, begin: int, end: int) -> bytes:
        return self.start[begin:end].ljust(end - begin, b"\0")

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.start + str(self.size).encode()).hexdigest()


@dataclasses.dataclass
class Model:
    files: dict[str, Content]
    needs: str = ""  # "token": it is private; "terms": they have to be accepted
    revisions: tuple[str, ...] = ("main", COMMIT)


class LocalHub:
    """`with LocalHub() as hub`: models are added by name; `sent` counts the bytes of each file that left."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}
        self.sent: Counter[str] = Counter()
        self.requests: list[str] = []
        self.takes_ranges = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_folder(self, name: str, folder: Path, needs: str = "") -> Model:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return self.add(name, {path: Content(data, len(data)) for path, data in contents.items()}, needs)

    def add(self, name: str, files: dict[str, Content], needs: str = "") -> Model:
        self.models[name] = Model(files, needs)
        return self.models[name]

    def __enter__(self) -> LocalHub:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Refused(Exception):
    def __init__(self, status: int, code: str):
        super().__init__(code)
        self.status, self.code = status, code


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_text: Any) -> None:
        pass

    def _answer(self) -> None:
        self.hub.requests.append(self.path)
        try:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                self._tell(parts[2:])
            elif parts[2:3] == ["resolve"]:
                self._file(self._model("/".join(parts[:2]), parts[3]), "/".join(parts[4:]), parts)
            else:
                raise _Refused(404, "EntryNotFound")
        except _Refused as error:
            self._send(error.status, b"{}", {"X-Error-Code": error.code})

    def _model(self, name: str, revision: str) -> Model:
        model = self.hub.models.get(name)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if model is None or (model.needs == "token" and not known):
            raise _Refused(401, "RepoNotFound")
        if revision not in model.revisions:
            raise _Refused(404, "RevisionNotFound")
        return model

    def _tell(self, parts: list[str]) -> None:
        name, kind, *rest = ["/".join(parts[:2]), *(parts[2:] or ["revision", "main"])]
        model = self._model(name, rest[0] if rest else "main")
        if kind == "tree":
            rows = [self._row(path, content) for path, content in model.files.items()]
            return self._json(rows)
        files = [{"rfilename": path} for path in model.files]
        return self._json({"id": name, "modelId": name, "sha": COMMIT, "siblings": files, "tags": []})

    def _row(self, path: str, content: Content) -> dict[str, Any]:
        row = {"type": "file", "path": path, "size": content.size, "oid": content.etag[:40]}
        if path.endswith(".safetensors"):
            row["lfs"] = {"oid": content.etag, "size": content.size, "pointerSize": 130}
        return row

    def _file(self, model: Model, path: str, parts: list[str]) -> None:
        if model.needs == "terms" and path not in ("README.md",):
            raise _Refused(403, "GatedRepo")
        content = model.files.get(path)
        if content is None:
            raise _Refused(404, "EntryNotFound")
        headers = {"ETag": f'"{content.etag}"', "X-Repo-Commit": COMMIT, "X-Linked-Size": str(content.size)}
        begin, end, status = 0, content.size, 200
        asked = self.headers.get("Range")
        if asked and self.hub.takes_ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end, status = int(first), min(int(last) + 1 if last else end, end), 206
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{content.size}"
        self._send(status, None, {**headers, "Content-Length": str(end - begin)})
        if self.command == "HEAD":
            return
        for start in range(begin, end, 1 << 20):
            piece = content.part(start, min(start + (1 << 20), end))
            try:
                self.wfile.write(piece)
            except OSError:  # who asked has heard enough
                self.close_connection = True
                return
            self.hub.sent[f"{'/'.join(parts[:2])}/{path}"] += len(piece)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is not None and self.command != "HEAD":
            self.wfile.write(body)
