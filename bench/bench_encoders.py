#!/usr/bin/env python3
"""Encoders in onnxruntime next to what its own transformers optimizer makes of torch's files: fp32 and int8, 2 threads.

bert-base, ViT-base and the encoder of Whisper-base, built from their configs with random weights. Exits with 1 and a
list when a requirement is missed. Every export and every run is a process of its own, for two sessions in one disturb
each other. `--only` is one model, `--home` keeps the files; those of the peer that are there are used.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_onnx import bert_base, text
from requirements import Requirements, shown

LEAST_SPEED = 1.0  # of the optimized file's
MOST_ERROR = 1e-3  # between fp32 files, of numbers around 1
LEAST_COSINE = 0.98  # between an int8 file and ours in fp32
THREADS, RUNS, ROUNDS = 2, 3, 5
DTYPES = ("fp32", "int8")
WHO = ("modelport", "optimizer")


@dataclass
class Encoder:
    model: Callable[[], Any]
    inputs: Callable[[int], dict[str, Any]]  # by batch
    kind: str  # what the optimizer calls it
    heads: int
    width: int
    open_axes: dict[int, str]  # of each input


def vit_base() -> Any:
    import torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    return ViTModel(ViTConfig()).eval()


def whisper_base_encoder() -> Any:
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    torch.manual_seed(0)
    sizes = {"d_model": 512, "encoder_layers": 6, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048}
    return WhisperEncoder(WhisperConfig(**sizes)).eval()


def noise(name: str, *sizes: int) -> Callable[[int], dict[str, Any]]:
    def inputs(batch: int) -> dict[str, Any]:
        import torch

        return {name: torch.randn(batch, *sizes, generator=torch.Generator().manual_seed(0))}

    return inputs


ENCODERS = {
    "bert-base": Encoder(bert_base, lambda batch: text(batch, 128), "bert", 12, 768, {0: "batch", 1: "length"}),
    "vit-base": Encoder(vit_base, noise("pixel_values", 3, 224, 224), "vit", 12, 768, {0: "batch"}),
    "whisper-base": Encoder(whisper_base_encoder, noise("input_features", 80, 3000), "bart", 8, 512, {0: "batch"}),
}


# --- what runs in processes of its own --------------------------------------------------------------------------------


def step_modelport(name: str, folder: Path) -> dict[str, float]:
    import modelport

    encoder = ENCODERS[name]
    model, sample = encoder.model(), encoder.inputs(2)
    for dtype in DTYPES:
        quantizer = modelport.OnnxRuntimeDynamicConfig() if dtype == "int8" else None
        config = modelport.OnnxConfig(dynamic=True, operators="onnxruntime", quantizer=quantizer)
        modelport.OnnxExporter().export(model, sample, config).save(file_of(folder, name, "modelport", dtype))
    return {}


def step_optimizer(name: str, folder: Path) -> dict[str, float]:
    """torch's exporter that traces, and attention written out: the form that most of the optimizer's patterns know. It
    fuses fewer operators of files of torch.export's."""
    import torch
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    encoder = ENCODERS[name]
    model, sample = encoder.model(), encoder.inputs(2)
    model.set_attn_implementation("eager")

    class Traced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any) -> Any:
            return self.model(**dict(zip(sample, args, strict=True)))[0]

    plain = file_of(folder, name, "torch", "fp32")
    settings = {"dynamo": False, "opset_version": 17, "input_names": list(sample), "output_names": ["states"]}
    axes = dict.fromkeys(sample, encoder.open_axes)
    torch.onnx.export(Traced(), tuple(sample.values()), str(plain), dynamic_axes=axes, **settings)
    options = FusionOptions(encoder.kind)
    made = optimize_model(str(plain), encoder.kind, encoder.heads, encoder.width, optimization_options=options)
    fused = file_of(folder, name, "optimizer", "fp32")
    made.save_model_to_file(str(fused))
    # Types behind operators of the runtime's own are none that shape inference finds.
    extra = {"DefaultTensorType": 1}
    quantize_dynamic(fused, file_of(folder, name, "optimizer", "int8"), extra_options=extra)
    return {}


def step_run(name: str, path: Path) -> dict[str, float]:
    """Seconds of the quickest run, and of the processor on one thread, which a busy machine hardly changes."""
    import numpy as np

    from modelport.runtimes.sessions import quiet_session

    found = {}
    for key, threads, clock in (("wall", THREADS, time.perf_counter), ("processor", 1, time.process_time)):
        session = quiet_session(path, threads=threads)
        given = {key: x.numpy() for key, x in ENCODERS[name].inputs(1).items()}
        given = {i.name: given[i.name] for i in session.get_inputs()}
        states = session.run(None, given)[0]
        times = []
        for _ in range(RUNS):
            start = clock()
            session.run(None, given)
            times.append(clock() - start)
        found[key] = min(times)
        del session
    np.save(path.with_suffix(".npy"), states)
    return found


STEPS = {"modelport": step_modelport, "optimizer": step_optimizer, "run": step_run}


def step(what: str, *args: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", what, *map(str, args)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{what} {args[0]}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


# --- the comparison ---------------------------------------------------------------------------------------------------


def file_of(folder: Path, name: str, who: str, dtype: str) -> Path:
    return folder / f"{name}_{who}_{dtype}.onnx"


def compare(folder: Path, name: str, dtype: str, rounds: int, requirements: Requirements) -> None:
    runs: dict[str, list[dict[str, float]]] = {who: [] for who in WHO}
    for i in range(rounds):  # in turn, each time the other one first, so that noise of the machine meets both
        for who in WHO if i % 2 == 0 else WHO[::-1]:
            runs[who].append(step("run", name, file_of(folder, name, who, dtype)))
    best = {who: {key: min(run[key] for run in each) for key in each[0]} for who, each in runs.items()}
    print(f"\n{name}, {dtype}: the quickest of {rounds} x {RUNS} runs; processor time on one thread", flush=True)
    for who, found in best.items():
        print(f"  {who:10} {shown(found['wall']):>12}   {shown(found['processor']):>12}")
    mine, theirs = best["modelport"], best["optimizer"]
    speed = theirs["wall"] / mine["wall"]
    processor = theirs["processor"] / mine["processor"]
    requirements.check(
        f"{name} {dtype} at least {LEAST_SPEED} times as fast",
        round(speed, 2) >= LEAST_SPEED,
        f"{speed:.2f} times ({processor:.2f} by processor time)",
    )


def agree(folder: Path, name: str, requirements: Requirements) -> None:
    """Both compute the same, or their times would say nothing."""
    import numpy as np

    states = {
        (who, dtype): np.load(file_of(folder, name, who, dtype).with_suffix(".npy")) for who in WHO for dtype in DTYPES
    }
    ours = states["modelport", "fp32"]
    error = float(np.abs(ours - states["optimizer", "fp32"]).max())
    requirements.check(f"{name}: the fp32 files agree", error <= MOST_ERROR, f"{error:.1e}")
    for who in WHO:
        x = states[who, "int8"]
        cosine = float((x * ours).sum() / np.sqrt((x * x).sum() * (ours * ours).sum()))
        # The peer's loss is shown beside ours; only ours is required.
        if who == "modelport":
            requirements.check(f"{name}: int8 agrees with fp32", cosine >= LEAST_COSINE, f"cosine {cosine:.4f}")
        else:
            print(f"          the optimizer's: cosine {cosine:.4f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(ENCODERS), help="one model")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each file (default: {ROUNDS})")
    parser.add_argument("--home", type=Path, help="keep the files in this folder, and use the peer's that are there")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        what, name, path = options.step
        print(json.dumps(STEPS[what](name, Path(path))))
        return 0
    requirements = Requirements()
    with tempfile.TemporaryDirectory(dir="build") as made:
        folder = (options.home or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name in [options.only] if options.only else ENCODERS:
            for who in WHO:
                if who == "modelport" or not file_of(folder, name, who, "int8").exists():
                    step(who, name, folder)
            for dtype in DTYPES:
                compare(folder, name, dtype, options.rounds, requirements)
            agree(folder, name, requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
