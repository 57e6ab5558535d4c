"""How transformers.js 4.3 calls the tensors of a cache. It makes the first one of names that follow from config.json,
and fills only inputs of these names. A test holds this module against the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Config = Mapping[str, Any]

# Where the config of the language model is inside that of a model that sees or hears.
_INSIDE = {
    "text_config": """chatterbox florence2 gemma3 gemma3n gemma4 glm_ocr granite_speech idefics3 lfm2_vl lighton_ocr
        llava llava_onevision mistral3 paligemma qwen2_5_vl qwen3_5 qwen3_5_moe qwen3_vl qwen3_vl_moe smolvlm ultravox
        voxtral voxtral_realtime""",
    "decoder": "musicgen vision-encoder-decoder",
}
# What the number of layers is called, where layers are all alike.
_LAYERS = {
    "n_layer": "bloom codegen gpt2 gpt_bigcode gptj jais",
    "n_layers": "mpt",
    "num_layers": "donut-swin exaone gpt_neo",
    "num_hidden_layers": """afmoe apertus arcee cohere cohere2 deepseek_v3 ernie4_5 falcon gemma gemma2 gemma3_text
        gemma3n_text glm glm_moe_dsa glm_ocr_text gpt_neox gpt_oss granite helium hrm_text hunyuan_v1_dense llama
        llama4_text llava_qwen2 ministral ministral3 mistral mistral4 mobilellm modernbert-decoder nanochat olmo olmo2
        olmo3 opt phi phi3 phi3_v qwen2 qwen2_5_vl_text qwen2_moe qwen2_vl qwen2_vl_text qwen3 qwen3_moe
        qwen3_vl_moe_text qwen3_vl_text smollm3 solar_open stablelm starcoder2 vaultgemma voxtral_realtime_encoder
        voxtral_realtime_text youtu""",
}
_DECODER_LAYERS = {
    "decoder_layers": """bart blenderbot blenderbot-small florence2_language lite-whisper m2m_100 marian mbart speecht5
        trocr whisper""",
    "decoder_num_hidden_layers": "moonshine",
    "num_decoder_layers": "longt5 mt5 t5",
    "num_hidden_layers": "cohere_asr musicgen_decoder",
}
_OF_TYPE, _LAYERS_OF, _DECODER_LAYERS_OF = (
    {kind: name for name, kinds in table.items() for kind in kinds.split()}
    for table in (_INSIDE, _LAYERS, _DECODER_LAYERS)
)

_KEYS = ("past_key_values.{}.key", "past_key_values.{}.value")
_CONVOLUTIONS = {"conv": ("past_conv.{}",), "full_attention": _KEYS}
_MAMBA = {"mamba": ("past_conv.{}", "past_ssm.{}"), "attention": _KEYS}
_LINEAR = {"linear_attention": ("past_conv.{}", "past_recurrent.{}"), "full_attention": _KEYS}
_THREE_CONVOLUTIONS = ("past_conv.{}.key", "past_conv.{}.value", "past_conv.{}.query", "past_recurrent.{}")
_COMPRESSED = (*_KEYS, "past_compressor.{}.kv", "past_compressor.{}.gate")
# What layers of each kind keep, by the type of the model.
_MIXED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("lfm2", "lfm2_moe"), _CONVOLUTIONS),
    **dict.fromkeys(("falcon_h1", "granitemoehybrid", "nemotron_h"), _MAMBA),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), _LINEAR),
    "olmo_hybrid": {"linear_attention": _THREE_CONVOLUTIONS, "full_attention": _KEYS},
    "deepseek_v4": {
        "sliding_attention": _KEYS,
        "heavily_compressed_attention": _COMPRESSED,
        "compressed_sparse_attention": (*_COMPRESSED, "past_indexer.{}.kv", "past_indexer.{}.gate"),
    },
}
_KINDS = ("layer_types", "layers_block_type")
# Words of transformers 5 for kinds of layers, in those that checkpoints of these models have; it reads both.
_OLDER_WORDS = {"linear_attention": "mamba", "full_attention": "attention"}
# A state that it has another name for.
_ALSO_CALLED = {"past_recurrent.": "past_ssm.", "present_recurrent.": "present_ssm."}


def cache_names(config: Config) -> set[str]:
    """The inputs that it fills with the first cache, for a model of this config.json."""
    kind = config.get("model_type", "")
    if kind in _MIXED:
        return set(_names_of_kinds(config, _MIXED[kind]))
    if kind == "zaya":
        parts = (*_KEYS, "past_key_values.{}.conv_state", "past_key_values.{}.shift_state")
        layers = range(0, config.get("num_hidden_layers") or 0, config.get("cca_time1") or 1)
        return {part.format(i) for i in layers for part in parts}
    inner = config.get(_OF_TYPE.get(kind, ""), config)
    if inner.get("model_type") in _MIXED:
        return cache_names(inner)
    if kind.removesuffix("_text") == "gemma4":  # some of its layers share what others keep
        count = inner.get("num_hidden_layers", 0) - (inner.get("num_kv_shared_layers") or 0)
        return _names(_KEYS, count)
    return _names(*_alike(inner, config))


def _alike(inner: Config, whole: Config) -> tuple[tuple[str, ...], int]:
    """What each layer keeps, and how many there are."""
    kind = inner.get("model_type", "")
    if kind in _DECODER_LAYERS_OF:
        sides = ("encoder", "decoder") if whole.get("is_encoder_decoder") else ()
        parts = tuple(f"past_key_values.{{}}.{side}.{part}" for side in sides for part in ("key", "value"))
        return parts, inner.get(_DECODER_LAYERS_OF[kind]) or 0
    parts = ("past_key_values.{}.key_value",) if whole.get("multi_query", inner.get("multi_query")) else _KEYS
    return parts, inner.get(_LAYERS_OF.get(kind, "")) or 0


def _names(parts: tuple[str, ...], layers: int) -> set[str]:
    return {part.format(i) for i in range(layers) for part in parts}


def _names_of_kinds(config: Config, kept: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    kinds = next((config[name] for name in _KINDS if config.get(name)), None)
    count = config.get("num_hidden_layers") or len(kinds or ())
    for i in range(count):
        # Without kinds, each layer is one of each.
        of_layer = list(kept) if kinds is None else kinds[i : i + 1]
        yield from (part.format(i) for kind in of_layer for part in kept.get(kind, ()))


def readable(config: Config) -> dict[str, Any]:
    """The config with what it looks for where it looks for it, in words that it knows."""
    config, kind = dict(config), config.get("model_type", "")
    count = _LAYERS_OF.get(kind)
    inner = config.get("text_config") or {}
    if count is not None and count not in config and count in inner:
        config[count] = inner[count]
    if _MIXED.get(kind) is _MAMBA:
        for name in _KINDS:
            if config.get(name):
                config[name] = [_OLDER_WORDS.get(word, word) for word in config[name]]
    return config


def own_names(names: list[str], known: set[str]) -> dict[str, str]:
    """How it calls inputs and outputs that have another name in the default layout."""
    renamed = {}
    for name in names:
        for ours, theirs in _ALSO_CALLED.items():
            wanted = name.replace(ours, theirs, 1)
            if name.startswith(ours) and wanted.replace("present", "past", 1) in known:
                renamed[name] = wanted
    return renamed
