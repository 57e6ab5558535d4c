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


class Turn(NamedTuple):
    """How many tokens it has, and how many of them do not count."""

    tokens: int
    cold: int

    @classmethod
    def of(cls, text: int) -> Turn:
        burst = BURST if text <= LATE else BURST_OF_LONG
        return cls(burst, int(burst * COLD))


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
    turn = Turn.of(tokens)
    turns.ready()
    for has_text in readings(length):
        turns.wait()
        generator = genai.Generator(model, params)  # which sets its cache to zero: not while others are measured
        turns.begin()
        generator.append_tokens((np.arange(length) % 900)[None].astype(np.int32))
        generator.generate_next_token()
        turns.end()
        for i in range(tokens if has_text else 0):
            if i % turn.tokens == 0:
                turns.wait()
            if i % turn.tokens == turn.cold:
                turns.begin()
            generator.generate_next_token()
            if i % turn.tokens == turn.tokens - 1:
                turns.end()


def play_load(folder: Path, length: int, tokens: int, turns: Turns) -> None:
    import torch

    import modelport

    turn = Turn.of(tokens)

    class Bursts:
        """Stops `generate` after the prompt and every few tokens, until it is its turn again."""

        def __init__(self, more: int) -> None:
            self.told, self.more = -1, more  # the prompt comes first

        def put(self, _tokens: Any) -> None:
            self.told += 1
            if self.told == 0:
                return
            place = (self.told - 1) % turn.tokens  # of the next token, in its turn; the first one belongs to the prompt
            if place == 0:
                turns.end()
                if self.told <= self.more:
                    turns.wait()
            if place == turn.cold:
                turns.begin()

        def end(self) -> None: ...

    model = modelport.load(folder, threads=THREADS)
    ids = (torch.arange(length) % 900)[None]
    settings = {"attention_mask": torch.ones_like(ids), "do_sample": False}
    turns.ready()
    for has_text in readings(length):
        more = tokens // turn.tokens * turn.tokens if has_text else 0
        turns.wait()
        turns.begin()
        model.generate(ids, max_new_tokens=1 + more, min_new_tokens=1 + more, **settings, streamer=Bursts(more))


def readings(length: int) -> list[bool]:
    """One for each time that a prompt is read in a round, and whether a text follows it. The first one allocates."""
    prompts = max(2, min(5, 1024 // length))
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
