"""Checkpoints whose weights are codes already: GPTQ, AWQ, and the packed form of compressed-tensors.

Their codes are few bits of 32-bit words, in an order of their own. Here they become one byte each, [rows, columns] as
the weight has them; what computes in floats gets (code - zero point) * scale, and a writer that stores few bits gets
the same codes in the order that its kernels want."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..base.errors import problem
from .checkpoint import StoredTensor

Read = Callable[[StoredTensor], torch.Tensor]

_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # the column of each 4 bits of a word, the lowest first
_LEAST_BLOCK = 16


@dataclasses.dataclass(frozen=True)
class Format:
    """What the checkpoint says of its codes. `group` columns share a scale; 0: all of a row."""

    method: str
    bits: int
    group: int
    symmetric: bool
    zero_less_one: bool = False  # zero points are stored less one


@dataclasses.dataclass(frozen=True)
class PackedWeight:
    """One weight: its codes and what makes numbers of them, by the names that they have in its format."""

    name: str
    format: Format
    pieces: Mapping[str, StoredTensor]
    shape: tuple[int, int]

    @property
    def group(self) -> int:
        return self.format.group or self.shape[1]

    @property
    def block(self) -> int:
        """Columns of a block that kernels take: a power of two in a group."""
        return math.gcd(self.group, 1 << 30)

    @property
    def fits_kernels(self) -> bool:
        return self.block >= _LEAST_BLOCK and self.shape[1] % self.group == 0

    def codes(self, read: Read) -> torch.Tensor:
        """uint8, [rows, columns]."""
        packed = read(self.pieces[_CODES[self.format.method]])
        if self.format.method == "gptq":  # words along columns, [columns / 8, rows]
            return _words(packed.t(), self.format.bits)
        if self.format.method == "awq":  # words along rows, [columns, rows / 8]
            return _words(packed, 4, _AWQ_ORDER).t()
        return _words(packed, self.format.bits)[:, : self.shape[1]]

    def scales(self, read: Read) -> torch.Tensor:
        """[rows, groups]."""
        stored = read(self.pieces[_SCALES[self.format.method]])
        return stored if self.format.method == "compressed-tensors" else stored.t()

    def zero_points(self, read: Read) -> torch.Tensor:
        """uint8, [rows, groups]."""
        rows, bits = self.shape[0], self.format.bits
        zeros = self.pieces.get(_ZEROS[self.format.method])
        if zeros is None:
            return torch.full((rows, self.shape[1] // self.group), 1 << (bits - 1), dtype=torch.uint8)
        packed = read(zeros)
        if self.format.method == "compressed-tensors":  # words along rows, [rows / 8, groups]
            found = _words(packed.t(), bits).t()[:rows]
        else:  # words along rows, [groups, rows / 8]
            found = _words(packed, bits, _AWQ_ORDER if self.format.method == "awq" else None).t()
        return (found + self.format.zero_less_one) & ((1 << bits) - 1)

    def dequantized(self, read: Read) -> torch.Tensor:
        """The weight in fp32."""
        self._refuse_other_order(read)
        codes = self.codes(read).to(torch.float32).view(self.shape[0], -1, self.group)
        around = codes - self.zero_points(read).to(torch.float32)[:, :, None]
        return (around * self.scales(read).to(torch.float32)[:, :, None]).view(self.shape)

    def parts(self, dtype: torch.dtype) -> dict[str, tuple[torch.dtype, Callable[[Read], torch.Tensor]]]:
        """What MatMulNBits takes, by the end of its name: the type and how it is made."""
        made: dict[str, tuple[torch.dtype, Callable[[Read], torch.Tensor]]] = {
            "codes": (torch.uint8, self._blocks),
            "scales": (dtype, lambda read: self._of_blocks(self.scales(read).to(dtype))),
        }
        if not self.format.symmetric:
            made["zero_points"] = (torch.uint8, lambda read: self._bytes(self._of_blocks(self.zero_points(read))))
        return made

    def _blocks(self, read: Read) -> torch.Tensor:
        self._refuse_other_order(read)
        if self.format.symmetric and bool((self.zero_points(read) != 1 << (self.format.bits - 1)).any()):
            what = f"{self.name}: its zero points are not in the middle, and the checkpoint says that it is symmetric"
            raise problem("E0104", what, 'quantization_config in config.json: "sym": false')
        return self._bytes(self.codes(read)).view(self.shape[0], self.shape[1] // self.block, -1)

    def _of_blocks(self, of_groups: torch.Tensor) -> torch.Tensor:
        return of_groups.repeat_interleave(self.group // self.block, dim=1).contiguous()

    def _bytes(self, codes: torch.Tensor) -> torch.Tensor:
        """Two codes of 4 bits a byte, the first in the low half."""
        if self.format.bits == 8:
            return codes.contiguous()
        if codes.shape[1] % 2:
            codes = torch.nn.functional.pad(codes, (0, 1))
        return (codes[:, 0::2] | (codes[:, 1::2] << 4)).contiguous()

    def _refuse_other_order(self, read: Read) -> None:
        """Columns that were sorted by importance have groups all over the row."""
        order = self.pieces.get("g_idx") or self.pieces.get("weight_g_idx")
        if order is None:
            return
        plain = torch.arange(self.shape[1], dtype=torch.int32) // self.group
        if not torch.equal(read(order).to(torch.int32), plain):
            what = f"{self.name}: its columns are grouped out of order (desc_act, or actorder)"
            raise problem("E0104", what, "quantize the model without desc_act", "export from its fp16 checkpoint")


_CODES = {"gptq": "qweight", "awq": "qweight", "compressed-tensors": "weight_packed"}
_SCALES = {"gptq": "scales", "awq": "scales", "compressed-tensors": "weight_scale"}
_ZEROS = {"gptq": "qzeros", "awq": "qzeros", "compressed-tensors": "weight_zero_point"}
_ALL = ("qweight", "qzeros", "scales", "g_idx", "weight_packed", "weight_scale", "weight_zero_point", "weight_shape",
        "weight_g_idx")  # fmt: skip


def _words(packed: torch.Tensor, bits: int, order: tuple[int, ...] | None = None) -> torch.Tensor:
    """The codes in 32-bit words, from [a, b] to [a, b * codes in a word]; `order` is that of the codes in a word."""
    count = 32 // bits
    shifts = torch.arange(count, dtype=torch.int32) * bits
    mask = (1 << bits) - 1
    codes = ((packed.to(torch.int32)[:, :, None] >> shifts) & mask).to(torch.uint8)
    if order is not None:
        codes = codes[:, :, [order.index(i) for i in range(count)]]
    return codes.reshape(packed.shape[0], -1)


def read_format(written: Mapping[str, Any] | None) -> Format | None:
    """The format that `quantization_config` of config.json says, where it is one of these."""
    if not isinstance(written, Mapping):
        return None
    method = written.get("quant_method")
    if method == "gptq" and written.get("bits") in (4, 8):
        group = written.get("group_size", 128)
        less_one = written.get("checkpoint_format", "gptq") != "gptq_v2"
        return Format("gptq", written["bits"], max(group, 0), bool(written.get("sym", True)), less_one)
    if method == "awq" and written.get("bits", 4) == 4 and str(written.get("version", "gemm")).lower() == "gemm":
        return Format("awq", 4, max(written.get("group_size", 128), 0), not written.get("zero_point", True))
    if method == "compressed-tensors" and written.get("format") == "pack-quantized":
        groups = list((written.get("config_groups") or {}).values())
        weights = groups[0].get("weights") if len(groups) == 1 else None
        if weights and weights.get("num_bits") in (4, 8) and not groups[0].get("input_activations"):
            group = weights.get("group_size") or 0
            return Format(method, weights["num_bits"], max(group, 0), bool(weights.get("symmetric", True)))
    return None


def find_packed(tensors: Mapping[str, StoredTensor], form: Format) -> dict[str, PackedWeight]:
    """The packed weights of a checkpoint by the name that the weight would have."""
    found = {}
    end = f".{_CODES[form.method]}"
    for name in tensors:
        if not name.endswith(end):
            continue
        module = name.removesuffix(end)
        pieces = {part: tensors[f"{module}.{part}"] for part in _ALL if f"{module}.{part}" in tensors}
        if _SCALES[form.method] not in pieces:
            raise problem("E0104", f"{module} has codes and no scales", "download the checkpoint again")
        found[f"{module}.weight"] = PackedWeight(f"{module}.weight", form, pieces, _shape(form, pieces))
    return found


def _shape(form: Format, pieces: Mapping[str, StoredTensor]) -> tuple[int, int]:
    """Rows and columns of the weight."""
    packed, scales = (pieces[names[form.method]].shape for names in (_CODES, _SCALES))
    count = 32 // form.bits
    if form.method == "gptq":
        return packed[1], packed[0] * count
    if form.method == "awq":
        return packed[1] * count, packed[0]
    groups = scales[1] if len(scales) > 1 else 1
    return packed[0], groups * form.group if form.group else packed[1] * count
