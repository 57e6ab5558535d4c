#!/usr/bin/env python3
"""ONNX export next to transformers.exporters and onnxruntime-genai, and the speed of the files in onnxruntime.

Exits with 1 and a list when a requirement is missed. Each large export runs in a process of its own, so that its peak
memory is its own. `--quick` leaves the peers out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from requirements import Requirements, median, peak_mib, seconds, shown

LEAST_TINY_RATIO = 200.0
LEAST_LARGE_RATIO = 20.0
MOST_MEMORY = 1.1  # of the model's own
LEAST_BUILDER_RATIO = 3.0
MOST_LINK_GIB = 1.2
MOST_NODES = 2457 // 2  # half of the transformers exporter's optimized file
PREFILL = (1, 128)


def bert_base() -> Any:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return BertModel(BertConfig()).eval()


def text(batch: int, length: int) -> dict[str, Any]:
    import torch

    ids = torch.arange(batch * length).view(batch, length) % 900
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


# --- what runs in processes of its own --------------------------------------------------------------------------------


def large_model(folder: Path) -> Any:
    from transformers import Qwen3ForCausalLM

    model = Qwen3ForCausalLM.from_pretrained(folder).eval()
    # Weights that are still in the file would count as memory of whoever reads them first.
    for parameter in model.parameters():
        parameter.sum()
    return model


def step_ours(checkpoint: Path, out: Path) -> dict[str, float]:
    import modelport

    model = large_model(checkpoint)
    before = peak_mib()
    config = modelport.OnnxConfig(dynamic=True)
    return {
        "own_mib": before,
        "time": seconds(lambda: modelport.OnnxExporter().export(model, text(2, 7), config).save(out)),
        "peak_mib": peak_mib(),
    }


def step_theirs(checkpoint: Path, out: Path) -> dict[str, float]:
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

    model = large_model(checkpoint)
    before = peak_mib()

    def export() -> None:
        OnnxExporter().export(model, text(2, 7), OnnxConfig(dynamic=True, output_path=str(out)))

    return {"own_mib": before, "time": seconds(export), "peak_mib": peak_mib()}


def step_bert(out: Path, who: str) -> dict[str, float]:
    model = bert_base()
    if who == "ours":
        import modelport

        modelport.OnnxExporter().export(model, text(2, 9), modelport.OnnxConfig(dynamic=True)).save(out)
    else:
        from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

        OnnxExporter().export(model, text(2, 9), OnnxConfig(dynamic=True, output_path=str(out)))
    return {}


def step_checkpoint(folder: Path) -> dict[str, float]:
    import torch
    from models import qwen3_06b_config
    from transformers import Qwen3ForCausalLM

    torch.manual_seed(0)
    Qwen3ForCausalLM(qwen3_06b_config()).save_pretrained(folder)
    write_tokenizer(folder)
    return {}


def write_tokenizer(folder: Path) -> None:
    """A small one of our own: the builder wants to copy something."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {"<s>": 0, "</s>": 1, "a": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", bos_token="<s>").save_pretrained(folder)


STEPS = {
    "checkpoint": step_checkpoint,
    "ours": step_ours,
    "theirs": step_theirs,
    "bert": step_bert,
}


def in_own_process(step: str, *arguments: Any) -> dict[str, float]:
    """The step's numbers; `wall` is the whole process, imports included."""
    command = [sys.executable, __file__, "--step", step, *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"{step}: {done.stderr[-2000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "wall": wall}


def whole_command(module: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Seconds and peak MiB of `python -m module ...`."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, "-m", *module], stdout=said, stderr=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{module[0]}: {said.read()[-2000:].decode(errors='replace')}")
    return wall, usage.ru_maxrss / 1024


# --- the comparisons --------------------------------------------------------------------------------------------------


def tiny(quick: bool, requirements: Requirements) -> None:
    from models import tiny_qwen3

    import modelport

    print("\nQwen3, 28 layers, hidden 64, dynamic, to ONNX and written; ours the median of 5, the peer once")
    model = tiny_qwen3()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = modelport.OnnxConfig(dynamic=True)

        def write() -> Any:
            program = modelport.OnnxExporter().export(model, text(3, 7), config)
            program.save(folder / "ours.onnx")
            return program

        ours = median(write)
        nodes = nodes_in(folder / "ours.onnx")
        print(f"  modelport      {shown(ours):>12}  {nodes} nodes")
        requirements.check(f"at most {MOST_NODES} nodes", nodes <= MOST_NODES, str(nodes))
        if quick:
            return
        from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

        path = str(folder / "theirs.onnx")
        peer_config = OnnxConfig(dynamic=True, output_path=path)
        theirs = seconds(lambda: OnnxExporter().export(model, text(3, 7), peer_config))
        print(f"  transformers   {shown(theirs):>12}  {nodes_in(Path(path))} nodes")
        ratio = theirs / ours
        requirements.check(f"{LEAST_TINY_RATIO:.0f} times faster", ratio >= LEAST_TINY_RATIO, f"{ratio:.0f} times")


def nodes_in(path: Path) -> int:
    import onnx

    return len(onnx.load(str(path), load_external_data=False).graph.node)


def large(checkpoint: Path, folder: Path, requirements: Requirements) -> None:
    print("\nQwen3 with the sizes of 0.6B, fp32, in memory, to ONNX; each in its own process", flush=True)
    ours = in_own_process("ours", checkpoint, folder / "ours.onnx")
    print(f"  modelport      {shown(ours['time']):>12}  peak {ours['peak_mib']:6.0f} MiB, own {ours['own_mib']:.0f}")
    memory = ours["peak_mib"] / ours["own_mib"]
    requirements.check(
        f"peak at most {MOST_MEMORY} times the model's own", memory <= MOST_MEMORY, f"{memory:.2f} times"
    )
    theirs = in_own_process("theirs", checkpoint, folder / "theirs.onnx")
    print(f"  transformers   {shown(theirs['time']):>12}  peak {theirs['peak_mib']:6.0f} MiB")
    ratio = theirs["time"] / ours["time"]
    requirements.check(f"{LEAST_LARGE_RATIO:.0f} times faster", ratio >= LEAST_LARGE_RATIO, f"{ratio:.0f} times")


def linked(checkpoint: Path, folder: Path, requirements: Requirements) -> None:
    print("\nThe same from its folder, whole commands with their imports; neither compares values", flush=True)
    export = ["modelport", "export", "onnx", str(checkpoint), str(folder / "linked"), "--weights", "link", "--no-check"]
    ours, peak = whole_command(export)
    print(f"  modelport --weights link      {shown(ours):>10}  peak {peak:6.0f} MiB")
    gib = peak / 1024
    requirements.check(f"under {MOST_LINK_GIB} GiB", gib < MOST_LINK_GIB, f"{gib:.2f} GiB")
    build = ["onnxruntime_genai.models.builder", "-i", str(checkpoint), "-o", str(folder / "genai")]
    theirs, peak = whole_command([*build, "-p", "fp32", "-e", "cpu", "-c", str(folder / "cache")])
    print(f"  onnxruntime-genai's builder   {shown(theirs):>10}  peak {peak:6.0f} MiB")
    ratio = theirs / ours
    requirements.check(f"{LEAST_BUILDER_RATIO:.0f} times faster", ratio >= LEAST_BUILDER_RATIO, f"{ratio:.1f} times")


def latency(name: str, ours: Path, theirs: Path, requirements: Requirements) -> None:
    """Both files in turn, so that noise of the machine meets both."""
    from modelport.runtimes.sessions import quiet_session

    feeds = {key: x.numpy() for key, x in text(*PREFILL).items()}
    sessions = []
    for path in (ours, theirs):
        session = quiet_session(path, threads=2)
        known = {i.name for i in session.get_inputs()}
        sessions.append((session, {key: x for key, x in feeds.items() if key in known}))
        session.run(None, sessions[-1][1])
    times: list[list[float]] = [[], []]
    for _ in range(9):
        for row, (session, given) in enumerate(sessions):
            times[row].append(seconds(lambda s=session, g=given: s.run(None, g)))
    mine, peer = (statistics.median(row) for row in times)
    print(f"  {name:22} modelport {shown(mine):>10}   transformers {shown(peer):>10}")
    # What two runs of one file differ by on a quiet machine.
    requirements.check(f"{name} at most the peer's latency", mine <= peer * 1.02, f"{mine / peer:.2f} of it")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the peers and the large model")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.step:
        print(json.dumps(STEPS[options.step](*(Path(p) if "/" in p else p for p in options.paths))))
        return 0
    requirements = Requirements()
    tiny(options.quick, requirements)
    if not options.quick:
        with tempfile.TemporaryDirectory(dir="build") as name:
            folder = Path(name).resolve()
            checkpoint = folder / "checkpoint"
            in_own_process("checkpoint", checkpoint)
            large(checkpoint, folder, requirements)
            linked(checkpoint, folder, requirements)
            print("\nThe files in onnxruntime, 1 x 128 tokens, 2 threads; median of 9", flush=True)
            for who in ("ours", "theirs"):
                in_own_process("bert", folder / f"bert_{who}.onnx", who)
            latency("bert-base", folder / "bert_ours.onnx", folder / "bert_theirs.onnx", requirements)
            latency("Qwen3-0.6B prefill", folder / "ours.onnx", folder / "theirs.onnx", requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
