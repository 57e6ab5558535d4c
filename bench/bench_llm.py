#!/usr/bin/env python3
"""Language models for onnxruntime next to onnxruntime-genai's own builder: export, memory, prefill and decoding.

Qwen3 with the sizes of 0.6B and random weights, 2 threads. Exits with 1 and a list when a requirement is missed. Every
export is a process of its own. Files are compared by processes that take turns, a prompt or some tokens at a time, so
that what else the machine does meets all of them. A process in which the weights came to lie in better pages of memory
stays up to 5 % quicker as long as it lives, so that all of them are started anew in each of several rounds. What counts
is the mean of the rounds: of a prompt each is the ratio of the quickest readings, of a text the median of its turns'. A
long text is generated at its end and in samples at every length, with the tokens between them read at once, and counts
by the time that all of it takes. mobius-onnx is a peer of exports where it can be installed, into a folder of its own.
`--long` adds a prompt and a text of 4,096 tokens, which take hours; `--tokens` is a shorter text, `--only` one part,
`--rounds` another number of them.

`--files OURS THEIRS` exports nothing and measures two folders that are there, with `--prompts`, `--tokens` and
`--cores`, so that one row can be measured again while nothing else runs:

    bench/bench_llm.py --files build/llm/ours-int4 build/llm/theirs-int4 --prompts 16 4096 --cores 0,1

What a step spends its time on, at any length of text and without generating it, is shown by bench_llm_nodes.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from bench_onnx import in_own_process, whole_command
from llm_players import BURST_OF_LONG, LATE, THREADS, Player, readings, turns_of
from requirements import Requirements, Stolen, seconds, shown

LEAST_EXPORT_RATIO = 4.0  # of the builder's time, int4 and linked fp32
MOST_MEMORY = 0.25  # of the builder's peak
LEAST_SPEED = 1.0  # of the builder's tokens per second, in all
PROMPTS, TEXT, LONG = (16, 512), 256, 4096
ROUNDS, LONG_ROUNDS = 6, 2  # in which processes are started anew, each time another one first; few of long prompts
DTYPES = ("int4", "fp32")
MOBIUS = Path(__file__).resolve().parent.parent / "build" / "mobius-onnx"
# What of its needs the environment has not, or has in a version that other peers want.
MOBIUS_PACKAGES = ("mobius-onnx", "onnxscript>=0.7.1", "onnx-ir", "onnx-shape-inference")


def measure_bandwidth() -> float:
    """Bytes per second of memory that is read once, in order, the quickest run; far more than caches hold."""
    import torch

    torch.set_num_threads(THREADS)
    numbers = torch.ones(1 << 28)
    return numbers.nbytes / min(seconds(numbers.sum) for _ in range(8))


# --- the parts --------------------------------------------------------------------------------------------------------


def exports(home: Path, requirements: Requirements) -> None:
    checkpoint = home / "checkpoint"
    for dtype in DTYPES:
        flags = ["--dtype", dtype] if dtype == "int4" else ["--weights", "link"]
        ours = ["modelport", "export", "onnx", str(checkpoint), str(home / f"ours-{dtype}"), "--for", "genai"]
        builder = ["onnxruntime_genai.models.builder", "-i", str(checkpoint), "-e", "cpu"]
        builder += ["-o", str(home / f"theirs-{dtype}"), "-p", dtype, "-c", str(home / "cache")]
        stolen = Stolen()
        # Twice each, in turns, and the quicker one counts: what else the machine does only adds to a time.
        runs = [(whole_command([*ours, "--no-check", *flags]), whole_command(builder)) for _ in range(2)]
        (mine, my_peak), (theirs, their_peak) = map(min, zip(*runs, strict=True))
        print(f"\n{dtype}{' (ours linked)' if dtype == 'fp32' else ''}: export{stolen}", flush=True)
        print(f"  modelport        {shown(mine):>12}  {my_peak:8,.0f} MiB")
        print(f"  genai's builder  {shown(theirs):>12}  {their_peak:8,.0f} MiB")
        ratio, share = theirs / mine, my_peak / their_peak
        requirements.check(
            f"{dtype} export {LEAST_EXPORT_RATIO:.0f} times faster", ratio >= LEAST_EXPORT_RATIO, f"{ratio:.1f} times"
        )
        requirements.check(f"{dtype} export in a quarter of its memory", share <= MOST_MEMORY, f"{share:.2f} of it")
        if dtype == "fp32":  # it has no int4
            mobius(checkpoint, home / "mobius-fp32", mine, my_peak)


def mobius(checkpoint: Path, out: Path, mine: float, my_peak: float) -> None:
    """A further peer of exports. It wants another onnxscript than transformers' exporter, so it lies in a folder that
    only its own process sees."""
    if not (MOBIUS / "mobius").exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(MOBIUS)]
        done = subprocess.run([*install, *MOBIUS_PACKAGES], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"  mobius-onnx      left out, it cannot be installed: {done.stderr.strip().splitlines()[-1]}")
            return
    build = ["mobius", "build", "--config", str(checkpoint), str(out), "--ep", "cpu", "--runtime", "ort-genai"]
    try:
        theirs, peak = whole_command(build, {**os.environ, "PYTHONPATH": str(MOBIUS)})
    except RuntimeError as error:
        print(f"  mobius-onnx      left out, its export failed: {str(error).strip().splitlines()[-1]}")
        return
    print(f"  mobius-onnx      {shown(theirs):>12}  {peak:8,.0f} MiB", end="")
    print(f"  (we are {theirs / mine:.1f} times faster, in {my_peak / peak:.2f} of its memory)")


class Size(NamedTuple):
    """Of what is measured: tokens of a prompt and of the text after it, and how many rounds."""

    length: int
    tokens: int
    rounds: int


def sizes(options: argparse.Namespace) -> list[Size]:
    pairs = [(length, options.tokens) for length in options.prompts]
    if options.long:
        pairs += [(LONG, options.tokens), (PROMPTS[0], LONG)]
    return [Size(*pair, options.rounds or (LONG_ROUNDS if pair[0] >= LONG else ROUNDS)) for pair in pairs]


def weight_bytes(folder: Path) -> int:
    """What a step reads: all weights, for the embedding is the head as well."""
    return sum(path.stat().st_size for path in folder.iterdir() if ".onnx" in path.name)


class Rates(NamedTuple):
    """Tokens per second in each turn of a round, and how many tokens of the text a turn stands for."""

    prefill: list[float]
    decode: list[float]
    stands_for: list[int]

    @property
    def late(self) -> list[float]:
        """Of the last tokens of a long text, where the cache is longest."""
        return self.decode[-LATE // BURST_OF_LONG :]

    @property
    def whole(self) -> list[float]:
        """Of all tokens of a long text in one, as they count for those who wait for it."""
        return [sum(self.stands_for) / sum(n / rate for n, rate in zip(self.stands_for, self.decode, strict=True))]


def every(rounds: list[Rates], key: str) -> list[float]:
    return [rate for rates in rounds for rate in getattr(rates, key)]


def round_of_turns(folders: dict[str, Path], length: int, tokens: int) -> dict[str, Rates]:
    players: dict[str, Player] = {}
    found = {who: Rates([], [], []) for who in folders}
    try:
        for who, folder in folders.items():
            players[who] = Player("load" if "load" in who else "genai", folder, length, tokens)
        for i, has_text in enumerate(readings(length)):
            for turn in [None, *(turns_of(tokens) if has_text else [])]:  # the prompt is the first one
                for who, player in players.items():  # always in this order: nobody has two turns without a break
                    time_s = player.turn()
                    if turn is not None:
                        found[who].decode.append((turn.tokens - turn.cold) / time_s)
                        found[who].stands_for.append(turn.read + turn.tokens)
                    elif i > 0:
                        found[who].prefill.append(length / time_s)
    finally:
        for player in players.values():
            player.close()
    return found


def rates_in_rounds(folders: dict[str, Path], length: int, tokens: int, rounds: int) -> dict[str, list[Rates]]:
    found: dict[str, list[Rates]] = {who: [] for who in folders}
    for i in range(rounds):
        names, first = list(folders), i % len(folders)
        order = {who: folders[who] for who in names[first:] + names[:first]}
        for who, rates in round_of_turns(order, length, tokens).items():
            found[who].append(rates)
    return found


def ratios(mine: list[Rates], theirs: list[Rates], key: str) -> list[float]:
    """Of speeds, one of each round; of a round's prompts that of the quickest, for some of them allocate."""
    if key == "prefill":
        return [max(a.prefill) / max(b.prefill) for a, b in zip(mine, theirs, strict=True)]
    pairs = [(getattr(a, key), getattr(b, key)) for a, b in zip(mine, theirs, strict=True)]
    return [median(a / b for a, b in zip(*pair, strict=True)) for pair in pairs]


def speeds(name: str, folders: dict[str, Path], size: Size, requirements: Requirements) -> None:
    length, tokens, rounds = size
    stolen = Stolen()
    found = rates_in_rounds(folders, length, tokens, rounds)
    taken, bandwidth = str(stolen), measure_bandwidth()
    print(f"\n{name}, prompt of {length}, {tokens} tokens after it: tokens per second", end="")
    print(f"; memory is read at {bandwidth / 1e9:.1f} GB/s{taken}", flush=True)
    for who, rates in found.items():
        prefill = max(every(rates, "prefill"))
        decode = median(every(rates, "whole" if tokens > LATE else "decode"))
        share = decode * weight_bytes(folders[who]) / bandwidth
        print(f"  {who:22} prefill {prefill:8.1f}  decode {decode:6.2f}, ", end="")
        if tokens > LATE:
            print(f"last {LATE} {median(every(rates, 'late')):6.2f}, ", end="")
        print(f"{share:.0%} of the bandwidth by weights alone")
    # Of a short text the last steps are all steps.
    keys = ["prefill", "decode"] + ["whole", "late"] * (tokens > LATE)
    for who in [who for who in folders if who != "theirs"]:
        for key in keys:
            of_rounds = ratios(found[who], found["theirs"], key)
            ratio = fmean(of_rounds)
            what = f"{name} {key}, {length} and {tokens} tokens, {who}: {LEAST_SPEED} of the builder's files"
            spread = f" ({min(of_rounds):.2f} to {max(of_rounds):.2f})" if len(of_rounds) > 1 else ""
            # Rounds differ by more than the third digit of their mean.
            requirements.check(what, round(ratio, 2) >= LEAST_SPEED, f"{ratio:.2f}{spread}")


def compared(ours: Path, theirs: Path, only: str | None) -> dict[str, Path]:
    folders = {"theirs": theirs}
    if only != "load":
        folders["ours"] = ours
    if only != "genai":
        folders["ours, modelport.load"] = ours
    return folders


def every_speed(home: Path, options: argparse.Namespace, requirements: Requirements) -> None:
    for size in sizes(options):
        for dtype in DTYPES:
            folders = compared(home / f"ours-{dtype}", home / f"theirs-{dtype}", options.only)
            speeds(dtype, folders, size, requirements)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help=f"a prompt and a text of {LONG:,} tokens as well")
    parser.add_argument("--prompts", type=int, nargs="+", default=PROMPTS, help="tokens of prompts (default: 16 512)")
    parser.add_argument("--tokens", type=int, default=TEXT, help=f"tokens after a prompt (default: {TEXT})")
    parser.add_argument("--rounds", type=int, help=f"of processes (default: {ROUNDS}, {LONG_ROUNDS} of long prompts)")
    parser.add_argument("--only", choices=["exports", "genai", "load"], help="exports alone, or one of two clients")
    parser.add_argument("--home", type=Path, help="keep checkpoint and exports in this folder")
    parser.add_argument("--files", type=Path, nargs=2, metavar=("OURS", "THEIRS"), help="measure these, export nothing")
    parser.add_argument("--cores", help=f"processors to run on, such as 0,1 (there are {THREADS} threads)")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})  # what is started inherits it
    requirements = Requirements()
    if options.files:
        ours, theirs = (folder.resolve() for folder in options.files)
        for size in sizes(options):
            speeds(ours.name, compared(ours, theirs, options.only), size, requirements)
        return requirements.verdict()
    with tempfile.TemporaryDirectory(dir="build") as made:
        home = (options.home or Path(made)).resolve()
        if not (home / "checkpoint").exists():
            in_own_process("checkpoint", home / "checkpoint")
        exports(home, requirements)
        if options.only != "exports":
            every_speed(home, options, requirements)
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
