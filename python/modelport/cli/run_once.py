"""`modelport run` of a model that is called once: words for a mask, labels, things in a picture, likeliest first."""

from __future__ import annotations

from typing import Any

from ..artifacts.ir import read_artifact
from ..artifacts.pte import ProgramFile
from ..running import OpeningModel
from ..running.folder import Folder
from .console import Console, note_code, say


def run(args: Any, console: Console, opening: OpeningModel, prompt: Any, why: str) -> bool:
    """`why` it does not generate."""
    from ..running.answers import Question, answers, can_answer
    from ..running.classes import cannot_generate
    from ..running.prompt import Reader
    from ..weights.loading import quiet_transformers

    folder = opening.folder
    takes, gives = _names(folder)
    if not can_answer(takes, gives):
        raise cannot_generate(folder.path, why)
    with quiet_transformers():
        if args.trust_remote_code:
            note_code(console, folder.path)
        trust = args.trust_remote_code
        reader = Reader(folder.path, trust_remote_code=trust, needs_tokenizer="input_ids" in takes)
        inputs = reader.inputs(prompt)
        with console.stage("load"):
            model = opening.model()
        with console.stage("run"):
            results = model(**_given(takes, inputs))
        found = answers(results, Question(reader, inputs, prompt.images, folder.config or {}))
    if console.as_json:
        rows = [{"score": answer.score, "text": answer.text, "box": answer.box} for answer in found]
        seconds = {name: round(seconds, 4) for name, seconds in console.seconds.items()}
        console.result("", {"ok": True, "answers": rows, "seconds": seconds})
    else:
        say("\n".join(map(str, found)))
    return True


def _names(folder: Folder) -> tuple[list[str], list[str]]:
    """Of inputs and outputs."""
    if "model" not in folder.files:
        return [], []
    file = folder.files["model"]
    if folder.methods:
        program = ProgramFile(file)
        return [row["name"] for row in program.inputs], [row["name"] for row in program.outputs]
    told = read_artifact(file).summary
    return [row["name"] for row in told["inputs"]], [row["name"] for row in told["outputs"]]


def _given(takes: list[str], inputs: dict[str, Any]) -> dict[str, Any]:
    """Not every tokenizer tells segments; the text is one, as models have it where nothing is said."""
    if "token_type_ids" in takes and "token_type_ids" not in inputs:
        inputs = inputs | {"token_type_ids": inputs["input_ids"] * 0}
    return {name: value for name, value in inputs.items() if name in takes}
