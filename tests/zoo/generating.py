"""A generative class of the zoo with its model, its exported parts and the greedy tokens of eager PyTorch: the tests of
every way to keep the cache share them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from transformers.cache_utils import Cache

import modelport
from modelport.generation.components import Components
from modelport.generation.prompts import for_generate

from . import ROWS
from .row import Inputs, Row
from .sample import is_in_sample

TOKENS = {1: 12, 2: 32}  # by the size of the batch; windows of the tiny models are shorter
_BATCHED = ("input_ids", "input_features", "input_values", "pixel_values")
# Classes whose cache onnxruntime's own operators keep in place; only ever longer. The others have an encoder, read the
# prompt by a graph of its own, or attend in a way of their own; `inspect` says which.
IN_PLACE = (
    "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
    "MistralForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM",
    "Gemma3ForCausalLM", "Gemma3nForCausalLM", "PhiForCausalLM",
    "Phi3ForCausalLM", "GPTNeoXForCausalLM", "OPTForCausalLM",
    "FalconForCausalLM", "OlmoForCausalLM", "Olmo2ForCausalLM",
    "Olmo3ForCausalLM", "Starcoder2ForCausalLM", "CohereForCausalLM",
    "Cohere2ForCausalLM", "StableLmForCausalLM", "GraniteForCausalLM",
    "GlmForCausalLM", "Glm4ForCausalLM", "SmolLM3ForCausalLM",
    "HeliumForCausalLM", "NemotronForCausalLM", "PersimmonForCausalLM",
    "Exaone4ForCausalLM", "Ernie4_5ForCausalLM", "HunYuanDenseV1ForCausalLM",
    "SeedOssForCausalLM", "ArceeForCausalLM", "ApertusForCausalLM",
    "BitNetForCausalLM", "ModernBertDecoderForCausalLM", "BioGptForCausalLM",
    "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "CTRLLMHeadModel",
    "MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM",
    "OlmoeForCausalLM", "GptOssForCausalLM", "Glm4MoeForCausalLM",
    "Ernie4_5_MoeForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM",
    "PhimoeForCausalLM", "Dots1ForCausalLM", "HunYuanMoEV1ForCausalLM",
    "FlexOlmoForCausalLM", "LlavaForConditionalGeneration", "VipLlavaForConditionalGeneration",
    "Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration", "InternVLForConditionalGeneration",
    "Blip2ForConditionalGeneration", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration", "GPTJForCausalLM", "CodeGenForCausalLM",
    # With the model's own mask: states beside keys and values, blocks of text or pictures, branches on data.
    "Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "BambaForCausalLM",
    "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM", "Qwen3NextForCausalLM",
    "Llama4ForCausalLM", "DbrxForCausalLM", "PaliGemmaForConditionalGeneration",
    "Gemma3ForConditionalGeneration",
    # Scores that distances, tables or several masks are added to.
    "BloomForCausalLM", "XGLMForCausalLM", "GPTNeoForCausalLM",
)  # fmt: skip
# One class for each way in which what generates is made.
KINDS = {
    "XLMWithLMHeadModel": "what generate adds to the tokens is made in the program",
    "MptForCausalLM": "biases of positions that are as long as the cache",
    "GPTNeoForCausalLM": "masks of its own from the number of keys",
    "DiffLlamaForCausalLM": "values of the cache in two halves",
    "MiniCPM3ForCausalLM": "keys and values made of what is cached of them",
    "DeepseekV2ForCausalLM": "complex numbers",
    "Llama4ForCausalLM": "complex numbers, and layers that look back a part of the text",
    "DeepseekV3ForCausalLM": "keys and values made of what is cached, and experts",
    "JetMoeForCausalLM": "keys repeated for their heads",
    "DbrxForCausalLM": "one condition on data in several layers",
    "JambaForCausalLM": "keys and states in one cache",
    "RwkvForCausalLM": "a state that is no cache of transformers'",
    "LEDForConditionalGeneration": "masks of its own beside an encoder",
    "NllbMoeForConditionalGeneration": "positions from what is cached",
    "FSMTForConditionalGeneration": "no mask for a token after others",
    "Gemma3ForConditionalGeneration": "tokens of a picture that attend to each other",
    "Blip2ForConditionalGeneration": "embeddings that generate hands to a model inside",
    "Qwen2VLForConditionalGeneration": "positions in three directions",
}


def _generates(row: Row) -> bool:
    """Rows with a cache show the same class again, at another call."""
    cls = getattr(transformers, row.model_class)
    return cls.can_generate() and not any(isinstance(value, Cache) for value in row.inputs(0).values())


def first_rows_of(is_wanted: Callable[[str], bool]) -> list[Row]:
    """One row for each generative class that is wanted; first those of IN_PLACE, see `with_rows`. Others are not even
    imported."""
    found: dict[str, Row] = {}
    for row in ROWS:
        if row.model_class not in found and is_wanted(row.model_class) and _generates(row):
            found[row.model_class] = row
    return sorted(found.values(), key=lambda row: row.model_class not in IN_PLACE)


@functools.cache
def first_rows() -> list[Row]:
    return first_rows_of(lambda _: True)


@functools.cache
def rows_in_sample() -> list[Row]:
    return first_rows_of(lambda name: is_in_sample(name, always=KINDS))


def prompt(model: Any, inputs: Inputs, batch: int) -> Inputs:
    """The first rows of the inputs; a decoder of text gets one that is padded on the left."""
    given = for_generate(inputs)
    rows = next(value.shape[0] for name, value in given.items() if name in _BATCHED)
    if not modelport.is_multimodal(model):
        is_batched = {n: isinstance(v, torch.Tensor) and v.dim() and v.shape[0] == rows for n, v in given.items()}
        given = {name: value[:batch] if is_batched[name] else value for name, value in given.items()}
    if "input_ids" in given and not model.config.is_encoder_decoder and not modelport.is_multimodal(model):
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        if batch > 1:
            given["attention_mask"][0, :2] = 0
    return given


class Generating:
    def __init__(self, row: Row):
        self.row = row
        self._wanted: dict[int, list[list[int]]] = {}

    @functools.cached_property
    def built(self) -> tuple[Any, Inputs]:
        return self.row.build()

    @functools.cached_property
    def parts(self) -> Components:
        model, inputs = self.built
        return modelport.OnnxExporter().export_for_generation(model, prompt(model, inputs, 2), modelport.OnnxConfig())

    def assert_same_tokens(self, loaded: Any, at_most: int = max(TOKENS.values())) -> None:
        """What was loaded tells what eager PyTorch tells, for one text and for two."""
        model, inputs = self.built
        for batch, tokens in TOKENS.items():
            given = prompt(model, inputs, batch)
            if batch not in self._wanted:
                self._wanted[batch] = _greedy(model, given, tokens)
            left_out = max(0, tokens - at_most)  # of the end: what comes before does not depend on it
            want = [told[: len(told) - left_out] for told in self._wanted[batch]]
            assert _greedy(loaded, given, tokens - left_out) == want


def _greedy(model: Any, given: Inputs, tokens: int) -> list[list[int]]:
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    return model.generate(**copy.deepcopy(given), **settings).tolist()


@functools.lru_cache(maxsize=1)
def _generating(model_class: str) -> Generating:
    return Generating(next(row for row in rows_in_sample() if row.model_class == model_class))


def with_rows(rows: list[Row]) -> Any:
    """pytest runs all tests of a row one after the other, with one model, if it has the same place in every list."""
    assert rows == rows_in_sample()[: len(rows)]
    return pytest.mark.parametrize("generating", rows, ids=lambda row: row.model_class, indirect=True, scope="session")


@pytest.fixture(scope="session")
def generating(request: pytest.FixtureRequest) -> Generating:
    return _generating(request.param.model_class)
