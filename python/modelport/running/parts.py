"""The files of a generative model, and the order in which one call goes through them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..base.errors import problem
from ..runtimes.executorch import ProgramSession
from ..runtimes.opening import Opening
from ..runtimes.openvino import IrSession
from ..runtimes.runner import Runner
from .accepted_inputs import Taken
from .cache_in_place import InPlaceDecoder, writes_in_place
from .decoder import Decoder, parts_of
from .features import Encoders
from .folder import Folder
from .inputs import call_of, decoder_feeds, fitted
from .program_decoder import ProgramDecoder, refuse_padding
from .program_folder import room_in
from .stateful_decoder import StatefulDecoder


class Parts:
    """`run` is one forward pass: encoders on what they read, the embedding, the decoder."""

    def __init__(self, folder: Folder, opening: Opening, config: Any):
        opened = opening.runners({role: (folder.files[role], folder.methods.get(role)) for role in folder.used()})
        self.config = config
        self.encoder_decoder = bool(getattr(config, "is_encoder_decoder", False))
        self.encoder = opened.get(folder.encoder or "")
        self.embedding = opened.get(folder.embedding or "")
        self.encoders = Encoders([opened[role] for role in folder.features], _feeds)
        step = opened[folder.decoder or ""]
        self.decoder: Decoder | ProgramDecoder | StatefulDecoder = (
            ProgramDecoder(step, room_in(folder), config)
            if isinstance(step, ProgramSession)
            else StatefulDecoder(step, config)
            if isinstance(step, IrSession) and step.file.is_stateful
            else InPlaceDecoder(step)
            if writes_in_place(step)
            else Decoder(step, opened.get(folder.prefill or ""))
        )
        self.taken = Taken(folder, opened, self.encoders.outputs)

    def encode(self, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """What the encoder makes of its input."""
        assert self.encoder is not None
        if isinstance(self.encoder, ProgramSession):
            refuse_padding(self.encoder.inputs, given)
        return self.encoder.tensors(_feeds(self.encoder, given))

    def run(self, given: dict[str, Any], cache: Cache | None) -> dict[str, Any]:
        """The outputs of the decoder, and those of the encoders that ran."""
        made: dict[str, Any] = {}
        if self.encoder is not None and given.get("encoder_outputs") is None:
            made = self.encode(given)
            given = given | {"encoder_outputs": tuple(made.values())}
        past = 0 if cache is None else parts_of(cache)[0].seen
        if past:  # features are for the prompt
            given = {name: value for name, value in given.items() if name not in self.encoders.outputs}
        made |= self.encoders.made(given)
        given = given | made
        if self.embedding is not None and given.get("inputs_embeds") is None:
            given = given | self._embedded(self.embedding, given)
        call = call_of(given, past, self.encoder_decoder)
        feeds = decoder_feeds(self.decoder.inputs(past), call, self.encoder_decoder)
        return made | self.decoder.run(feeds, call, cache)

    def _embedded(self, embedding: Runner, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Tokens as the decoder takes them. Features that the file does not put in their places are put there here."""
        results = embedding.tensors(_feeds(embedding, given, empty=True))
        for name in self.encoders.outputs:
            kind = name.removesuffix("_features")
            token = getattr(self.config, f"{kind}_token_id", getattr(self.config, f"{kind}_token_index", None))
            if name in given and name not in embedding.inputs and token is not None:
                embeds = results["inputs_embeds"]
                places = (given["input_ids"] == token).unsqueeze(-1).expand_as(embeds)
                results["inputs_embeds"] = embeds.masked_scatter(places, given[name].to(embeds.dtype))
        return results


def _feeds(session: Runner, given: Mapping[str, Any], *, empty: bool = False) -> dict[str, torch.Tensor]:
    """What the session takes of what there is. A mask that nobody gave hides nothing; with `empty`, features that no
    encoder made have no rows."""
    feeds: dict[str, torch.Tensor] = {}
    axes: dict[str, int] = {}
    for name, slot in session.inputs.items():
        if given.get(name) is not None:
            feeds[name] = fitted(slot, given[name])
            axes |= {axis: n for axis, n in zip(slot.shape, feeds[name].shape, strict=False) if isinstance(axis, str)}
    for name, slot in session.inputs.items():
        if name in feeds:
            continue
        if name.endswith("mask") and all(axis in axes for axis in slot.shape if isinstance(axis, str)):
            feeds[name] = torch.ones(slot.sized(axes, 1), dtype=slot.dtype)
        elif empty and slot.dtype.is_floating_point:
            feeds[name] = torch.zeros(slot.sized({}, 0), dtype=slot.dtype)
        else:
            raise problem("E0301", f"the input {name} is missing", session.takes())
    return feeds
