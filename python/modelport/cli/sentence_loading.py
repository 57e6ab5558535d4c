"""The model of an export where it makes embeddings of sentences; any other is that of `loading`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from ..exporters.prepare import cast_leaf_tensors
from ..sentences import folder as sentences
from ..sentences.modules import SentenceModel
from ..weights.loading import quiet_transformers
from .loading import Loading


def loading_for(args: Any, folder: Path) -> Loading:
    asked = args.task == sentences.TASK
    wanted = asked or (args.task is None and sentences.is_sentence_folder(folder))
    if asked and not sentences.is_sentence_folder(folder):
        warnings.warn(f"{folder} has no modules.json: a sentence is the mean of its tokens", stacklevel=2)
    return SentenceLoading(args, folder) if wanted else Loading(args, folder)


class SentenceLoading(Loading):
    """A transformer and the modules after it, as sentence-transformers keeps them in a folder."""

    def __init__(self, args: Any, folder: Path):
        self.found = sentences.read_folder(folder)
        super().__init__(args, self.found.transformer)

    def _class(self) -> Any:
        return sentences.encoder_class(self.written)

    def model_class(self) -> Any:
        return SentenceModel

    def captured_now(self) -> Any:
        with quiet_transformers():
            model = self._opened()
        self.inputs = self._example(model, None)
        if not model.takes_types:
            self.inputs.pop("token_type_ids", None)
        cast_leaf_tensors(self.inputs, dtype=model.dtype, device=torch.device("cpu"))
        captured: Any = sentences.capture_sentences(model, self.inputs, dynamic=not self.args.no_dynamic_axes)
        captured.source, captured.origin, captured.example = self.found.path, self.origin(), self.told
        return captured

    def _opened(self) -> SentenceModel:
        if not self.remote:
            return sentences.opened(self.found, self.cls, self.dtype)
        return self._in_memory(self.model(), "its class is Python code that lies in the checkpoint")

    def model(self) -> Any:
        if self._model is None:
            if self.remote:
                self._model = sentences.joined(self.found, self._remote_model(self.dtype))
            else:
                self._model = sentences.load_sentences(self.found.path, self.cls, self.dtype)
        return self._model
