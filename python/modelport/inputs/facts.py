"""What a config and a preprocessor config say about inputs, asked by the names of attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# A sub config belongs to a kind of input when its name holds one of these.
_WORDS = {
    "text": ("text", "language", "llm", "decoder", "thinker"),
    "vision": ("vision", "image", "visual", "backbone", "encoder"),
    "audio": ("audio", "speech", "sound", "encoder"),
}
_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "max_text_len")
_SIDES = ("image_size", "crop_size", "input_size", "img_size")


class Facts:
    """A config with its sub configs, and the dict of a preprocessor or processor config."""

    def __init__(self, config: Any, preprocessor: dict[str, Any] | None = None):
        self.config = config
        self.preprocessor = dict(preprocessor or {})
        for name in ("image_processor", "feature_extractor", "video_processor"):  # a processor config nests them
            part = self.preprocessor.get(name)
            if isinstance(part, dict):
                self.preprocessor = {**part, **self.preprocessor}

    def parts(self, kind: str) -> list[Any]:
        """The config and its sub configs, those of the kind first."""
        found = list(_tree(self.config))
        words = _WORDS.get(kind, ())
        return [part for _, part in sorted(found, key=lambda item: _rank(item[0], words))]

    def value(self, names: tuple[str, ...], kind: str = "") -> Any:
        """The first of the names that some part has and that is not None; parts of the kind come first."""
        for part in self.parts(kind):
            for name in names:
                value = getattr(part, name, None)
                if value is not None:
                    return value
        return None

    def number(self, names: tuple[str, ...], kind: str = "") -> int | None:
        for part in self.parts(kind):
            for name in names:
                value = getattr(part, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return None

    def sides(self) -> list[tuple[int, int]]:
        """Heights and widths of images: what the preprocessor makes, what the config names."""
        sizes = []
        if self.preprocessor.get("do_center_crop") is not False:
            sizes.append(self.preprocessor.get("crop_size"))
        sizes.append(self.preprocessor.get("size"))
        sizes += [getattr(part, name, None) for part in self.parts("vision") for name in _SIDES]
        return list(dict.fromkeys(side for side in map(_side, sizes) if side))

    def patch(self, default: int = 16) -> int:
        value = self.value(("patch_size",), "vision")
        return max(value) if isinstance(value, (list, tuple)) else value or default

    def channels(self) -> int:
        return self.number(("num_channels", "in_channels", "in_chans"), "vision") or 3

    def bands(self) -> int | None:
        """Of a spectrogram."""
        names = ("num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "n_mels", "mel_bins")
        return self.number(names, "audio") or self.preprocessor.get("feature_size")

    def vocabulary(self, *, decoder: bool = False) -> int:
        """The number of token ids that every embedding of the text takes."""
        names = ("tgt_vocab_size", "src_vocab_size") if decoder else ("src_vocab_size",)
        text = self.text(decoder=decoder)
        sizes = [getattr(text, name, None) for name in ("vocab_size", *names)]
        known = [size for size in sizes if isinstance(size, int) and size > 0]
        return min(known) if known else self.number(("vocab_size",), "text") or 1000

    def text(self, *, decoder: bool = False) -> Any:
        """The config of the text that the model reads, or of what it writes."""
        try:
            return self.config.get_text_config(decoder=True if decoder else None)
        except ValueError:  # several parts read text
            parts = self.parts("text")
            return next((part for part in parts if getattr(part, "vocab_size", None)), self.config)

    def longest(self) -> int | None:
        """The longest text, where positions are limited; two positions may be kept for padding."""
        limit = self.number(_LENGTHS, "text")
        return limit - 2 if limit and limit > 4 else limit

    def token(self, *names: str, outside: bool = False) -> int | None:
        """A special token; one outside the vocabulary only where the caller can have it."""
        value = self.value(names)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return value if whole and (outside or value < self.vocabulary()) else None

    def special_tokens(self) -> set[int]:
        """Ids that the config gives a meaning, such as padding, start, end and images."""
        ids: set[int] = set()
        for _, part in _tree(self.config):
            for name, value in vars(part).items():
                if "token" in name and name.endswith(("_id", "_ids", "_index")):
                    values = value if isinstance(value, (list, tuple)) else [value]
                    ids |= {v for v in values if isinstance(v, int) and not isinstance(v, bool)}
        return ids

    def numbers(self) -> set[int]:
        """All whole numbers of the config."""
        return {v for _, part in _tree(self.config) for v in vars(part).values() if isinstance(v, int)}


def _tree(config: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    from transformers import PreTrainedConfig

    yield path, config
    if depth > 3:
        return
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            yield from _tree(value, f"{path}.{name}", depth + 1)


def _rank(path: str, words: tuple[str, ...]) -> tuple[int, int]:
    own = any(word in path for word in words)
    return (0 if own else 1 if not path else 2, path.count("."))


def _side(size: Any) -> tuple[int, int] | None:
    """Height and width out of the forms in which configs write a size."""
    if isinstance(size, bool) or not size:
        return None
    if isinstance(size, int):
        return (size, size)
    if isinstance(size, dict):
        if "height" in size and "width" in size:
            return (size["height"], size["width"])
        edge = size.get("shortest_edge") or size.get("longest_edge")
        return (edge, edge) if isinstance(edge, int) else None
    if isinstance(size, (list, tuple)) and len(size) == 2 and all(isinstance(s, int) for s in size):
        return (size[0], size[1])
    return None
