"""Forecasting."""

from __future__ import annotations

import torch

from .row import Draw, Inputs, Row, Size
from .text import padding

BATCHES = (Size(3), Size(4), Size(2))

SERIES = {
    "prediction_length": 8,
    "context_length": 14,
    "lags_sequence": [1, 2, 3, 4, 5],
    "num_time_features": 4,
    "num_static_categorical_features": 1,
    "num_static_real_features": 1,
    "cardinality": [19],
    "embedding_dimension": [5],
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "scaling": "std",
}


def series(draw: Draw) -> Inputs:
    """One series a row, with the features of its dates and of the series itself."""
    config, batch = draw.config, draw.size.batch
    past = config.context_length + max(config.lags_sequence)
    return {
        "past_values": draw.normal(batch, past),
        "past_time_features": draw.normal(batch, past, config.num_time_features),
        "past_observed_mask": draw.uniform(batch, past) > 0.2,
        "static_categorical_features": draw.integers(0, config.cardinality[0], batch, 1),
        "static_real_features": draw.normal(batch, 1),
        "future_values": draw.normal(batch, config.prediction_length),
        "future_time_features": draw.normal(
            batch, config.prediction_length, config.num_time_features
        ),
    }


def patches(draw: Draw) -> Inputs:
    """Several channels, cut into patches by the model."""
    config = draw.config
    return {
        "past_values": draw.normal(
            draw.size.batch, config.context_length, config.num_input_channels
        )
    }


def forecaster(name: str, model_class: str, **overrides) -> Row:
    return Row(name, "time series", model_class, {**SERIES, **overrides}, series, BATCHES)


ROWS = [
    forecaster("time_series_transformer", "TimeSeriesTransformerModel"),
    # With so large a factor each query is looked at, so the draw of keys changes no value.
    forecaster("informer", "InformerModel", sampling_factor=10, distil=False),
    forecaster("autoformer", "AutoformerModel", label_length=10, moving_average=5),
    Row("patchtst", "time series", "PatchTSTForPrediction",
        {"prediction_length": 8, "context_length": 30, "patch_length": 6, "patch_stride": 4,
         "num_input_channels": 4, "d_model": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "ffn_dim": 40, "random_mask_ratio": 0.0,
         "loss": "mse"},
        patches, BATCHES),
    Row("patchtsmixer", "time series", "PatchTSMixerForPrediction",
        {"prediction_length": 8, "context_length": 30, "patch_length": 6, "patch_stride": 4,
         "num_input_channels": 4, "d_model": 16, "num_layers": 2, "mode": "mix_channel",
         "gated_attn": True, "scaling": "std", "loss": "mse"},
        patches, BATCHES),
    # The model repeats a Python list once a row of the batch: only the length is free.
    Row("timesfm", "time series", "TimesFmModel",
        {"patch_length": 8, "context_length": 40, "horizon_length": 10, "hidden_size": 32,
         "intermediate_size": 40, "head_dim": 8, "num_hidden_layers": 2,
         "num_attention_heads": 4, "freq_size": 3, "quantiles": [0.1, 0.5, 0.9]},
        lambda draw: {"past_values": draw.normal(draw.size.batch, 8 * draw.size.seq).cumsum(1),
                      "past_values_padding": padding(draw.size.batch, 8 * draw.size.seq, left=True)
                      .logical_not().to(torch.float32),
                      "freq": draw.integers(0, 3, draw.size.batch, 1)},
        (Size(3, seq=5), Size(3, seq=7), Size(3, seq=4))),
    Row("timesfm2_5", "time series", "TimesFm2_5Model",
        {"patch_length": 8, "context_length": 40, "horizon_length": 8, "hidden_size": 32,
         "intermediate_size": 40, "head_dim": 8, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 4, "output_quantile_len": 16,
         "quantiles": [0.1, 0.5, 0.9]},
        lambda draw: {"past_values": draw.normal(draw.size.batch, 40).cumsum(1)},
        BATCHES),
]
