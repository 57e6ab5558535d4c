"""Arguments of weights in few bits: how they are stored, and what they may cost."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..exporters.quantization import BITS


def add(command: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    bits = command.add_argument_group("int4 and int8")
    bits.add_argument("--block-size", type=positive, default=32, help="columns that share a scale (default 32)")
    bits.add_argument("--asymmetric", action="store_true", help="a zero point for each block")
    bits.add_argument(
        "--accuracy-level",
        type=int,
        choices=range(5),
        default=4,
        help="4: the kernel rounds inputs to 8 bits, which is faster (default); 0: it computes in floats",
    )
    bits.add_argument(
        "--quantization-method",
        choices=["search", "range"],
        default="search",
        help="scales by the least error (default), or by the largest weight of a block",
    )


def add_quality(group: Any) -> None:
    group.add_argument("--text", metavar="FILE", help="of weights in few bits: text to measure perplexity on")
    group.add_argument(
        "--max-perplexity-growth",
        type=float,
        metavar="PERCENT",
        help="of weights in few bits: how much worse than fp32 they may be (default 25)",
    )


def read(args: argparse.Namespace) -> None:
    """int4 and int8 are types of stored weights; all others are then fp32."""
    args.quantization = None
    if args.dtype not in BITS:
        return
    args.quantization = {
        "bits": BITS[args.dtype],
        "block_size": args.block_size,
        "symmetric": not args.asymmetric,
        "accuracy_level": args.accuracy_level,
        "method": args.quantization_method,
    }
    args.dtype = "fp32"
