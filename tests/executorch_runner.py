"""ExecuTorch's own runner for language models, in a process of its own: `texts` gives what it generates."""

from __future__ import annotations

import json
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

LETTERS = string.ascii_letters + string.digits  # a token each
BOS, EOS = 0, 1
VOCABULARY = len(LETTERS) + 2


KERNELS = ("extension/llm/custom_ops/libcustom_ops_aot_lib.so", "kernels/quantized/libquantized_ops_aot_lib.so")
SPECIAL = {"<s>": BOS, "</s>": EOS}
Prompt = str | list[Any]  # words; among pictures, which are nested lists of numbers, for the runner of those


def ids_of(text: str) -> list[int]:
    """The tokens of a text; that it is none of the runner's errors is a part of it."""
    pieces = re.findall(r"</?s>|[a-zA-Z0-9]", text)
    assert "".join(pieces) == text
    return [SPECIAL[piece] if piece in SPECIAL else LETTERS.index(piece) + 2 for piece in pieces]


def write_tokenizer(path: Path) -> Path:
    """A token a letter, in the form that the runner reads."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = SPECIAL | {letter: i + 2 for i, letter in enumerate(LETTERS)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    tokenizer.save(str(path))
    return path


def texts(runs: dict[str, tuple[Path, Prompt, int]], tokenizer: Path) -> dict[str, str]:
    """What the runner says to each program with a prompt, and how many tokens it may; or why it fails."""
    asked = {name: [str(program), prompt, tokens] for name, (program, prompt, tokens) in runs.items()}
    command = [sys.executable, str(Path(__file__).resolve()), str(tokenizer)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, done.stderr[-2000:]
    return json.loads(found[-1])


def _serve() -> None:
    import executorch
    import torch
    from executorch.extension.llm import runner

    # It has the runtime's own kernels; those for language models and quantized ones have libraries of their own.
    for library in (
        "extension/llm/custom_ops/libcustom_ops_aot_lib.so",
        "kernels/quantized/libquantized_ops_aot_lib.so",
    ):
        torch.ops.load_library(str(Path(executorch.__path__[0]) / library))

    said = {}
    for name, (program, prompt, tokens) in json.load(sys.stdin).items():
        words: list[str] = []
        settings = runner.GenerationConfig(echo=False, max_new_tokens=tokens, temperature=0.0)
        try:
            if isinstance(prompt, str):
                runner.TextLLMRunner(program, sys.argv[1]).generate(prompt, settings, words.append)
            else:
                pieces = [
                    runner.make_text_input(piece)
                    if isinstance(piece, str)
                    else runner.make_image_input(torch.tensor(piece))
                    for piece in prompt
                ]
                runner.MultimodalRunner(program, sys.argv[1]).generate(pieces, settings, words.append)
            said[name] = "".join(words)
        except RuntimeError as error:
            said[name] = f"fails: {error}"
    print("\n" + json.dumps(said), flush=True)


if __name__ == "__main__":
    _serve()
