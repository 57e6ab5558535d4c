"""Tiny models of the zoo, exported for a client; and what eager PyTorch makes of the same inputs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from zoo import ROWS, Row

import modelport
from modelport.contracts import refuse_unknown, write_contract

NEW_TOKENS = 32
PLAIN = 5  # ids below this are special in the zoo


def row_of(name: str, **config: Any) -> Row:
    row = next(row for row in ROWS if str(row) == name)
    return dataclasses.replace(row, config={**row.config, **config}) if config else row


def built(row: Row) -> Any:
    model, _ = row.build()
    model.config.architectures = [type(model).__name__]
    if model.can_generate():
        # Random weights tend to say one token for ever, which shows little; this makes the others count.
        model.generation_config.no_repeat_ngram_size = 2
    return model


def prompt(length: int, seed: int = 0, vocabulary: int = 99) -> torch.Tensor:
    return torch.randint(PLAIN, vocabulary, (1, length), generator=torch.Generator().manual_seed(seed))


def export_one_graph(client: str, model: Any, inputs: dict[str, Any], folder: Path) -> list[str]:
    refuse_unknown(client, model.config)
    folder.mkdir()
    modelport.OnnxExporter().export(model, inputs, modelport.OnnxConfig(dynamic=True)).save(folder / "model.onnx")
    model.config.save_pretrained(folder)
    return write_contract(client, folder, model.config)


def save_tokenizer(folder: Path, size: int = 300) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of words that are in the tests."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=alphabet)
    made.train_from_iterator(["the quick brown fox jumps over the lazy dog, and the dog sleeps on"] * 9, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", clean_up_tokenization_spaces=False
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def generated(model: Any, new_tokens: int = NEW_TOKENS, **inputs: Any) -> list[list[int]]:
    """The tokens that eager PyTorch appends to each row, up to the end token."""
    if "input_ids" in inputs and "attention_mask" not in inputs:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    whole = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False)
    if not model.config.is_encoder_decoder:
        start = inputs["input_ids"].shape[1]
    else:  # Whisper leaves out the token that it starts with
        start = int(whole[0, 0] == model.generation_config.decoder_start_token_id)
    return [until_end(row[start:], model) for row in whole.tolist()]


def until_end(tokens: list[int], model: Any) -> list[int]:
    """Clients differ in what they put after the end token, and whether they give it itself."""
    end = model.generation_config.eos_token_id
    return tokens[: tokens.index(end)] if end in tokens else tokens


def packed(**tensors: torch.Tensor) -> dict[str, Any]:
    """Tensors as the scripts of this folder read them."""
    return {
        name: {"type": str(x.dtype).removeprefix("torch."), "dims": list(x.shape), "data": x.flatten().tolist()}
        for name, x in tensors.items()
    }


def unpacked(value: dict[str, Any]) -> torch.Tensor:
    return torch.tensor(value["data"]).view(value["dims"])


def read_json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())
