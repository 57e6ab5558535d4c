"""The model of an export: which class, which inputs, captured with its weights left in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..base.dtypes import float_dtype
from ..base.errors import ExportError, problem
from ..exporters.onnx_program import warn_of_overflows
from ..exporters.prepare import cast_leaf_tensors
from ..hub.folder import origin_of
from ..inputs import model_class
from ..inputs.given import check_names, read_inputs
from ..inputs.of_folder import example_for
from ..lazy.entry import capture
from ..lazy.folder import model_with_values, open_model
from ..weights import lazy_weights
from ..weights.adapter import base_of, task_of
from ..weights.checkpoint import Checkpoint, read_config
from ..weights.loading import quiet_transformers
from ..weights.remote_code import code_files, refuse_code
from . import kept_capture


class Loading:
    """One checkpoint folder as the arguments want it."""

    def __init__(self, args: Any, folder: Path):
        self.args, self.folder = args, folder
        self.dtype = float_dtype(args.dtype)
        self.written = read_config(folder)
        self.checkpoint = Checkpoint(folder)  # refuses pickles and broken files, with a way out
        # Code that lies in the folder runs only where the user said so.
        self.remote = bool(args.trust_remote_code and self.written.get("auto_map"))
        self._model: Any = None
        self.told = ""  # who made the example
        if not self.remote:
            self.cls = self._class()
            self.config = self._config()

    def capture(self) -> Any:
        """Sets `inputs`, too. In a process that exports a model in one format after the other it is done once."""
        return self.captured_now() if self.remote else kept_capture.capture(self)

    def captured_now(self) -> Any:
        options: dict[str, Any] = {"dynamic": not self.args.no_dynamic_axes, "join_lists": self.args.join_lists}
        if self.remote:
            return self._capture_remote(options)
        self.inputs = self._example(self.cls, self.config)
        dtype = self.dtype or getattr(self.config, "dtype", None) or torch.float32
        cast_leaf_tensors(self.inputs, dtype=dtype, device=torch.device("cpu"))
        try:
            captured = capture(self.folder, self.inputs, model_class=self.cls, dtype=self.dtype, **options)
        except ExportError as error:
            raise self._of_another_class(error) from error.__cause__
        captured.origin, captured.example = self.origin(), self.told
        return captured

    def _capture_remote(self, options: dict[str, Any]) -> Any:
        model = self._remote_model(None)  # in its own type: weights are converted when they are written
        self.inputs = self._example(model, None)
        if self.dtype is None:
            self._model = model
        else:
            cast_leaf_tensors(self.inputs, dtype=self.dtype, device=torch.device("cpu"))
        captured = capture(model, self.inputs, dtype=self.dtype, **options)
        captured.example = self.told
        return captured

    def model_class(self) -> Any:
        return type(self.model()) if self.remote else self.cls

    def make_inputs(self, model: Any) -> None:
        self.inputs = self._example(model, None)

    def origin(self) -> dict[str, str]:
        """How the model was made of the folder, for a check that makes it again."""
        found = {"model_class": self.model_class().__name__}
        if self.args.dtype is not None:
            found["dtype"] = self.args.dtype
        hub = origin_of(self.folder)
        return found if hub is None else found | {"hub": str(hub)}

    def _of_another_class(self, error: ExportError) -> ExportError:
        """A checkpoint that lacks weights of a class that the user chose: a way out that the command line has."""
        if error.code != "E0104" or self.args.task is None:
            return error
        way = f"leave out --task {self.args.task}: the checkpoint was saved from {self.written.get('architectures')}"
        first, *rest = error.diagnostics
        return ExportError(f"{error}\n   way out   {way}", [first | {"ways_out": [*first["ways_out"], way]}, *rest])

    def opened(self) -> Any:
        """The model to be exported, with its weights left in their files where that can be done."""
        if self.remote:
            return self._in_memory(self.model(), "its class is Python code that lies in the checkpoint")
        try:
            with quiet_transformers():
                model = open_model(self.folder, model_class=self.cls, dtype=self.dtype)
        except ExportError as error:
            raise self._of_another_class(error) from error.__cause__
        return model if lazy_weights.of(model) is not None else self._in_memory(model, "its weights had to be loaded")

    def _in_memory(self, model: Any, why: str) -> Any:
        if self.args.weights == "link":
            what = f"{self.folder}: nothing can point into the checkpoint, because {why}"
            raise problem("E0306", what, "copy the weights: --weights copy")
        self._model = model
        self.warn_of_overflows()
        return model

    def model(self) -> Any:
        """The model as transformers loads it: what values are compared with."""
        if self._model is None:
            loaded = (
                self._remote_model(self.dtype) if self.remote else model_with_values(self.folder, self.cls, self.dtype)
            )
            self._model = loaded
        return self._model

    def exact_model(self) -> Any:
        """The same in fp32, by which weights in few bits are measured."""
        if self.dtype == torch.float32:
            return self.model()
        return (
            self._remote_model(torch.float32)
            if self.remote
            else model_with_values(self.folder, self.cls, torch.float32)
        )

    def warn_of_overflows(self) -> None:
        """Of a model that was loaded in another type than its own: here nobody counted what did not fit."""
        if self.dtype != torch.float16:
            return
        halves = {name: w for name, w in self.model().state_dict().items() if w.dtype == torch.float16}
        counts = {name: int(weight.isinf().sum()) for name, weight in halves.items()}
        warn_of_overflows({name: (count, "f16") for name, count in counts.items() if count})

    def _example(self, model_or_class: Any, config: Any) -> Any:
        args = self.args
        if args.inputs is not None:
            given = read_inputs(args.inputs)
            check_names(given, model_or_class, args.inputs)
            self.told = f"the example is that of {args.inputs}"
            return given
        settings = {"batch": args.batch, "sequence": args.sequence, "task": args.task}
        settings["image_size"] = getattr(args, "image_size", None)
        found = example_for(self.folder, model_or_class, config, trust=args.trust_remote_code, **settings)
        self.told = f"the example was {found.told}"
        return found.inputs

    def _class(self) -> Any:
        import transformers

        foreign = [name for name in self.written.get("architectures") or [] if not hasattr(transformers, name)]
        if self.written.get("auto_map") and foreign and self.args.task is None:
            files = code_files(self.folder, "AutoModel") or code_files(self.folder)
            what = f"{foreign[0]}, which is no class of transformers,"
            raise refuse_code(self.folder, what, files, "--trust-remote-code")
        return model_class(self.written, self.args.task or task_of(self.folder))

    def _config(self) -> Any:
        try:
            with quiet_transformers():
                return self.cls.config_class.from_pretrained(base_of(self.folder))
        except Exception as error:  # configs refuse values in any way
            what = f"{self.folder / 'config.json'}: {type(error).__name__}: {error}"
            raise problem("E0103", what, "download it again") from error

    def _remote_model(self, dtype: torch.dtype | None) -> Any:
        import transformers

        known = self.written["auto_map"]
        autos = [name for name in known if name.startswith("AutoModel")]
        named = set(self.written.get("architectures") or [])
        fitting = [name for name in autos if str(known[name]).rpartition(".")[2] in named]
        if not autos:
            what = f"{self.folder}: auto_map in config.json names no model"
            raise problem("E0309", what, "export without --trust-remote-code")
        auto = getattr(transformers, (fitting or autos)[0])
        settings = {} if dtype is None else {"dtype": dtype}
        with quiet_transformers():
            return auto.from_pretrained(self.folder, trust_remote_code=True, **settings).eval()
