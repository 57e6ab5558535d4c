"""How many tokens a model reads, whichever name its config has for them."""

from __future__ import annotations

import pytest
import transformers

from modelport.models.context_length import context_length

_CONFIGS = {
    "llama": transformers.LlamaConfig(max_position_embeddings=96),
    "gpt2": transformers.GPT2Config(n_positions=96),
    "mpt": transformers.MptConfig(max_seq_len=96),
    "whisper": transformers.WhisperConfig(max_target_positions=96),
    "led": transformers.LEDConfig(max_decoder_position_embeddings=96),
    "llava": transformers.LlavaConfig(text_config=transformers.LlamaConfig(max_position_embeddings=96)),
}


@pytest.mark.parametrize("name", _CONFIGS)
def test_a_config_and_the_dict_of_its_file_say_the_same(name):
    config = _CONFIGS[name]
    assert context_length(config) == context_length(config.to_dict()) == 96


def test_an_encoder_has_a_length_of_its_own():
    config = transformers.LEDConfig(max_encoder_position_embeddings=64, max_decoder_position_embeddings=96)
    assert (context_length(config, encoder=True), context_length(config)) == (64, 96)


def test_positions_that_have_no_end_are_no_limit():
    trained_on = transformers.T5Config(n_positions=512)
    assert context_length(trained_on) is context_length(trained_on.to_dict()) is None
    assert context_length(transformers.BloomConfig()) is None


def test_where_nothing_is_said_or_several_texts_are_there_is_no_length():
    two = transformers.PreTrainedConfig()
    two.text_config, two.decoder = transformers.LlamaConfig(), transformers.GPT2Config()
    assert context_length(None) is context_length(transformers.ViTConfig()) is context_length(two) is None
