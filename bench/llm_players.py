#!/usr/bin/env python3
"""Processes that read prompts and write texts in turns, for bench_llm.py: each computes while the others wait."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

THREADS = 2
# Tokens of a turn. What else the machine does comes and goes within seconds: short turns meet the same of it. A long
# text would be pauses for the most part.
BURST, BURST_OF_LONG = 4, 16
COLD = 1 / 4  # of a turn, at its beginning, does not count: memory is still the others'
PAUSE = 0.1  # seconds between two turns, in which the threads of the one before stop asking for more to do
LATE = 256  # last steps of a text, where the cache is longest
# Of so many tokens of a long text the last ones are generated, and those before are read at once, as a prompt is: steps
# at every length, in a fraction of the time. Its last steps are all generated.
STRETCH = 128


class Turn(NamedTuple):
    """How many tokens are read at its beginning, how many are generated, and how many of these do not count."""

    read: int
    tokens: int
    cold: int


def turns_of(text: int) -> list[Turn]:
    if text <= LATE:
        return [Turn(0, BURST, int(BURST * COLD))] * (text // BURST)
    late = Turn(0, BURST_OF_LONG, int(BURST_OF_LONG * COLD))
    return [late._replace(read=STRETCH - late.tokens)] * ((text - LATE) // STRETCH) + [late] * (LATE // late.tokens)


class Turns:
    """One of several processes, each of which computes while the others wait: a line says when, another how long it
    took. What else the machine does then meets all of them, and a ratio means more than its parts."""

    def __init__(self) -> None:
        self._start = 0.0

    def ready(self) -> None:
        print(json.dumps(None), flush=True)

    def wait(self) -> None:
        if not sys.stdin.readline():
            sys.exit(0)  # nobody wants more

    def begin(self) -> None:
        self._start = time.perf_counter()

    def end(self) -> None:
        print(json.dumps(time.perf_counter() - self._start), flush=True)


def play_genai(folder: Path, length: int, tokens: int, turns: Turns) -> None:
    import numpy as np
    import onnxruntime_genai as genai

    config = genai.Config(str(folder))
    # The checkpoint names no token that ends a text, and genai wants one.
    config.overlay('{"model": {"eos_token_id": 1, "pad_token_id": 1}}')
    config.overlay(f'{{"model": {{"decoder": {{"session_options": {{"intra_op_num_threads": {THREADS}}}}}}}}}')
    params = genai.GeneratorParams(model := genai.Model(config))
    params.set_search_options(max_length=length + tokens + 1, min_length=length + tokens + 1, do_sample=False)
    turns.ready()
    for has_text in readings(length):
        turns.wait()
        generator = genai.Generator(model, params)  # which sets its cache to zero: not while others are measured
        turns.begin()
        generator.append_tokens(some_tokens(length)[None].astype(np.int32))
        generator.generate_next_token()
        turns.end()
        for turn in turns_of(tokens) if has_text else []:
            turns.wait()
            if turn.read:
                generator.append_tokens(some_tokens(turn.read)[None].astype(np.int32))
            for i in range(turn.tokens):
                if i == turn.cold:
                    turns.begin()
                generator.generate_next_token()
            turns.end()


class Bursts:
    """Stops `generate` after each turn until it is the next one's time."""

    def __init__(self, turns: Turns, of_text: list[Turn]) -> None:
        self._turns, self._left = turns, of_text
        self._made = -1  # what is read comes first

    def put(self, _tokens: Any) -> None:
        self._made += 1
        if self._made == self._left[0].tokens:
            self._turns.end()
            self._left, self._made = self._left[1:], 0
            if self._left:
                self._turns.wait()
        elif 0 < self._made == self._left[0].cold:
            self._turns.begin()

    def end(self) -> None: ...


def play_load(folder: Path, length: int, tokens: int, turns: Turns) -> None:
    import torch

    import modelport

    model = modelport.load(folder, threads=THREADS)

    def generate(ids: torch.Tensor, of_text: list[Turn], **cache: Any) -> torch.Tensor:
        new = sum(turn.tokens for turn in of_text)
        settings = {"attention_mask": torch.ones_like(ids), "do_sample": False, **cache}
        return model.generate(ids, max_new_tokens=new, min_new_tokens=new, streamer=Bursts(turns, of_text), **settings)

    reading = Turn(0, 1, 0)  # of a prompt, with the token that follows from it
    turns.ready()
    for has_text in readings(length):
        text = turns_of(tokens) if has_text else []
        # What is read between two turns comes with a call of its own.
        at_once, one_by_one = ([], text) if any(turn.read for turn in text) else (text, [])
        ids = torch.from_numpy(some_tokens(length))[None]
        turns.wait()
        turns.begin()
        generate(ids, [reading, *at_once])
        cache = None
        for turn in one_by_one:
            turns.wait()
            cache = model(ids).past_key_values if cache is None else cache
            ids = torch.cat([ids, torch.from_numpy(some_tokens(turn.read))[None]], 1)
            ids = generate(ids, [turn], past_key_values=cache)


def some_tokens(many: int) -> Any:
    import numpy as np

    return np.arange(many) % 900


def readings(length: int) -> list[bool]:
    """One for each time that a prompt is read in a round, and whether a text follows it. The first one allocates."""
    prompts = max(2, min(17, 1024 // length))
    return [i == prompts - 1 for i in range(prompts)]


PLAYERS = {"genai": play_genai, "load": play_load}


class Player:
    """A process that waits for its turns."""

    def __init__(self, kind: str, folder: Path, length: int, tokens: int):
        command = [sys.executable, __file__, kind, str(folder), str(length), str(tokens)]
        # What libraries print must not be taken for a time.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._told()  # it has loaded its model

    def turn(self) -> float:
        assert self._process.stdin is not None
        time.sleep(PAUSE)
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self._told()

    def _told(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process that was measured has ended")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    client, files, prompt, text = sys.argv[1:]
    PLAYERS[client](Path(files), int(prompt), int(text), Turns())
    sys.stdin.read()  # to end now would take time of those whose turn it is
