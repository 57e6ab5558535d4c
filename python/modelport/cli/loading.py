"""The model of an export: which class, which inputs, captured with its weights left in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..capturing import capture
from ..checking.eager import load_model, quiet_transformers, read_preprocessor
from ..checkpoint import Checkpoint, read_config
from ..errors import ExportError, problem
from ..exporters.prepare import cast_leaf_tensors
from ..inputs import example_inputs, model_class

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Loading:
    """One checkpoint folder as the arguments want it."""

    def __init__(self, args: Any, folder: Path):
        self.args, self.folder = args, folder
        self.dtype = DTYPES.get(args.dtype)
        self.written = read_config(folder)
        Checkpoint(folder)  # refuses pickles and broken files, with a way out
        # Code that lies in the folder runs only where the user said so.
        self.remote = bool(args.trust_remote_code and self.written.get("auto_map"))
        self._model: Any = None
        if not self.remote:
            self.cls = self._class()
            self.config = self._config()

    def capture(self) -> Any:
        args = self.args
        options = {"dynamic": not args.no_dynamic_axes}
        if self.remote:
            self.inputs = self._example(self.model(), None)
            return capture(self.model(), self.inputs, **options)
        self.inputs = self._example(self.cls, self.config)
        dtype = self.dtype or getattr(self.config, "dtype", None) or torch.float32
        cast_leaf_tensors(self.inputs, dtype=dtype, device=torch.device("cpu"))
        try:
            captured = capture(self.folder, self.inputs, model_class=self.cls, dtype=self.dtype, **options)
        except ExportError as error:
            raise self._of_another_class(error) from error.__cause__
        captured.origin = {"model_class": self.cls.__name__} | ({} if args.dtype is None else {"dtype": args.dtype})
        return captured

    def _of_another_class(self, error: ExportError) -> ExportError:
        """A checkpoint that lacks weights of a class that the user chose: a way out that the command line has."""
        if error.code != "E0104" or self.args.task is None:
            return error
        way = f"leave out --task {self.args.task}: the checkpoint was saved from {self.written.get('architectures')}"
        first, *rest = error.diagnostics
        return ExportError(f"{error}\n   way out   {way}", [first | {"ways_out": [*first["ways_out"], way]}, *rest])

    def model(self) -> Any:
        """The model as transformers loads it: what values are compared with."""
        if self._model is None:
            self._model = self._remote_model() if self.remote else load_model(self.folder, self.cls, self.dtype)
        return self._model

    def _example(self, model_or_class: Any, config: Any) -> Any:
        args = self.args
        settings = {"batch": args.batch, "sequence": args.sequence, "task": args.task}
        with quiet_transformers():
            return example_inputs(model_or_class, config, preprocessor=read_preprocessor(self.folder), **settings)

    def _class(self) -> Any:
        import transformers

        foreign = [name for name in self.written.get("architectures") or [] if not hasattr(transformers, name)]
        if self.written.get("auto_map") and foreign and self.args.task is None:
            raise problem(
                "E0301",
                f"{foreign[0]} is no class of transformers: its Python code is in {self.folder}",
                "read that code, and if you trust it: --trust-remote-code",
            )
        return model_class(self.written, self.args.task)

    def _config(self) -> Any:
        try:
            with quiet_transformers():
                return self.cls.config_class.from_pretrained(self.folder)
        except Exception as error:  # configs refuse values in any way
            what = f"{self.folder / 'config.json'}: {type(error).__name__}: {error}"
            raise problem("E0103", what, "download it again") from error

    def _remote_model(self) -> Any:
        import transformers

        known = self.written["auto_map"]
        autos = [name for name in known if name.startswith("AutoModel")]
        named = set(self.written.get("architectures") or [])
        fitting = [name for name in autos if str(known[name]).rpartition(".")[2] in named]
        if not autos:
            what = f"{self.folder}: auto_map in config.json names no model"
            raise problem("E0301", what, "export without --trust-remote-code")
        auto = getattr(transformers, (fitting or autos)[0])
        settings = {} if self.dtype is None else {"dtype": self.dtype}
        with quiet_transformers():
            return auto.from_pretrained(self.folder, trust_remote_code=True, **settings).eval()
