"""A model that is called once and gives all its results."""

from __future__ import annotations

from typing import Any

import torch

from ..artifacts.limits import check_frozen
from ..base.errors import problem
from ..base.printable import listed
from ..runtimes.runner import Runner, misfit
from .classes import cannot_generate
from .inputs import fitted
from .outputs import Outputs


class PlainModel:
    """One file. Call it with its inputs by name: tensors, numpy arrays or lists; the results are tensors by name."""

    def __init__(self, session: Runner, config: dict[str, Any] | None, reason: str):
        """`reason` says why it cannot generate."""
        self._session, self.config, self._reason = session, config, reason
        self.device = torch.device("cpu")

    @property
    def input_names(self) -> list[str]:
        return list(self._session.inputs)

    @property
    def output_names(self) -> list[str]:
        return list(self._session.outputs)

    def __call__(self, *args: Any, **inputs: Any) -> Outputs:
        session = self._session
        if args:
            raise problem("E0301", "inputs are given by name", session.takes())
        given = {name: value for name, value in inputs.items() if value is not None}
        frozen = session.limits.frozen if session.limits else {}
        for name in [name for name in given if name in frozen]:
            check_frozen(name, given.pop(name), frozen[name])
        unknown = [name for name in given if name not in session.inputs]
        lacking = [name for name in session.inputs if name not in given]
        if unknown or lacking:
            needs = f"needs {listed(lacking)}" if lacking else ""
            more = f"does not take {', '.join(unknown)}" if unknown else ""
            what = " and ".join(filter(None, (needs, more)))
            raise problem("E0301", f"{session.path} {what}", session.takes())
        feeds = {}
        for name, slot in session.inputs.items():
            feeds[name] = fitted(slot, given[name])
            wrong = misfit(slot, feeds[name].shape)
            if wrong:
                raise problem("E0301", wrong, session.takes())
        return Outputs(session.tensors(feeds))

    forward = __call__

    def reset(self) -> None:
        """Buffers that the model writes to, as they were when it was exported."""
        self._session.reset()

    def generate(self, *_args: Any, **_kwargs: Any) -> Any:
        raise cannot_generate(self._session.path.parent, self._reason)

    def __repr__(self) -> str:
        return f"PlainModel({self._session.path}: {', '.join(self.input_names)} -> {', '.join(self.output_names)})"
