"""From a prompt, pictures and sounds to the inputs of `generate`, by the tokenizer or processor of the folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..base.errors import ExportError, problem
from ..weights.loading import quiet_transformers, read_preprocessor
from ..weights.remote_code import code_files, refuse_code
from .media import resampled

_PROCESSOR_FILES = ("processor_config.json", "preprocessor_config.json", "image_processor_config.json")
_TOKENIZER_FILES = ("tokenizer*", "vocab.*", "*.model", "*.spm", "*.tiktoken")

# Those without which there is no tokenizer: the others say how to use it.
_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.*", "*.model", "*.spm", "*.tiktoken")


def reads_text(folder: Path) -> bool:
    return _has(folder, _VOCABULARIES)


def reads_media(folder: Path) -> bool:
    return _has(folder, _PROCESSOR_FILES)


def _has(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(any(folder.glob(pattern)) for pattern in patterns)


@dataclasses.dataclass
class Prompt:
    """What the user wants to say. `raw` leaves the chat template away."""

    text: str | None
    images: list[Any] = dataclasses.field(default_factory=list)
    sounds: list[tuple[Any, int]] = dataclasses.field(default_factory=list)
    raw: bool = False

    @property
    def is_text_only(self) -> bool:
        return not self.images and not self.sounds


class Reader:
    """The tokenizer of a folder and, where it has them, what reads its pictures and sounds."""

    def __init__(self, folder: Path, *, trust_remote_code: bool = False, needs_tokenizer: bool = True):
        """A model that neither reads nor writes text needs no tokenizer."""
        from transformers import ProcessorMixin

        self.folder = folder
        self._trusts = trust_remote_code
        found = self._loaded("AutoProcessor", "processor") if reads_media(folder) else None
        self.processor = found if isinstance(found, ProcessorMixin) else None
        owner = self.processor if self.processor is not None else self._alone()
        self.image_processor = getattr(owner, "image_processor", None)
        self.feature_extractor = getattr(owner, "feature_extractor", None)
        self.tokenizer: Any = getattr(owner, "tokenizer", None)
        if self.tokenizer is None and (needs_tokenizer or reads_text(folder)):
            self.tokenizer = self._tokenizer()

    def _alone(self) -> Any:
        """What reads pictures or sounds where no processor joins it with the tokenizer."""
        written = read_preprocessor(self.folder) or {}
        if "image_processor_type" in written:
            return SimpleNamespace(image_processor=self._loaded("AutoImageProcessor", "image processor"))
        if "feature_extractor_type" in written:
            return SimpleNamespace(feature_extractor=self._loaded("AutoFeatureExtractor", "feature extractor"))
        return None

    def _tokenizer(self) -> Any:
        if not _has(self.folder, _TOKENIZER_FILES):
            raise problem(
                "E0312",
                f"{self.folder} has no tokenizer",
                "copy tokenizer.json and tokenizer_config.json of the model into it",
                "generate from token ids: modelport.load(folder).generate(input_ids)",
            )
        return self._loaded("AutoTokenizer", "tokenizer")

    def _loaded(self, auto: str, what: str) -> Any:
        import transformers

        try:
            with quiet_transformers():
                made = getattr(transformers, auto)
                # Without the flag, code in the folder does not run, and nobody is asked about it either.
                return made.from_pretrained(self.folder, local_files_only=True, trust_remote_code=self._trusts)
        except Exception as error:  # it fails in any way when a file or a package is missing
            files = [] if self._trusts else code_files(self.folder)
            if files and "trust_remote_code" in str(error):
                raise refuse_code(self.folder, f"the {what}", files, "modelport run ... --trust-remote-code") from error
            text = " ".join(str(error).split())
            raise problem(
                "E0103", f"the {what} in {self.folder} cannot be loaded: {text}", "copy its files from the model again"
            ) from error

    def inputs(self, prompt: Prompt) -> dict[str, Any]:
        """As tensors, for one row."""
        self._refuse_what_it_cannot_read(prompt)
        text, templated = self._text(prompt)
        if prompt.is_text_only:
            return dict(self.tokenizer(text, add_special_tokens=not templated, return_tensors="pt"))
        given: dict[str, Any] = {"return_tensors": "pt"}
        if prompt.images:
            given["images"] = prompt.images
        if prompt.sounds:
            extractor: Any = self.feature_extractor
            rate = extractor.sampling_rate
            given["audio"] = [resampled(samples, own, rate) for samples, own in prompt.sounds]
            given["sampling_rate"] = rate
        if text is not None and self.processor is not None:
            given["text"] = text
        try:
            process: Any = self.processor or self.image_processor or self.feature_extractor
            # What reads sounds alone calls them otherwise from class to class, but takes them first.
            first = [given.pop("audio")] if process is self.feature_extractor else []
            made = dict(process(*first, **given))
        except Exception as error:  # processors are programs of their own
            raise self._not_taken("processor", error, "see which pictures or sounds the model takes") from error
        if text is not None and "input_ids" not in made:
            raise problem("E0312", "the model reads no text beside a picture or a sound", "leave the prompt away")
        return made

    def _text(self, prompt: Prompt) -> tuple[str | None, bool]:
        """The text, and whether it comes from a template, which has the special tokens already."""
        owner = next((x for x in (self.processor, self.tokenizer) if getattr(x, "chat_template", None)), None)
        if prompt.raw or owner is None or prompt.text is None:
            return self._with_places(prompt), False
        things = [{"type": "image"} for _ in prompt.images] + [{"type": "audio"} for _ in prompt.sounds]
        content = [*things, {"type": "text", "text": prompt.text}] if owner is self.processor else prompt.text
        message = [{"role": "user", "content": content}]
        try:
            return owner.apply_chat_template(message, add_generation_prompt=True, tokenize=False), True
        except Exception as error:
            raise self._not_taken("chat template", error, "leave it away: --raw") from error

    def _with_places(self, prompt: Prompt) -> str | None:
        """Without a template, pictures and sounds come first, where the processor has a token for them."""
        text = prompt.text
        for kind, things in (("image_token", prompt.images), ("audio_token", prompt.sounds)):
            token = getattr(self.processor, kind, None)
            if isinstance(token, str) and things and token not in (text or ""):
                text = token * len(things) + (text or "")
        return text

    def _refuse_what_it_cannot_read(self, prompt: Prompt) -> None:
        if prompt.images and self.image_processor is None:
            raise problem("E0312", f"the model in {self.folder} reads no pictures", "leave --image away")
        if prompt.sounds and self.feature_extractor is None:
            raise problem("E0312", f"the model in {self.folder} reads no sounds", "leave --audio away")
        if self.tokenizer is None and prompt.text is not None:
            raise problem("E0312", f"the model in {self.folder} reads no text", "leave the prompt away")
        if prompt.is_text_only and self.tokenizer is None:
            flag = "--audio" if self.feature_extractor is not None else "--image"
            raise problem("E0312", "there is nothing to read", f"modelport run FOLDER {flag} FILE")
        if prompt.text is None and prompt.is_text_only:
            raise problem("E0312", "there is no prompt", 'modelport run FOLDER "Once upon a time"')

    def _not_taken(self, what: str, error: Exception, way: str) -> ExportError:
        return problem("E0312", f"the {what} of {self.folder} fails: {type(error).__name__}: {error}", way)
