"""Generative classes of the zoo whose export does not generate the tokens of PyTorch yet, each with its reason."""

EXPECTED_FAILURES: dict[str, str] = {
    "RwkvForCausalLM": "its state is a list of tensors that is no cache, and without it the model pins the length",
    "xLSTMForCausalLM": "its cache is no cache of transformers, and without it the model pins the length",
    "RecurrentGemmaForCausalLM": "it keeps its states in its modules",
    "FSMTForConditionalGeneration": "with a cache it reads only the last token, whatever it is given",
    "ProphetNetForConditionalGeneration": "with a cache it takes one token at a time",
    "XLNetLMHeadModel": "it keeps hidden states of layers, and reads two tokens again at each step",
    "Speech2TextForConditionalGeneration": "its table of positions grows with the text",
    "MoonshineForConditionalGeneration": "a padded batch gives other tokens after a while; the reason is not known yet",
}
