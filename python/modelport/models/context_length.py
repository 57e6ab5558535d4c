"""How many tokens a model reads at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What configs call the number, of a decoder and of an encoder.
_DECODER = ("max_position_embeddings", "max_target_positions", "max_decoder_position_embeddings", "max_seq_len")
_ENCODER = ("max_encoder_position_embeddings", "max_position_embeddings")
# A file's name for the first, which a config that was read maps to it. In those of T5, whose positions have no end, it
# is left over from training.
_OF_DECODERS_ALONE = "n_positions"


def context_length(config: Any, *, encoder: bool = False) -> int | None:
    """As the config says, or the dict of its file; nothing where it does not say, or has several texts."""
    names = _ENCODER if encoder else _DECODER
    if not _value(config, "is_encoder_decoder"):
        names = (*names, _OF_DECODERS_ALONE)
    sizes = (_value(part, name) for part in _texts(config, encoder) for name in names)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def _texts(config: Any, encoder: bool) -> list[Any]:
    if isinstance(config, Mapping):
        return [part for part in (config.get("text_config"), config) if isinstance(part, Mapping)]
    if not hasattr(config, "get_text_config"):
        return [config]
    try:
        return [config.get_text_config(encoder=True) if encoder else config.get_text_config(decoder=True)]
    except ValueError:  # it has several
        return []


def _value(part: Any, name: str) -> Any:
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)
