#!/usr/bin/env python3
"""Trains the demo's language model from nothing and writes its folder, examples/teller.

Fetches the text (see teller_text.py), makes a tokenizer, trains two larger teachers, and has the small model learn from
the books and from what the teachers expect of them. A GPU takes some ten minutes, a CPU days; `--small --minutes 40` is
for a CPU."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from teller_text import split
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

ROOT = Path(__file__).resolve().parent.parent
END = "<|endoftext|>"  # also the padding; token 0
VOCABULARY = 4096
WARM_UP = 0.05  # share of the training
REPORTS = 5
WEIGHT_DECAY = 0.1
TEACHERS_SHARE = 0.75  # of the loss; the rest is the books' own next token


@dataclass(frozen=True)
class Shape:
    context: int
    width: int
    layers: int
    inner: int
    heads: int
    key_heads: int


@dataclass(frozen=True)
class Lesson:
    """How a model is trained. `windows` pieces of text, as long as its context, make one step."""

    epochs: float
    rate: float
    dropout: float
    windows: int


TELLER = Shape(context=512, width=256, layers=5, inner=736, heads=4, key_heads=2)
TEACHER = Shape(context=512, width=384, layers=8, inner=1024, heads=6, key_heads=3)
SMALL = Shape(context=256, width=192, layers=4, inner=512, heads=3, key_heads=1)
ALONE = Lesson(epochs=30, rate=3e-3, dropout=0.25, windows=32)
TAUGHT = Lesson(epochs=40, rate=3e-3, dropout=0.1, windows=32)
TEACHING = Lesson(epochs=25, rate=2e-3, dropout=0.3, windows=32)
# For a CPU: time runs out long before the books are known by heart, so small steps and no dropout.
QUICK = Lesson(epochs=10, rate=3e-3, dropout=0.0, windows=4)


def train_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Byte-level BPE, split as GPT-2's: every client knows that one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((line for text in texts for line in text.splitlines(keepends=True)), trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> torch.Tensor:
    """All texts in a row, each followed by the end token."""
    tokens: list[int] = []
    for text in texts:
        for line in tokenizer.encode_batch(text.splitlines(keepends=True)):
            tokens += line.ids
        tokens.append(tokenizer.token_to_id(END))
    return torch.tensor(tokens)


def build(shape: Shape, seed: int) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        intermediate_size=shape.inner,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        head_dim=64,
        max_position_embeddings=shape.context,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        dtype="float32",
    )
    return Qwen3ForCausalLM(config)


def add_dropout(model: Qwen3ForCausalLM, rate: float) -> list[torch.utils.hooks.RemovableHandle]:
    """Dropout on what each block adds to the residual stream: the architecture itself has it on attention only."""

    def drop(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
        return F.dropout(output, rate, module.training)

    blocks = [part for layer in model.model.layers for part in (layer.self_attn.o_proj, layer.mlp.down_proj)]
    return [part.register_forward_hook(drop) for part in (model.model.embed_tokens, *blocks)]


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def predict(model: Qwen3ForCausalLM, tokens: torch.Tensor) -> torch.Tensor:
    """Logits of shape [positions, vocabulary]."""
    with mixed_precision(tokens.device):
        logits = model(input_ids=tokens, use_cache=False).logits
    return logits.float().flatten(0, 1)


def loss_of(model: Qwen3ForCausalLM, window: torch.Tensor, teachers: Sequence[Qwen3ForCausalLM]) -> torch.Tensor:
    tokens, following = window[:, :-1], window[:, 1:].flatten()
    logits = predict(model, tokens)
    loss = F.cross_entropy(logits, following)
    if not teachers:
        return loss
    with torch.no_grad():
        expected = torch.stack([predict(teacher, tokens).softmax(-1) for teacher in teachers]).mean(0)
    return (1 - TEACHERS_SHARE) * loss + TEACHERS_SHARE * F.cross_entropy(logits, expected)


@torch.no_grad()
def held_out_loss(model: Qwen3ForCausalLM, tokens: torch.Tensor) -> float:
    """Nats a token, over windows that do not overlap."""
    was_training = model.training
    model.eval()
    context, total = model.config.max_position_embeddings, 0.0
    for start in range(0, len(tokens) - 1, context):
        window = tokens[None, start : start + context + 1]
        total += F.cross_entropy(predict(model, window[:, :-1]), window[0, 1:], reduction="sum").item()
    model.train(was_training)
    return total / (len(tokens) - 1)


def make_optimizer(model: Qwen3ForCausalLM) -> torch.optim.AdamW:
    """Norms do not decay."""
    groups = [
        {"params": [weight for weight in model.parameters() if weight.ndim > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [weight for weight in model.parameters() if weight.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95))


def share_of_rate(progress: float) -> float:
    """A short way up, and a cosine down to nothing."""
    if progress < WARM_UP:
        return (progress + 0.001) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


@dataclass(frozen=True)
class Course:
    """What every model learns from and is measured on, where, and how long at most."""

    books: torch.Tensor
    held_out: torch.Tensor
    device: torch.device
    seconds: float

    def train(
        self, name: str, model: Qwen3ForCausalLM, lesson: Lesson, teachers: Sequence[Qwen3ForCausalLM] = ()
    ) -> None:
        model.to(self.device).train()
        handles = add_dropout(model, lesson.dropout)
        optimizer = make_optimizer(model)
        context = model.config.max_position_embeddings
        steps = max(1, int(lesson.epochs * len(self.books) / (lesson.windows * context)))
        begun, step, progress = time.monotonic(), 0, 0.0
        while progress < 1:
            for group in optimizer.param_groups:
                group["lr"] = lesson.rate * share_of_rate(progress)
            # Drawn on the CPU: the same windows on every device.
            starts = torch.randint(len(self.books) - context, (lesson.windows, 1))
            window = self.books[starts + torch.arange(context + 1)]
            loss = loss_of(model, window.to(self.device), teachers)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step, before = step + 1, progress
            progress = min(1.0, max(step / steps, (time.monotonic() - begun) / self.seconds))
            if int(progress * REPORTS) > int(before * REPORTS):
                held_out = held_out_loss(model, self.held_out)
                print(f"{name}: step {step} of {steps}, loss {loss.item():.3f}, held out {held_out:.4f}", flush=True)
        for handle in handles:
            handle.remove()
        model.eval()


def write(folder: Path, model: Qwen3ForCausalLM, tokenizer: Tokenizer) -> None:
    """The folder as from_pretrained reads it: float16 on disk, for half the size, and float32 in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    weights = {name: weight.cpu().to(torch.float16) for name, weight in model.state_dict().items()}
    del weights["lm_head.weight"]  # the embedding
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    # Greedy words of a small model go round in circles without a penalty.
    GenerationConfig(eos_token_id=0, pad_token_id=0, repetition_penalty=1.2).save_pretrained(folder)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        model_max_length=model.config.max_position_embeddings,
        padding_side="left",
    )
    wrapped.save_pretrained(folder)
    # transformers 5 writes a class name of its own; its version 4 and the other clients know this one, and so does it.
    settings = folder / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "examples" / "teller", help="the folder that is written")
    parser.add_argument("--packages", type=Path, default=ROOT / "build" / "teller", help="where the text is kept")
    parser.add_argument("--small", action="store_true", help="half the size and no teachers: what a CPU can train")
    parser.add_argument("--teachers", type=int, default=2, help="larger models to learn from (2)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="the longest that one model is trained for")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse()
    texts, held_out_texts = split(args.packages)
    tokenizer = train_tokenizer(texts)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    course = Course(encode(tokenizer, texts), encode(tokenizer, held_out_texts).to(device), device, 60 * args.minutes)
    print(f"{len(course.books):,} tokens to learn from, {len(course.held_out):,} held out, on {device}", flush=True)

    teachers = []
    for number in range(0 if args.small else args.teachers):
        teacher = build(TEACHER, args.seed + 1 + number)
        course.train(f"teacher {number + 1}", teacher, TEACHING)
        teachers.append(teacher)
    teller = build(SMALL if args.small else TELLER, args.seed)
    course.train("teller", teller, QUICK if args.small else TAUGHT if teachers else ALONE, teachers)
    write(args.out, teller, tokenizer)

    written = Qwen3ForCausalLM.from_pretrained(args.out).to(device)
    loss = held_out_loss(written, course.held_out)
    bits = loss / math.log(2) * (len(course.held_out) - 1) / sum(len(text) for text in held_out_texts)
    print(
        f"{args.out}: {sum(weight.numel() for weight in written.parameters()):,} parameters, held-out loss {loss:.4f} "
        f"nats a token (perplexity {math.exp(loss):.1f}), {bits:.3f} bits a byte"
    )


if __name__ == "__main__":
    main()
