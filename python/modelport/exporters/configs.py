"""Configurations of the exporters: the fields and defaults that users of transformers.exporters know."""

from __future__ import annotations

import copy
import dataclasses
import platform
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Self

from ..base.errors import problem
from .quantization import FEW_BITS, Quantization
from .quantizers import settings_of


class ExportFormat(Enum):
    """The formats that there are exporters for."""

    EXECUTORCH = "executorch"
    DYNAMO = "dynamo"
    ONNX = "onnx"
    OPENVINO = "openvino"


@dataclasses.dataclass
class ExportConfigMixin:
    """What all configurations share: they turn into a dict and back."""

    export_format: ExportFormat

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any]) -> ExportConfigMixin:
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(config_dict) - known)
        if unknown:
            raise problem(
                "E0306", f"{cls.__name__} has no field {', '.join(unknown)}", f"it has: {', '.join(sorted(known))}"
            )
        return cls(**config_dict)

    @classmethod
    def given(cls, config: Any) -> Self:
        """What a caller passes as a config: one of this class, a dict of its fields, or None for the defaults."""
        if config is None:
            return cls()  # type: ignore[call-arg]  # every config that can be given has a format
        if isinstance(config, dict):
            return cls(**config)
        if not isinstance(config, cls):
            article = "an" if cls.__name__[0] in "AEIOU" else "a"
            way_out = f"pass {article} {cls.__name__} or a dict of its fields"
            raise problem("E0306", f"config is a {type(config).__name__}", way_out)
        return config

    def to_dict(self) -> dict[str, Any]:
        return copy.deepcopy(vars(self))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from vars(self).items()


@dataclasses.dataclass
class DynamoConfig(ExportConfigMixin):
    """How to export to `.pt2`.

    `dynamic` makes every axis longer than 1 symbolic, and a batch of one (not for ExecuTorch); `dynamic_shapes` says it
    axis by axis and goes first. `strict` and `prefer_deferred_runtime_asserts_over_guards` steer torch's tracer, which
    is not used here: they are accepted and make no difference. `quantizer` is for ONNX. `join_lists` is for results
    that are lists with a tensor for each item, such as an image: the program gives the tensors of all items in one, for
    any number of them; without it, it gives each by itself, for as many as the example has.
    """

    export_format: ExportFormat = ExportFormat.DYNAMO
    dynamic: bool = False
    strict: bool = False
    dynamic_shapes: Any = None
    prefer_deferred_runtime_asserts_over_guards: bool = False
    quantizer: Any = None
    join_lists: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.export_format, str):
            self.export_format = ExportFormat(self.export_format)
        self._take_quantizer()

    def _take_quantizer(self) -> None:
        if self.quantizer is not None:
            what = "quantizers are not supported yet"
            raise problem("E0319", what, "export without quantizer, then quantize the artifact")


PROCESSORS = ("x86_64", "aarch64", "any")
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "operators": ("standard", "onnxruntime"),
    "processor": (None, *PROCESSORS),
    "weights": ("copy", "link"),
}
_ALSO_CALLED = {"amd64": "x86_64", "arm64": "aarch64"}


def this_processor() -> str:
    """The kind of processor that this machine has, as `processor` names it."""
    machine = platform.machine().lower()
    name = _ALSO_CALLED.get(machine, machine)
    return name if name in PROCESSORS else "any"


@dataclasses.dataclass
class OnnxConfig(DynamoConfig):
    """How to export to ONNX.

    With `output_path` the model is written there at once. `opset_version` None is the exporter's default.
    `external_data` keeps the weights in a file beside the model, `shard_bytes` in several of at most that size;
    `weights="link"` points into the checkpoint's own safetensors files and copies nothing; `export_params=False` leaves
    the weights out, as inputs. `optimize=False` writes the plain lowering. `names` renames inputs and outputs: a
    dict, or "transformers" for the names that transformers' own exporter gives them, which are their paths in what the
    model takes and gives (`past_key_values.layers.0.keys`).
    `dtype` ("fp16", "bf16", "fp32") exports the model as if it had been loaded in that type; its weights are converted
    while they are written.
    `num_logits_to_keep` is for generation: only the logits of so many last tokens are computed (0: those of all).
    `last_logits` computes those of each row's last token, padding or not, and nothing that only the others need: what
    clients read that generate. `modelport.load` still gives all of them where it is asked for them.
    `limits_in_graph` puts tests of the inputs into the graph, for runtimes that do not read the limits of the file:
    they then fail where the model was not captured for what they are given.
    `operators="onnxruntime"` uses that runtime's own operators where they are faster, for caches above all, which it
    then writes into instead of copying them; "standard" ones run anywhere. `context_length` is the number of tokens
    that tables of positions are made for (default: what the model's config says). `processor` is the one that these
    operators are laid out for: "x86_64", where a token by itself then attends by products that use AVX, "aarch64", or
    "any" (default: this machine's). Others run the file too, with the same values.
    `dtype="int4"` or `"int8"` (also called "q4" and "q8"; "q4f16" has all else in fp16) stores weights of products and
    embeddings in so few bits, for kernels of onnxruntime's;
    `quantization={"block_size": 32, "symmetric": True, "accuracy_level": 4, "method": "search"}` says how, and its
    `form` "dynamic" or "static" computes in 8 bits, for models that do not generate. Ranges of "static" are measured on
    `calibration`, a list of inputs or an InputObserver. `quantizer` takes the same as transformers' OnnxConfig:
    OnnxRuntimeDynamicConfig, OnnxRuntimeStaticConfig, or an OnnxRuntimeQuantizer with one of them.
    """

    export_format: ExportFormat = ExportFormat.ONNX
    output_path: Any = None
    opset_version: int | None = None
    external_data: bool = True
    optimize: bool = True
    export_params: bool = True
    keep_initializers_as_inputs: bool = False
    weights: str = "copy"
    shard_bytes: int | None = None
    names: dict[str, str] | str | None = None
    dtype: Any = None
    num_logits_to_keep: int = 0
    last_logits: bool = False
    limits_in_graph: bool = False
    operators: str = "standard"
    context_length: int | None = None
    processor: str | None = None
    quantization: Any = None
    calibration: Any = None

    def _take_quantizer(self) -> None:
        """What it says goes to `quantization` and `calibration`."""
        if self.quantizer is not None:
            self.quantization, samples = settings_of(self.quantizer)
            self.calibration = self.calibration if samples is None else samples
            self.quantizer = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.quantization = Quantization.given(self.quantization, self.dtype)
        if isinstance(self.dtype, str) and self.dtype in FEW_BITS:
            self.dtype = FEW_BITS[self.dtype][1]  # of what stays in floats, and of what goes in and comes out
        if self.quantization is not None and self.weights == "link":
            what = "weights in few bits are none that the checkpoint has, to point at"
            raise problem("E0319", what, "weights='copy', or --weights copy")
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in choices:
                way_out = " or ".join(f"{name}={choice!r}" for choice in choices)
                raise problem("E0306", f"{name}={given!r} is none of what there is to choose from", way_out)
        if isinstance(self.names, str) and self.names != "transformers":
            ways = ("names='transformers'", "names={'logits': 'scores'} renames single ones")
            raise problem("E0306", f"names={self.names!r} are nobody's that we know", *ways)


@dataclasses.dataclass
class OpenVINOConfig(DynamoConfig):
    """How to export to OpenVINO.

    With `output_path` the model is written there at once: into a folder, or as a file `.xml` with its weights in `.bin`
    beside it. `stateful` keeps the cache of a text in the model, `past_key_values` and `present` are then no inputs and
    outputs, and `beam_idx` says from which row each row goes on. `compress_to_fp16` stores weights in fp16 and leaves
    the types of inputs and results as they are. `dtype` ("fp16", "bf16", "fp32") exports the model as if it had been
    loaded in that type.
    """

    export_format: ExportFormat = ExportFormat.OPENVINO
    output_path: Any = None
    compress_to_fp16: bool = False
    stateful: bool = True
    dtype: Any = None


_IN_FEWER_BITS = ("qlinear", "qembedding", "qlinear_encoder", "qembedding_encoder")
_OWN = ("portable", "xnnpack")  # what we write ourselves
_HALVES = ("float16", "bfloat16")
# Backends of ExecuTorch whose own tools compile for them.
_COMPILED = re.compile(r"cuda(-windows)?|metal|mlx|openvino|qnn|vulkan|coreml_fp(16|32)(_cpu|_gpu|_ne)?")


@dataclasses.dataclass
class ExecutorchConfig(DynamoConfig):
    """How to export to ExecuTorch's `.pte`.

    `backend`, or `recipe` as optimum-executorch calls it, is "portable": the kernels that every build of the runtime
    has; or "xnnpack": XNNPACK computes what it can, which is most of a model. What ExecuTorch has further backends for
    ("openvino", "coreml_fp16", "cuda", "mlx", "qnn", "vulkan", ...) is compiled by its own tools, if they are installed
    (not for generation). `qlinear` stores the weights of linear
    layers in 4 or 8 bits ("8da4w", "8da8w": inputs are rounded to 8 bits too; "4w", "8w"; with xnnpack only),
    `qembedding` those of embeddings ("4w", "8w"); the group sizes say how many columns share a scale, 0 all of a row.
    "8da4w,8da8w" is the second form where groups of the first do not divide a row. In a model that generates with an
    encoder of its own, the encoder takes the forms of `qlinear_encoder` and `qembedding_encoder` instead.
    With `output_path` the program is written there at once. `dims` bounds dynamic axes, `{"seq": (1, 2048)}`, and
    `max_seq_len` those of sequences: the runtime sets aside memory for the largest sizes. `dtype` ("fp16", "bf16",
    "fp32") exports the model as if it had been loaded in that type. `checks_as_outputs` adds what the model assumed of
    its data as further outputs, true where the program is right. `image_size` says that images are squares of that
    side: axes that have it in the example have it always.

    For generation, `max_seq_len` is what the cache holds, and `dims={"seq": (1, 128)}` how many tokens of a prompt are
    read at once; with `disable_dynamic_shapes` it is one. With `use_custom_sdpa` and `use_custom_kv_cache`, kernels of
    ExecuTorch for language models (`llama::custom_sdpa`, `llama::update_cache`) attend and keep the cache; the runtime
    then needs their library.
    """

    export_format: ExportFormat = ExportFormat.EXECUTORCH
    backend: str | None = None
    recipe: str | None = None
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True
    output_path: Any = None
    dims: dict[str, Any] | None = None
    max_seq_len: int | None = None
    dtype: Any = None
    checks_as_outputs: bool = False
    use_custom_sdpa: bool = False
    use_custom_kv_cache: bool = False
    disable_dynamic_shapes: bool = False
    image_size: int | None = None
    qlinear: str | None = None
    qlinear_group_size: int | None = None
    qembedding: str | None = None
    qembedding_group_size: int | None = None
    qlinear_encoder: str | None = None
    qlinear_encoder_group_size: int | None = None
    qembedding_encoder: str | None = None
    qembedding_encoder_group_size: int | None = None
    qlinear_packing_format: str | None = None
    qlinear_encoder_packing_format: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend and self.recipe and self.backend != self.recipe:
            what = f"backend={self.backend!r} and recipe={self.recipe!r} are two names for one thing"
            raise problem("E0306", what, "give one of them")
        self.backend = self.recipe = self.backend or self.recipe or "portable"
        _check_backend(self.backend)
        self._check_fewer_bits()
        for name in ("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"):
            if not getattr(self, name):
                what = f"{name}=False: programs whose memory the caller provides are not written yet"
                raise problem("E0306", what, f"leave {name} out")
        if self.max_seq_len is not None and (type(self.max_seq_len) is not int or self.max_seq_len < 1):
            raise problem("E0306", f"max_seq_len={self.max_seq_len!r} is no size", "max_seq_len=2048")

    def _check_fewer_bits(self) -> None:
        for kind in _IN_FEWER_BITS:
            form, group = getattr(self, kind), getattr(self, f"{kind}_group_size")
            if form and kind.startswith("qlinear") and self.backend != "xnnpack":
                what = f"{kind}={form!r} is for products that XNNPACK computes, and the recipe is {self.backend}"
                raise problem("E0306", what, 'recipe="xnnpack", or --recipe xnnpack')
            if group is not None and not (type(group) is int and group >= 0 and form):
                what = f"{kind}_group_size={group!r} goes with {kind}, and is a number of columns, or 0 for all"
                raise problem("E0306", what, f'{kind}="8w", {kind}_group_size=32')
            packing = getattr(self, f"{kind}_packing_format", None)
            if packing:
                what = f"{kind}_packing_format={packing!r} is of kernels for GPUs, and the recipe is {self.backend}"
                raise problem("E0306", what, "leave it out")

    def fewer_bits(self) -> list[str]:
        """The fields that store weights in fewer bits than the model has."""
        return [kind for kind in _IN_FEWER_BITS if getattr(self, kind)]

    @property
    def compiled_by_others(self) -> bool:
        return self.backend not in _OWN

    def for_encoder(self) -> Self:
        """As the encoder of a model that generates is written."""
        own: dict[str, Any] = {}
        for kind in ("qlinear", "qembedding"):
            for more in ("", "_group_size"):
                own |= {f"{kind}{more}": getattr(self, f"{kind}_encoder{more}"), f"{kind}_encoder{more}": None}
        return dataclasses.replace(self, **own)

    def without_encoder(self) -> Self:
        """The same, of a model that has no encoder of its own."""
        given = [kind for kind in self.fewer_bits() if kind.endswith("_encoder")]
        if given:
            what = f"{given[0]}={getattr(self, given[0])!r}: the model has no encoder beside a decoder that generates"
            raise problem("E0306", what, f"leave it out, or give {given[0].removesuffix('_encoder')}")
        return self

    def for_type(self, own: Any) -> Self:
        """For a model in this type: XNNPACK computes in fp32, and would leave everything else to kernels."""
        if self.backend != "xnnpack" or self.dtype is not None or str(own).removeprefix("torch.") not in _HALVES:
            return self
        return dataclasses.replace(self, dtype="fp32")


def _check_backend(name: str) -> None:
    if name in _OWN or _COMPILED.fullmatch(name):
        return
    what = f"{name!r} is no recipe for executorch"
    ways = ('recipe="portable", or --recipe portable: kernels that every runtime has', 'recipe="xnnpack"')
    raise problem("E0203", what, *ways)
