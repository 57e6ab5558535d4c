"""Arguments of types: which ones a model is exported in, how few bits are stored, and what they may cost."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

from ..artifacts.variants import ALSO, SUFFIXES, WRITTEN
from ..base.errors import problem
from ..exporters.quantization import FEW_BITS, FORMS, LAYER_BITS, METHODS


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the types that a model is exported in."""

    dtype: str | None  # None: that of the checkpoint
    floats: str | None  # of what is not in few bits
    quantization: dict[str, Any] | None
    kind: str  # by which its files are found; in a folder of one type their names have no end

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.kind]


def add_type(group: Any) -> None:
    group.add_argument(
        "--dtype",
        metavar="TYPE[,TYPE]",
        help="type of weights (default: the checkpoint's): fp32, fp16, bf16; int4 (q4), int8 (q8): of products and "
        "embeddings, the rest in fp32; q4f16: the rest in fp16. Several give files of each",
    )


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
        choices=METHODS,
        help="scales by the least error (search, the default), or by the largest weight of a block (range); gptq: "
        "weights are rounded by what the model computes on --calibration, with which it is the default of 4 bits",
    )
    bits.add_argument(
        "--layers",
        metavar="PATTERN=TYPE",
        action="append",
        default=[],
        help="single layers otherwise: lm_head=int8, model.layers.0.*=float; may be repeated, the last one counts",
    )
    bits.add_argument(
        "--int8",
        choices=FORMS,
        help="int8 as blocks: of weights only (default for models that generate); dynamic: products of integers, "
        "inputs rounded by their range (default for others); static: by ranges measured before",
    )
    bits.add_argument(
        "--calibration",
        metavar="FILE",
        help="what gptq and ranges are measured on: text (.txt), or inputs by name (.npz, .safetensors, .py)",
    )


def add_quality(group: Any) -> None:
    group.add_argument(
        "--min-cosine",
        type=float,
        metavar="C",
        help="of weights in few bits, and a model that does not generate: how near its outputs stay (default 0.98)",
    )
    group.add_argument("--text", metavar="FILE", help="of weights in few bits: text to measure perplexity on")
    group.add_argument(
        "--max-perplexity-growth",
        type=float,
        metavar="PERCENT",
        help="of weights in few bits: how much worse than fp32 they may be (default 25)",
    )


def read_optimize(args: argparse.Namespace) -> str | None:
    """What the levels of optimum-cli come to here; gives a note."""
    if args.optimize is None:
        return None
    done = []
    if args.optimize != "O1" and args.operators is None and args.client != "transformers.js":
        args.operators = "onnxruntime"
        done.append("--operators onnxruntime")
    if args.optimize == "O4" and args.dtype is None:
        args.dtype = "fp16"
        done.append("--dtype fp16")
    if not done:
        return f"--optimize {args.optimize} makes no difference here: graphs are optimized anyway"
    return f"--optimize {args.optimize} is {' '.join(done)} here"


def read(args: argparse.Namespace) -> None:
    """Makes `args.variants` of what was asked: one, or several for a folder with files of several types."""
    args.layers = _layers(args.layers)
    asked = [None] if args.dtype is None else [name.strip() for name in args.dtype.split(",")]
    names = list(dict.fromkeys(ALSO.get(name, name) if name else name for name in asked))
    for name in names:
        if name is not None and name not in WRITTEN:
            what = f"--dtype {args.dtype}: {name or 'nothing'} is no type that can be written"
            raise problem("E0306", what, f"choose from {', '.join((*WRITTEN, *ALSO))}, or several: --dtype q4,fp16")
    if len(names) > 1:
        _refuse_several(args)
    by_suffix = len(names) > 1 or args.client == "transformers.js"
    args.variants = [_variant(args, name, name if name and by_suffix else "fp32") for name in names]
    if args.calibration and not any(map(_is_measured, args.variants)):
        said = {"--dtype": args.dtype, "--int8": args.int8}
        flags = "".join(f"{flag} {value} " for flag, value in said.items() if value)
        what = f"{flags}measures nothing on --calibration {args.calibration}"
        raise problem("E0319", what, "--dtype int4 --quantization-method gptq", "--dtype int8 --int8 static")
    if args.quantization_method == "gptq" and not args.calibration:
        what = "--quantization-method gptq rounds weights by what the model computes on a text, and there is none"
        raise problem("E0319", what, "--calibration FILE", "--quantization-method search")


def _is_measured(variant: Variant) -> bool:
    how = variant.quantization
    return how is not None and (how["method"] == "gptq" or how.get("form") == "static")


def _layers(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        pattern, equals, kind = text.rpartition("=")
        if not equals or not pattern or kind not in LAYER_BITS:
            what = f"--layers {text} is no pattern of modules with a type"
            raise problem("E0319", what, f"--layers lm_head=int8; types are {', '.join(LAYER_BITS)}")
        found[pattern] = kind
    return found


def _refuse_several(args: argparse.Namespace) -> None:
    if args.out.endswith(".onnx"):
        what = f"--dtype {args.dtype}: several types are several files, and OUT is one"
        raise problem("E0105", what, f"name a folder: {args.out[:-5]}")
    if args.client == "genai":
        what = f"--dtype {args.dtype}: onnxruntime-genai opens one model in a folder"
        raise problem("E0306", what, "one folder for each type")


def _variant(args: argparse.Namespace, name: str | None, kind: str) -> Variant:
    if name not in FEW_BITS:
        return Variant(name, name, None, kind)
    bits, floats = FEW_BITS[name]
    method, form = args.quantization_method, args.int8 if bits == 8 else None
    if args.calibration and bits == 4:
        method = method or "gptq"
    elif args.calibration and method != "gptq":
        form = form or "static"
    how = {
        "bits": bits,
        "block_size": args.block_size,
        "symmetric": not args.asymmetric,
        "accuracy_level": args.accuracy_level,
        "method": method or "search",
        "layers": args.layers,
    }
    return Variant(name, floats, how | ({"form": form} if form else {}), kind)


def by_floats(variants: list[Variant]) -> dict[str | None, list[Variant]]:
    """Those that are lowered from one capture: the model in one floating type."""
    groups: dict[str | None, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.floats, []).append(variant)
    return groups
