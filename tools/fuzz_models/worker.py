"""A process of the pool: a seed in, its findings out."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

import torch

from .trying import try_seed


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a model prints is no answer
    torch.set_num_threads(1)
    for line in sys.stdin:
        found = try_seed(int(line))
        print(json.dumps([dataclasses.asdict(one) for one in found]), file=answers, flush=True)


if __name__ == "__main__":
    main()
