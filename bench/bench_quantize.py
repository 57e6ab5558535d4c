#!/usr/bin/env python3
"""Weights in 4 bits, groups of 32: time and error next to torchao's default and its hqq_scale_only."""

from __future__ import annotations

import sys

import torch
from requirements import Requirements, median, shown
from torchao.quantization.quantize_.workflows import IntxChooseQParamsAlgorithm, IntxUnpackedToInt8Tensor

from modelport.base import core

ROWS, COLUMNS, GROUP = 3072, 1024, 32
PAIRS = {"range": "affine", "search": "hqq_scale_only"}  # our choice of scales, and torchao's algorithm


def ours(weight: torch.Tensor, choice: str) -> tuple[torch.Tensor, torch.Tensor]:
    scheme = core.QuantizationScheme(
        layout="torchao_int8", bits=4, group=GROUP, zero_points=False, choice=choice, scales=torch.bfloat16
    )
    return core.quantize("weight", weight, scheme, [])[:2]


def theirs(weight: torch.Tensor, algorithm: str) -> tuple[torch.Tensor, torch.Tensor]:
    quantized = IntxUnpackedToInt8Tensor.from_hp(
        weight, (1, GROUP), torch.int4, intx_choose_qparams_algorithm=IntxChooseQParamsAlgorithm(algorithm)
    )
    return quantized.qdata, quantized.scale


def error(weight: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> float:
    back = codes.double().unflatten(1, (-1, GROUP)) * scales.double().unsqueeze(2)
    return float((weight.double() - back.flatten(1)).norm() / weight.double().norm())


def main() -> int:
    torch.manual_seed(0)
    requirements = Requirements()
    tails = torch.distributions.StudentT(3.0).sample((ROWS, COLUMNS))
    for kind, values in {"normal": torch.randn(ROWS, COLUMNS), "heavy tails": tails}.items():
        weight = (values * 0.02).bfloat16()
        for choice, algorithm in PAIRS.items():
            time, their_time = median(lambda: ours(weight, choice)), median(lambda: theirs(weight, algorithm))  # noqa: B023
            found, their_error = error(weight, *ours(weight, choice)), error(weight, *theirs(weight, algorithm))
            print(f"{kind} [{ROWS}, {COLUMNS}] of bf16, {choice} next to {algorithm}")
            requirements.check("time", time < their_time, f"{shown(time)} next to {shown(their_time)}")
            requirements.check("error", found <= their_error, f"{found:.4f} next to {their_error:.4f}")
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
