"""onnxruntime-genai: genai_config.json beside the graphs, with the names they have and the sizes of the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.context_length import context_length
from . import genai_whisper as whisper
from .layout import Graph, Layout, named_class, refusal, text_config

CLIENT = "onnxruntime-genai"

# Types that version 0.18 runs as one decoder with a growing cache; gpt2 and lfm2 have caches of another form there.
MODEL_TYPES = (
    "chatglm", "decoder", "ernie4_5", "gemma", "gemma2", "gemma3_text", "gemma4_text", "gptoss", "granite",
    "granitemoehybrid", "hunyuandensev1", "internlm2", "llama", "mistral", "nemotron", "olmo", "phi", "phi3",
    "phi3small", "phimoe", "qwen2", "qwen3", "qwen3_5_moe_text", "qwen3_5_text", "smollm3",
)  # fmt: skip
_ANY_DECODER = "decoder"
_WHISPER = "whisper"
_LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel")

_INPUTS = ("input_ids", "attention_mask", "position_ids")
_CACHE = r"past_key_values\.\d+\.(?:key|value)"
ROOM = "cache_length"  # the axis of a cache that may be longer than the tokens in it
# A pattern of memory is made for each set of sizes, and of a text every token has sizes of its own.
_SESSION = {"log_id": CLIENT, "enable_mem_pattern": False, "provider_options": []}
_LONG = 32768  # tokens, for models without a limit
_SEARCH: dict[str, Any] = {
    "diversity_penalty": 0.0,
    "do_sample": False,
    "early_stopping": True,
    "length_penalty": 1.0,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "num_beams": 1,
    "num_return_sequences": 1,
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
}
# Settings of generation that change the tokens in transformers and that the client does not have.
_NOT_THERE = ("suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "sequence_bias", "min_p", "typical_p")


def refuse_unknown(config: Any, model_class: str | None = None) -> None:
    name = named_class(config, model_class)
    if config.model_type == _WHISPER and name.endswith("ForConditionalGeneration"):
        return
    from . import transformers_js

    other = ["--for transformers.js"] if transformers_js.knows(config, model_class) else []
    if getattr(config, "is_encoder_decoder", False):
        raise refusal(CLIENT, config, name, "of encoders with a decoder it knows Whisper only", *other)
    if not name.endswith(_LANGUAGE_MODELS):
        raise refusal(CLIENT, config, name, "it takes language models of one graph (…ForCausalLM), and Whisper", *other)
    if _keeps_states(name):
        raise refusal(CLIENT, config, name, "it gives keys and values, and no states of another kind", *other)


def _keeps_states(name: str) -> bool:
    """Whether transformers says that a model of this class has more in its cache than keys and values."""
    import transformers

    return bool(getattr(getattr(transformers, name, None), "_is_stateful", False))


def part_names(model: Any, names: list[str]) -> dict[str, str]:
    return {}  # those of the default layout; genai_config.json says what is what


def rewrite_parts(layout: Layout, model: Any, inputs: Mapping[str, Any], config: Any = None) -> None:
    if layout.config.model_type != _WHISPER:
        return
    from .genai_parts import whisper_parts
    from .own_parts import write_parts

    write_parts(layout, whisper_parts(model, inputs), config)


def write(layout: Layout) -> list[str]:
    refuse_unknown(layout.config, layout.model_class)
    notes = []
    if layout.config.model_type == _WHISPER:
        model = _whisper(layout)
        notes += whisper.write_processor(layout)
    else:
        model = _language_model(layout)
    layout.write_json("genai_config.json", {"model": model, "search": _search(layout)})
    if not layout.has("tokenizer.json", "tokenizer.model", "vocab.json"):
        notes.append(f"there is no tokenizer: {CLIENT} takes token ids, but no text")
    unused = [name for name in _NOT_THERE if getattr(layout.generation_config, name, None)]
    if unused:
        notes.append(f"{CLIENT} does not have these settings of generation_config.json: {', '.join(unused)}")
    return notes


def _language_model(layout: Layout) -> dict[str, Any]:
    graph = layout.graphs.get("model")
    if graph is None:
        found = ", ".join(f"{name}.onnx" for name in layout.graphs) or "no .onnx file"
        raise layout.refusal(CLIENT, f"it takes one graph, model.onnx, and there is {found}")
    _refuse_other_inputs(layout, graph)
    kind = layout.config.model_type
    kind = kind if kind in MODEL_TYPES else _ANY_DECODER
    return {"type": kind, **_tokens(layout, graph), "decoder": _decoder(text_config(layout.config), graph)}


def _whisper(layout: Layout) -> dict[str, Any]:
    if not whisper.fits(layout):
        raise layout.refusal(
            CLIENT,
            "there its decoder takes keys and values that its encoder gives",
            "modelport export onnx MODEL OUT --for genai",
        )
    sections = whisper.sections(layout, _SESSION)
    start = {"decoder_start_token_id": layout.setting("decoder_start_token_id")}
    return {"type": _WHISPER, **_tokens(layout, layout.graphs[whisper.DECODER]), **start, **sections}


def _refuse_other_inputs(layout: Layout, graph: Graph) -> None:
    caches = graph.inputs_like(_CACHE)
    other = [name for name in graph.inputs if name not in _INPUTS and graph.inputs[name] not in caches]
    if other:
        shown = ", ".join(other[:4]) + (", …" if len(other) > 4 else "")
        raise layout.refusal(CLIENT, f"it gives tokens, a mask, positions, keys and values, but not {shown}")
    if not caches:
        raise layout.refusal(CLIENT, "the graph takes no past")
    positions = graph.inputs.get("position_ids")
    if positions is not None and len(positions.axes) != 2:
        raise layout.refusal(CLIENT, f"its positions have {len(positions.axes)} axes, and are given with two")


def _tokens(layout: Layout, graph: Graph) -> dict[str, Any]:
    eos = layout.setting("eos_token_id", [])
    eos = eos if isinstance(eos, list) else [eos]
    return {
        "bos_token_id": layout.setting("bos_token_id", eos[0] if eos else 0),
        "eos_token_id": eos,
        # Rows of a batch are padded with it at their end; -1 is no token, for models that have none to spare.
        "pad_token_id": layout.setting("pad_token_id", eos[0] if eos else -1),
        "context_length": _context_length(layout),
        "vocab_size": graph.outputs["logits"].axes[-1],
    }


def _decoder(config: Any, graph: Graph) -> dict[str, Any]:
    caches = graph.inputs_like(_CACHE)
    _, heads, _, width = caches[0].axes
    return {
        "filename": graph.file.name,
        "session_options": _SESSION,
        "head_size": width,
        "hidden_size": config.hidden_size,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": heads,
        "num_hidden_layers": len(caches) // 2,
        "inputs": {
            **{name: name for name in _INPUTS if name in graph.inputs},
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }


def _search(layout: Layout) -> dict[str, Any]:
    given = {name: getattr(layout.generation_config, name, None) for name in _SEARCH}
    chosen = _SEARCH | {name: value for name, value in given.items() if value is not None}
    chosen["early_stopping"] = bool(chosen["early_stopping"])  # "never" is a value that only transformers has
    # A graph of standard operators appends to the cache; one of onnxruntime's own writes into a buffer of full length.
    graph = layout.graphs.get("model")
    shared = graph is not None and any(ROOM in port.axes for port in graph.inputs_like(_CACHE))
    return {**chosen, "max_length": _context_length(layout), "past_present_share_buffer": shared}


def _context_length(layout: Layout) -> int:
    return context_length(layout.config) or _LONG
