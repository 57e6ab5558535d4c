"""What onnxruntime-genai has to know of Whisper: two graphs, and how to make features of a sound file."""

from __future__ import annotations

from typing import Any

from .layout import Graph, Layout

ENCODER, DECODER = "encoder_model", "decoder_model_merged"
PROCESSOR = "audio_processor_config.json"

_OWN = r"past_key_values\.\d+\.decoder\.(?:key|value)"


def fits(layout: Layout) -> bool:
    """Whether the folder has the parts that the client runs, and not those of the default layout."""
    graphs = layout.graphs
    return set(graphs) == {ENCODER, DECODER} and "encoder_hidden_states" not in graphs[DECODER].inputs


def sections(layout: Layout, session_options: dict[str, Any]) -> dict[str, Any]:
    encoder, decoder = layout.graphs[ENCODER], layout.graphs[DECODER]
    return {
        "encoder": {
            "filename": encoder.file.name,
            "session_options": session_options,
            **_sizes(decoder),
            "hidden_size": encoder.outputs["last_hidden_state"].axes[-1],
            "inputs": {"audio_features": "input_features"},
            "outputs": {"encoder_hidden_states": "last_hidden_state"} | _cache("cross_present", "present", "encoder"),
        },
        "decoder": {
            "filename": decoder.file.name,
            "session_options": session_options,
            **_sizes(decoder),
            "hidden_size": encoder.outputs["last_hidden_state"].axes[-1],
            "inputs": {
                "input_ids": "input_ids",
                **_cache("past", "past_key_values", "decoder"),
                **_cache("cross_past", "past_key_values", "encoder"),
            },
            "outputs": {"logits": "logits", **_cache("present", "present", "decoder")},
        },
    }


def _sizes(decoder: Graph) -> dict[str, Any]:
    own = decoder.inputs_like(_OWN)
    _, heads, _, width = own[0].axes
    return {
        "head_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "num_hidden_layers": len(own) // 2,
    }


def _cache(setting: str, ours: str, side: str) -> dict[str, str]:
    return {f"{setting}_{kind}_names": f"{ours}.%d.{side}.{kind}" for kind in ("key", "value")}


def write_processor(layout: Layout) -> list[str]:
    """By the settings of the checkpoint's own feature extractor."""
    given = layout.preprocessor()
    if not given:
        return ["there is no preprocessor_config.json: the client takes features, but no sound files"]
    lengths = {"n_fft": given["n_fft"], "hop_length": given["hop_length"]}
    steps = [
        {"name": "audio_decoder", "type": "AudioDecoder"},
        {"name": "STFT", "type": "STFTNorm", "attrs": {**lengths, "frame_length": given["n_fft"]}},
        {
            "name": "log_mel_spectrogram",
            "type": "LogMelSpectrum",
            "attrs": {**lengths, "chunk_size": given["chunk_length"], "n_mel": given["feature_size"]},
        },
    ]
    layout.write_json(PROCESSOR, {"feature_extraction": {"sequence": [{"operation": step} for step in steps]}})
    return []
