"""`modelport run`: text from an exported model, word by word as it comes, or what one says of a text or a picture."""

from __future__ import annotations

import inspect
import platform
import sys
import time
from pathlib import Path
from typing import Any

from ..artifacts.artifact import Artifact
from ..artifacts.variants import ending_of
from ..base.errors import problem
from ..base.printable import printable
from ..hub.folder import exported_folder
from ..quick_imports.command import import_quickly
from ..running import OpeningModel, open_any
from ..running.media import read_image, read_sound
from . import run_inputs, run_once
from .console import Console, note_code, say

_LARGE = 1024  # bytes of a weight that is no list of sizes or positions


def run(args: Any, console: Console) -> bool:
    run_inputs.refuse_both(args)
    # What can be wrong is found in the order of what it takes to find it: the files, the prompt, the model.
    args.folder = exported_folder(args.folder, ending=ending_of(args.dtype))
    folder = open_any(args.folder, args.dtype)
    images, sounds = [read_image(path) for path in args.image], [read_sound(path) for path in args.audio]
    with console.stage("import"):
        opening = OpeningModel(folder, threads=args.threads, **one_shot_options(list(folder.files.values())))
        import_quickly()
        from ..inputs.given import read_inputs
        from ..running.classes import generating_class
        from ..running.generating import read_config
        from ..running.program_folder import room_in
        from ..running.prompt import Prompt, Reader
        from ..weights.loading import quiet_transformers
    given = None if args.inputs is None else read_inputs(args.inputs)
    cls = generating_class(folder)
    if args.outputs is not None and not isinstance(cls, str):
        raise problem("E0306", f"--outputs keeps tensors, and {cls.__name__} gives tokens", "leave --outputs out")
    if given is not None and isinstance(cls, str):
        return run_inputs.run(args, console, opening, given)
    prompt = Prompt(args.prompt, images, sounds, args.raw)
    if isinstance(cls, str):
        return run_once.run(args, console, opening, prompt, why=cls)
    with quiet_transformers():
        if args.trust_remote_code:
            note_code(console, folder.path)
        reader = Reader(folder.path, trust_remote_code=args.trust_remote_code, needs_tokenizer=given is None)
        inputs = reader.inputs(prompt) if given is None else given
        if "token_type_ids" not in inspect.signature(cls.forward).parameters:  # some tokenizers give them to any model
            inputs.pop("token_type_ids", None)
        _refuse_if_it_reads_something_else(cls, inputs)
        settings = _settings(args, console, read_config(folder, cls), inputs, room_in(folder))
        with console.stage("load"):
            model = opening.model()
        _tell(console, _generated(args, console, model, reader, inputs, settings))
    return True


def one_shot_options(files: list[Path], machine: str = platform.machine()) -> dict[str, str]:
    """Weights in fp32 that onnxruntime rearranges when it loads them make prompts faster to read on x86_64, by a fifth,
    and steps not at all: in one run the time that it takes comes back only with prompts of many hundreds of tokens.
    Elsewhere a step without it takes twice as long, and with weights in fewer bits 60 times."""
    if machine.lower() not in ("x86_64", "amd64") or any(file.suffix != ".onnx" for file in files):
        return {}
    weights = [weight for file in files for weight in Artifact(file).summary["weights"]]
    is_plain = all(weight["dtype"] == "f32" for weight in weights if weight["bytes"] > _LARGE)
    return {"session.disable_prepacking": "1"} if is_plain else {}


def _refuse_if_it_reads_something_else(cls: Any, inputs: dict[str, Any]) -> None:
    wanted = cls.main_input_name
    if wanted not in inputs:
        flag = "--image FILE" if wanted.startswith("pixel") else "--audio FILE"
        raise problem("E0312", f"{cls.__name__} reads {wanted}, and there are none", f"modelport run FOLDER {flag}")


def _settings(args: Any, console: Console, config: Any, inputs: dict[str, Any], cache: int | None) -> dict[str, Any]:
    """The keywords of `generate`; what does not fit into the context, or into a cache of fixed size, is refused or
    cut."""
    from ..models.context_length import context_length
    from ..running.generating import refuse_too_long
    from ..running.program_decoder import refuse_no_room

    settings: dict[str, Any] = {"max_new_tokens": args.max_new_tokens, "num_beams": args.num_beams}
    tokens = _tokens_of(inputs)
    refuse_too_long(config, tokens, encoder=config.is_encoder_decoder)
    if not config.is_encoder_decoder:
        refuse_no_room(cache, tokens)
    limit = min((size for size in (context_length(config), cache) if size is not None), default=None)
    room = None if limit is None else limit - (0 if config.is_encoder_decoder else tokens)
    if room is not None and room < 1:
        raise problem("E0312", f"the prompt fills the {limit} tokens that the model reads at most", "shorten it")
    if room is not None and args.max_new_tokens > room:
        console.note(f"the model reads at most {limit} tokens: there is room for {room} new ones")
        settings["max_new_tokens"] = room
    sampling = {"temperature": args.temperature, "top_k": args.top_k, "top_p": args.top_p}
    sampling = {name: value for name, value in sampling.items() if value is not None}
    if sampling.get("temperature") == 0:
        return settings | {"do_sample": False}
    if args.do_sample or sampling:
        settings |= {"do_sample": True, **sampling}
    return settings


def _rows_of(inputs: dict[str, Any]) -> int:
    return next((value.shape[0] for value in inputs.values() if getattr(value, "ndim", 0)), 1)


def _tokens_of(inputs: dict[str, Any]) -> int:
    ids = inputs.get("input_ids")
    return 0 if ids is None else int(ids.shape[-1])


class _Result:
    """What came out, and when."""

    def __init__(self, prompt_tokens: int):
        self.prompt_tokens = prompt_tokens
        self.text = ""
        self.new_tokens = 0
        self.started = time.perf_counter()
        self.first: float | None = None  # when the first token came; of beams it is not known
        self.last = self.started

    def token(self) -> None:
        self.last = time.perf_counter()
        self.new_tokens += 1
        self.first = self.last if self.first is None else self.first

    @property
    def tokens_per_second(self) -> float | None:
        """Of the steps after the first, which reads the prompt."""
        since, steps = (self.started, 0) if self.first is None else (self.first, 1)
        return (self.new_tokens - steps) / (self.last - since) if self.last > since else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": True,
            "text": self.text,
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
            "first_token_seconds": None if self.first is None else self.first - self.started,
            "tokens_per_second": self.tokens_per_second,
        }


def _generated(
    args: Any, console: Console, model: Any, reader: Any, inputs: dict[str, Any], settings: dict[str, Any]
) -> _Result:
    import torch

    if args.seed is not None:
        torch.manual_seed(args.seed)
    result = _Result(_tokens_of(inputs))
    # Beams are ranked at the end: until then there is no text to show. Several texts would come mixed.
    one = args.num_beams == 1 and reader.tokenizer is not None and _rows_of(inputs) == 1
    words = _streamer(reader.tokenizer, result, console) if one else None
    try:
        rows = model.generate(**inputs, **settings, streamer=words)
    except ValueError as error:  # transformers says so of settings that do not go together
        what = f"generate refuses this: {error}"
        raise problem("E0306", what, "change the flags, or generation_config.json in the folder") from error
    if words is not None:
        return result
    result.last = time.perf_counter()
    new = rows if model.config.is_encoder_decoder else rows[:, result.prompt_tokens :]
    result.new_tokens = new.numel()
    if reader.tokenizer is None:
        result.text = "\n".join(" ".join(map(str, row)) for row in new.tolist())
    else:
        result.text = "\n".join(reader.tokenizer.batch_decode(new, skip_special_tokens=True))
    if not console.as_json:
        say(_shown(result.text))
    return result


def _shown(text: str) -> str:
    """What the model says, without what would steer a terminal; into a file it goes as it is."""
    return printable(text) if sys.stdout.isatty() else text


def _streamer(tokenizer: Any, result: _Result, console: Console) -> Any:
    """Words go to the terminal as they come; in JSON all of them at the end."""
    from transformers import TextStreamer

    class Words(TextStreamer):
        def put(self, value: Any) -> None:
            if not self.next_tokens_are_prompt:
                result.token()
            super().put(value)

        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            result.text += text
            if not console.as_json:
                say(_shown(text), end="\n" if stream_end else "")

    return Words(tokenizer, skip_prompt=True, skip_special_tokens=True)


def _tell(console: Console, result: _Result) -> None:
    data = result.to_dict()
    data["seconds"] = {name: round(seconds, 4) for name, seconds in console.seconds.items()}
    if console.as_json:
        console.result("", data)
    elif not console.quiet:
        first, speed = data["first_token_seconds"], data["tokens_per_second"]
        rows = [f"{result.prompt_tokens} tokens of prompt", f"{data['new_tokens']} new ones"]
        rows += [] if first is None else [f"the first after {first:.2f} s"]
        rows += [] if speed is None else [f"{speed:.1f} tokens/s"]
        print(", ".join(rows), file=sys.stderr)
