"""The arguments of `modelport export executorch`: those of `export onnx`, and the names of optimum-executorch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from . import model_arguments

EXPORT = """Exports a checkpoint folder to a program for ExecuTorch and compares the values with the model's.

examples:
  modelport export executorch ./bert-base ./bert-pte
  modelport export executorch google-bert/bert-base-uncased ./bert-pte  a model of the hub
  modelport export executorch ./bert-base ./out --max_seq_len 256       memory is set aside for the largest size
  modelport export executorch ./qwen3-0.6b ./out --max_seq_len 1024 --use_custom_sdpa --use_custom_kv_cache
  modelport export executorch ./vit ./out --dims batch=1:4 --recipe xnnpack
  modelport export executorch ./qwen3 ./out --recipe xnnpack --qlinear 8da4w --qembedding 8w
  modelport export executorch ./vit ./out --batch 1 --disable_dynamic_shapes

exit codes: 0 exported and checked; 2 an error, or values that differ; 130 interrupted. After 2 and 130, what was at OUT
is still there."""


IN_FEWER_BITS = (
    "qlinear",
    "qlinear_group_size",
    "qlinear_packing_format",
    "qembedding",
    "qembedding_group_size",
    "qlinear_encoder",
    "qlinear_encoder_group_size",
    "qlinear_encoder_packing_format",
    "qembedding_encoder",
    "qembedding_encoder_group_size",
)  # as the configuration has them


def add(command: argparse.ArgumentParser, positive: Callable[[str], int], tolerance: Callable[[str], float]) -> None:
    command.usage = "modelport export executorch MODEL OUT [options]"
    command.add_argument(
        "paths",
        nargs="*",
        metavar="MODEL OUT",
        help="checkpoint folder, or name on the hub; folder or .pte file to write",
    )
    command.add_argument("-m", "--model", metavar="MODEL", help="the checkpoint folder, as in optimum-cli")
    command.add_argument("-o", "--output_dir", "--output-dir", metavar="OUT", help="OUT, as in optimum-cli")
    what = command.add_argument_group("what is exported")
    model_arguments.add(what, positive)
    what.add_argument("--task", help="such as image-classification (default: the class in config.json)")
    what.add_argument("--recipe", default="portable", help="portable (default): kernels of every runtime; or xnnpack")
    _add_quantization(command)
    types = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
    what.add_argument(
        "--dtype",
        type=lambda text: types.get(text, text),
        choices=list(types.values()),
        help="type of weights (default: the checkpoint's)",
    )
    what.add_argument(
        "--disable_dynamic_shapes",
        "--disable-dynamic-shapes",
        "--no-dynamic-axes",
        dest="no_dynamic_axes",
        action="store_true",
        help="every axis has the size of the example; models that generate read one token at a time",
    )
    model_arguments.add_join_lists(what)
    what.add_argument(
        "--max_seq_len",
        "--max-seq-len",
        type=positive,
        metavar="N",
        help="the longest sequence memory is planned for; what the cache of a model that generates holds",
    )
    _add_for_generation(command.add_argument_group("models that generate"))
    what.add_argument(
        "--dims",
        action="append",
        default=[],
        type=_bounds,
        metavar="AXIS=MIN:MAX",
        help="sizes of a dynamic axis, such as seq=1:2048; may be repeated",
    )
    what.add_argument(
        "--checks_as_outputs",
        "--checks-as-outputs",
        action="store_true",
        help="what the model assumed of its data as further outputs",
    )
    what.add_argument(
        "--image_size", "--image-size", type=positive, metavar="N", help="images are squares of this side"
    )
    checked = command.add_argument_group("the check")
    checked.add_argument("--atol", type=tolerance, help="tolerance (default 1e-4, in fp16 and bf16 1e-2)")
    checked.add_argument("--no-check", action="store_true", help="do not compare values with the model's")


def _add_for_generation(kernels: Any) -> None:
    kernels.add_argument(
        "--use_custom_sdpa",
        "--use-custom-sdpa",
        action="store_true",
        help="attention over the cache by llama::custom_sdpa, a kernel of ExecuTorch for language models",
    )
    kernels.add_argument(
        "--use_custom_kv_cache",
        "--use-custom-kv-cache",
        action="store_true",
        help="the cache is written by llama::update_cache",
    )


def _add_quantization(command: argparse.ArgumentParser) -> None:
    weights = command.add_argument_group("weights in fewer bits")
    linear = "linear layers: 8da4w, 8da8w, 4w, 8w or, with the second where groups do not divide a row, 8da4w,8da8w"
    kinds = {
        "qlinear": f"of {linear}; with xnnpack",
        "qembedding": "of embeddings: 4w or 8w",
        "qlinear_encoder": "of linear layers of an encoder beside a decoder that generates",
        "qembedding_encoder": "of embeddings of such an encoder",
    }
    for kind, words in kinds.items():
        weights.add_argument(f"--{kind}", f"--{kind.replace('_', '-')}", metavar="FORM", help=words)
        weights.add_argument(
            f"--{kind}_group_size",
            f"--{kind}_group_size".replace("_", "-"),
            type=int,
            metavar="N",
            help="columns that share a scale; 0: a whole row",
        )
        if kind.startswith("qlinear"):  # of kernels for GPUs: refused with a reason
            weights.add_argument(f"--{kind}_packing_format", metavar="FORMAT", help=argparse.SUPPRESS)


def _bounds(text: str) -> tuple[str, Any]:
    found = re.fullmatch(r"(\w+)=(?:(\d+):)?(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names no axis and its sizes: seq=1:2048")
    return found[1], (int(found[2] or 1), int(found[3]))
