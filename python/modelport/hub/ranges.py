"""Parts of files of the hub, by range requests."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..base.errors import problem

_TIMEOUT = 30.0  # seconds


class Part(NamedTuple):
    data: bytes
    total: int  # bytes of the whole file


def fetch_part(url: str, start: int, end: int) -> Part:
    """The bytes of a file from `start` to before `end`, or to its end. No more is read, whatever the server sends."""
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    headers = build_hf_headers() | {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
    with get_session().stream("GET", url, headers=headers, follow_redirects=True, timeout=_TIMEOUT) as response:
        hf_raise_for_status(response)
        total = _total(response)
        if total is None or (start > 0 and response.status_code != 206):
            what = f"{url}: the server does not answer requests for a part of a file"
            raise problem("E0317", what, "download the model first: hf download NAME, then name it again")
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) >= end - start:
                break
    return Part(bytes(data[: end - start]), total)


def _total(response: object) -> int | None:
    headers = response.headers  # type: ignore[attr-defined]
    found = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
    if found:
        return int(found[1])
    length = headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None
