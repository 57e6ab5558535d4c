"""One model on the hub, at one commit: its files, and the folder of the hub's cache that they are fetched into."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.errors import problem
from ..base.settings_file import read_settings
from . import files
from .kept import headers_of
from .name import HubName
from .refusals import in_our_words, not_reached


class Repository:
    """A model of the hub that is there. Without a connection it is what the cache has of it."""

    def __init__(self, name: HubName):
        self.name = name
        self.error: Exception | None = None  # why the hub was not reached
        with in_our_words(name):
            self.files, self.commit = self._listed()

    @property
    def is_offline(self) -> bool:
        return self.error is not None

    def _listed(self) -> tuple[list[str], str]:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled

        try:
            info = HfApi().model_info(self.name.repository, revision=self.name.revision, timeout=_TIMEOUT)
        except HfHubHTTPError as error:
            if getattr(error.response, "status_code", 500) < 500:  # the hub says no
                raise
            self.error = error
        except (HTTPError, OfflineModeIsEnabled, ConnectionError, TimeoutError) as error:
            self.error = error
        else:
            return [sibling.rfilename for sibling in info.siblings or []], info.sha or ""
        return self._cached()

    def _cached(self) -> tuple[list[str], str]:
        from huggingface_hub import try_to_load_from_cache

        for file in (files.CONFIG, files.ADAPTER_CONFIG, files.MODULES):
            found = try_to_load_from_cache(self.name.repository, file, revision=self.name.revision)
            if isinstance(found, str):
                folder = Path(found).parent
                below = (Path(root, leaf).relative_to(folder) for root, _, leaves in os.walk(folder) for leaf in leaves)
                kept = os.listdir(headers_of(self.name.repository, folder.name))
                return [*(path.as_posix() for path in below), *kept], folder.name
        raise not_reached(self.name, self.error)

    def settings(self, *, code: bool) -> Path:
        """The folder with all that is needed but weights."""
        needed = files.settings(self.files, code=code)
        if not {files.CONFIG, files.ADAPTER_CONFIG, files.MODULES} & set(needed):
            shown = ", ".join(sorted(self.files)[:8]) or "nothing"
            raise problem(
                "E0316",
                f"{self.name} has no config.json, so it is no model of transformers; it has {shown}",
                "name the model that it was made of",
            )
        return self._fetched(needed)

    def weights(self, folder: Path) -> list[str]:
        """The files with the weights of a folder that has the settings."""
        index = None
        if files.INDEX in self.files and files.SINGLE not in self.files:
            index = read_settings(folder / files.INDEX)
        found = files.weights(self.files, index)
        if not found and self.is_offline:
            raise not_reached(self.name, self.error, "its weights")
        if not found:
            pickles = files.pickles(self.files)
            kind = f"its weights are pickles ({pickles[0]}), which can run code" if pickles else "it has no safetensors"
            raise problem(
                "E0103",
                f"{self.name}: {kind}",
                f"look for a revision that has safetensors: https://huggingface.co/{self.name.repository}/discussions",
                f"save it anew in Python: AutoModel.from_pretrained('{self.name.repository}').save_pretrained(folder)",
            )
        return found

    def with_weights(self, *, code: bool) -> Path:
        folder = self.settings(code=code)
        self._fetched(self.weights(folder))
        return folder

    def exported(self, ending: str | None = None) -> Path:
        """The folder of an artifact."""
        found = files.exported(self.files, ending)
        if not found:
            raise problem(
                "E0316",
                f"{self.name} has no .onnx, .pte or OpenVINO file",
                f"export it first: modelport export onnx {self.name.repository} OUT",
            )
        return self._fetched(found + files.settings(self.files, code=False))

    def _fetched(self, needed: list[str]) -> Path:
        from huggingface_hub import snapshot_download, try_to_load_from_cache

        if self.is_offline:
            for file in needed:
                found = try_to_load_from_cache(self.name.repository, file, revision=self.commit)
                if not isinstance(found, str):
                    raise not_reached(self.name, self.error, file)
            return Path(str(found)[: -len(needed[-1]) - 1])
        patterns = [glob.escape(file) for file in needed]
        with in_our_words(self.name), _bars_where_people_watch():
            folder = snapshot_download(self.name.repository, revision=self.name.revision, allow_patterns=patterns)
        return Path(folder)


_TIMEOUT = 20.0  # seconds


@contextmanager
def _bars_where_people_watch() -> Iterator[None]:
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
