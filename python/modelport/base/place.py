"""The line of the model that an exception came from."""

from __future__ import annotations

import os
import traceback
from typing import Any

_NOT_THE_MODEL = (f"{os.sep}torch{os.sep}", f"{os.sep}modelport{os.sep}", "<frozen", "<string>")


def model_line(error: BaseException) -> dict[str, Any]:
    """The innermost frame outside torch and outside this package, as a diagnostic's place."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        if any(part in code.co_filename for part in _NOT_THE_MODEL):
            continue
        file = code.co_filename
        if "site-packages" in file:
            file = os.path.basename(file)
        return {"file": file, "line": line, "function": code.co_qualname}
    return {}
