"""Speech and sound: waveforms, spectrograms, codecs."""

from __future__ import annotations

import torch

from .row import SIZES, Draw, Inputs, Make, Row, Size
from .seq2seq import BART
from .text import draw_ids

WAVE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "conv_dim": (16, 16, 16),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3),
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_labels": 6,
    "pad_token_id": 0,
}
MELS = 12
BATCHES = (Size(3), Size(4, target=8), Size(2, target=4))


def waves(draw: Draw) -> Inputs:
    return {"input_values": draw.normal(draw.size.batch, draw.size.samples)}


def ends(batch: int, length: int) -> torch.Tensor:
    """A mask under which the first ends after 1/batch of the length, the last at its end.

    Enough of it is left after the convolutions that no model takes it for a mask of ones.
    """
    stops = torch.arange(1, batch + 1) * length // batch
    return (torch.arange(length) < stops[:, None]).to(torch.int64)


def padded_waves(draw: Draw) -> Inputs:
    mask = ends(draw.size.batch, draw.size.samples)
    return {"input_values": draw.normal(*mask.shape) * mask, "attention_mask": mask}


def channels(draw: Draw) -> Inputs:
    """Waves with a channel axis, as the codecs take them."""
    return {"input_values": draw.normal(draw.size.batch, 1, draw.size.samples)}


def frames(draw: Draw) -> Inputs:
    """Spectrograms of `samples / 40` frames, padded on the right."""
    mask = ends(draw.size.batch, draw.size.samples // 40)
    return {"input_features": draw.normal(*mask.shape, MELS), "attention_mask": mask}


def with_decoder_ids(make: Make) -> Make:
    return lambda draw: {**make(draw), "decoder_input_ids": draw_ids(draw, draw.size.target)}


def mel_window(draw: Draw) -> Inputs:
    """One window of a length that the model fixes: twice its source positions."""
    length = 2 * draw.config.max_source_positions
    return {"input_features": draw.normal(draw.size.batch, MELS, length)}


def wave(name: str, model_class: str, make: Make = padded_waves, **overrides) -> Row:
    return Row(name, "audio", model_class, {**WAVE, **overrides}, make)


def audio(name: str, model_class: str, make: Make, sizes=SIZES, **config) -> Row:
    return Row(name, "audio", model_class, config, make, sizes)


ROWS = [
    wave("wav2vec2", "Wav2Vec2ForCTC", feat_extract_norm="layer", do_stable_layer_norm=True),
    wave("wav2vec2 with group norm", "Wav2Vec2Model", waves),
    wave("hubert", "HubertModel", waves),
    wave("wavlm", "WavLMForSequenceClassification", feat_extract_norm="layer"),
    wave("unispeech", "UniSpeechModel", waves),
    wave("unispeech_sat", "UniSpeechSatModel", waves),
    wave("data2vec_audio", "Data2VecAudioModel", num_conv_pos_embeddings=2,
         conv_pos_kernel_size=5),
    wave("wav2vec2_conformer", "Wav2Vec2ConformerModel", conv_depthwise_kernel_size=5,
         position_embeddings_type="relative"),
    wave("sew", "SEWForCTC", waves, squeeze_factor=2),
    wave("sew_d", "SEWDModel", waves, squeeze_factor=2, position_buckets=8,
         max_position_embeddings=64, feature_layer_norm_eps=1e-5),
    wave("speecht5", "SpeechT5ForSpeechToText", with_decoder_ids(waves), encoder_layers=2,
         decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=40, decoder_ffn_dim=40),
    audio("wav2vec2_bert", "Wav2Vec2BertModel", frames, hidden_size=32, num_hidden_layers=2,
          num_attention_heads=4, intermediate_size=40, feature_projection_input_dim=MELS,
          conv_depthwise_kernel_size=5, position_embeddings_type="relative_key",
          left_max_position_embeddings=8, right_max_position_embeddings=4),
    audio("whisper", "WhisperForConditionalGeneration", with_decoder_ids(mel_window), BATCHES,
          **{**BART, "pad_token_id": 0}, num_mel_bins=MELS, max_source_positions=15,
          max_target_positions=40),
    audio("speech_to_text", "Speech2TextForConditionalGeneration", with_decoder_ids(frames),
          **{**BART, "pad_token_id": 1}, input_feat_per_channel=MELS, input_channels=1,
          conv_channels=16, num_conv_layers=2, conv_kernel_sizes=[5, 5],
          max_source_positions=64, max_target_positions=40),
    audio("moonshine", "MoonshineForConditionalGeneration", with_decoder_ids(padded_waves),
          (Size(3, samples=4000), Size(4, samples=5203, target=8), Size(2, samples=3707, target=4)),
          vocab_size=99, hidden_size=32, intermediate_size=40, encoder_num_hidden_layers=2,
          decoder_num_hidden_layers=2, encoder_num_attention_heads=4,
          decoder_num_attention_heads=4),
    audio("audio_spectrogram_transformer", "ASTForAudioClassification",
          lambda draw: {"input_values": draw.normal(draw.size.batch, 30, 16)}, BATCHES,
          hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
          patch_size=4, frequency_stride=3, time_stride=3, max_length=30, num_mel_bins=16,
          num_labels=6),
    audio("parakeet_encoder", "ParakeetEncoder", frames, hidden_size=32, num_hidden_layers=2,
          num_attention_heads=4, intermediate_size=40, conv_kernel_size=5, subsampling_factor=4,
          subsampling_conv_channels=8, num_mel_bins=MELS, max_position_embeddings=64),
    audio("encodec", "EncodecModel", channels, hidden_size=32, num_filters=4,
          num_residual_layers=1, upsampling_ratios=[8, 4], num_lstm_layers=1, codebook_size=64,
          audio_channels=1),
    audio("mimi", "MimiModel", channels, hidden_size=32, num_filters=4, num_residual_layers=1,
          upsampling_ratios=[8, 4], codebook_size=64, codebook_dim=16, upsample_groups=8,
          vector_quantization_hidden_dimension=16, num_hidden_layers=2, num_attention_heads=4,
          num_key_value_heads=4, intermediate_size=40, sliding_window=4, num_quantizers=4,
          num_semantic_quantizers=1, use_cache=False),
    audio("dac", "DacModel", channels, encoder_hidden_size=8, decoder_hidden_size=16,
          downsampling_ratios=[2, 4], upsampling_ratios=[4, 2], n_codebooks=3, codebook_size=64,
          codebook_dim=4),
    audio("univnet", "UnivNetModel",
          lambda draw: {"input_features": draw.normal(draw.size.batch, draw.size.seq, MELS),
                        "noise_sequence": draw.normal(draw.size.batch, draw.size.seq, 8)},
          model_in_channels=8, model_hidden_channels=8, num_mel_bins=MELS,
          kernel_predictor_hidden_channels=8),
]
