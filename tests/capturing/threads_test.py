"""Captures in several threads: each gives the graph that it gives alone, and the process is as it was afterwards."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_models import tiny
from zoo import ROWS

import modelport
from modelport.symbolic.replaced_attributes import replaced_here

THREADS, CAPTURES = 4, 13  # each
# Masks, caches, scans, substitutes of builtins, positions of images, remembered results, an encoder-decoder.
MODELS = ("qwen3 with a cache", "mamba", "recurrent_gemma", "qwen2_vl", "detr", "t5", "swin", "bert")
# Sizes of pictures that the model asks about are tried by value for seconds; t5 and recurrent_gemma show such trials.
AXES: dict[str, dict[str, Any]] = {"swin": {"dynamic_shapes": {"pixel_values": {0: torch.export.Dim("batch")}}}}


@pytest.fixture(autouse=True)
def threads_that_alternate_often() -> Any:
    before, kernels = sys.getswitchinterval(), torch.get_num_threads()
    sys.setswitchinterval(1e-4)
    torch.set_num_threads(1)
    yield
    sys.setswitchinterval(before)
    torch.set_num_threads(kernels)


def in_threads(*works: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def everything_of(owners: list[Any]) -> dict[tuple[str, str], Any]:
    """Attributes of modules and of the classes in them, and what the closures of their functions refer to."""
    found: dict[tuple[str, str], Any] = {}
    for owner in owners:
        for name, value in list(vars(owner).items()):
            if name in ("__warningregistry__", "__builtins__"):
                continue
            found[str(owner), name] = value
            if isinstance(value, type) and value.__module__ == getattr(owner, "__name__", None):
                found |= everything_of([value])
            function = getattr(value, "__func__", value)
            while str(getattr(function, "__module__", "")).startswith("transformers") and hasattr(
                function, "__wrapped__"
            ):
                cells = getattr(function, "__closure__", None) or ()
                found |= {(f"{owner}.{name}", f"{i} of {function}"): c.cell_contents for i, c in enumerate(cells)}
                function = function.__wrapped__
    return found


def owners_for(models: list[torch.nn.Module]) -> list[Any]:
    code = {sys.modules[type(module).__module__] for model in models for module in model.modules()}
    shared = [
        "masking_utils",
        "cache_utils",
        "modeling_utils",
        "modeling_rope_utils",
        "pytorch_utils",
        "initialization",
    ]
    code |= {sys.modules[f"transformers.{name}"] for name in shared}
    classes = [torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, torch._C._SymNode, torch.nn.Module]
    places = [torch, torch.nn.functional, torch.nn.init, torch.compiler, torch.special, *classes]
    return sorted({*code, *places, sys.modules["torch._higher_order_ops.associative_scan"]}, key=str)


def differences(before: dict[Any, Any], after: dict[Any, Any]) -> list[Any]:
    return [key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)]


def text_of(name: str, model: torch.nn.Module, inputs: dict[str, Any]) -> str:
    return str(modelport.capture(model, inputs, **AXES.get(name, {"dynamic": True})))


def test_fifty_captures_in_four_threads_give_what_they_give_alone_and_leave_everything_as_it_was() -> None:
    rows = [next(row for row in ROWS if str(row) == name) for name in MODELS]
    # transformers replaces torch's initialisers while it builds a model: that is done before, in one thread.
    built, *others = [[row.build() for row in rows] for _ in range(THREADS + 1)]
    alone = [text_of(name, model, inputs) for name, (model, inputs) in zip(MODELS, built, strict=True)]
    owners = owners_for([model for model, _ in built])
    before, settings = everything_of(owners), (torch.get_rng_state().tolist(), torch.get_default_dtype())
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(CAPTURES):
            which = (turn * (number + 1) + number) % len(rows)
            model, inputs = (built if turn % 2 else others[number])[which]  # shared by the threads, or not
            if text_of(MODELS[which], model, inputs) != alone[which]:
                wrong.append(MODELS[which])

    in_threads(*(functools.partial(work, number) for number in range(THREADS)))
    assert wrong == []
    assert differences(before, everything_of(owners)) == []
    assert settings == (torch.get_rng_state().tolist(), torch.get_default_dtype())


def test_a_patch_acts_in_its_thread_and_goes_with_the_last_who_needs_it_in_whatever_order_they_leave() -> None:
    class Owner:
        def name(self) -> str:
            return "original"

        @staticmethod
        def twice(x: int) -> int:
            return 2 * x

    before = dict(vars(Owner))
    patches = [replaced_here(Owner, "name", lambda name: lambda self: f"patched {name(self)}") for _ in range(2)]
    plain: list[Any] = []
    with replaced_here(Owner, "twice", lambda twice: lambda x: twice(x) + 1):
        assert Owner.twice(3) == Owner().twice(3) == 7
        patches[0].__enter__()
        patches[1].__enter__()
        in_threads(lambda: plain.extend([Owner().name(), Owner.twice(3), Owner().twice(3)]))
        assert plain == ["original", 6, 6] and Owner().name() == "patched patched original"
        patches[0].__exit__(None, None, None)
        assert Owner().name().startswith("patched")
        patches[1].__exit__(None, None, None)
    assert differences(before, dict(vars(Owner))) == []


class Meeting(torch.nn.Module):
    """Stops in the middle of its capture until somebody has looked."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self.look = look
        self.looked = False

    @staticmethod
    @functools.lru_cache(maxsize=4)
    def table(length: int) -> torch.Tensor:
        return torch.arange(length).sin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = int(x.shape[0] / 2)
        result = x[:half] + self.table(x.shape[1])
        if torch.compiler.is_exporting() and x.shape[0] * 0 == 0:
            in_threads(self.look)
        return result


def test_a_model_that_runs_in_another_thread_meanwhile_runs_as_ever() -> None:
    seen: list[Any] = []

    def look() -> None:
        seen.append(torch.compiler.is_exporting() | torch.compiler.is_compiling())
        seen.append(type(int(3.5)).__name__ == "int" and isinstance(3, int))
        seen.append(type(Meeting.table(5)) is torch.Tensor)
        torch.testing.assert_close(Meeting.table(5), torch.arange(5).sin())
        seen.append([piece.shape[0] for piece in torch.ones(5).split(split_size=2)])

    Meeting.table.cache_clear()
    graph = modelport.capture(Meeting(look).eval(), {"x": torch.randn(4, 5)}, dynamic=True)
    assert len(seen) >= 8  # with and without substitutes
    assert [seen[i : i + 4] for i in range(0, len(seen), 4)] == [[False, True, True, [2, 2, 1]]] * (len(seen) // 4)
    x = torch.randn(7, 6)
    torch.testing.assert_close(graph.run(x=x), x[:3] + torch.arange(6).sin())
    assert Meeting.table.cache_info().currsize == 1  # what the other thread asked for


def test_exports_of_one_model_with_different_flags_come_one_after_the_other() -> None:
    row = next(row for row in ROWS if str(row) == "bert")
    model, inputs = row.build()
    names: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}

    def work(hidden: bool) -> None:
        for _ in range(4):
            exported = modelport.DynamoExporter().export(model, {**inputs, "output_hidden_states": hidden})
            names[hidden].add(tuple(exported.captured.output_names))

    in_threads(*(functools.partial(work, hidden) for hidden in (True, False, True, False)))
    assert len(names[True]) == len(names[False]) == 1 and names[True] != names[False]
    assert model.config.output_hidden_states is False


def test_folders_captured_in_several_threads_keep_their_dtypes_and_leave_the_default_one(tmp_path: Path) -> None:
    dtypes = {"single": torch.float32, "brain": torch.bfloat16, "half": torch.float16}
    for name, dtype in dtypes.items():
        tiny("bert", num_hidden_layers=1).to(dtype).save_pretrained(tmp_path / name)
    inputs = {"input_ids": torch.randint(0, 99, (2, 7))}
    alone = {name: str(modelport.capture(tmp_path / name, inputs, dynamic=True)) for name in dtypes}
    before = everything_of([torch, torch.nn.init, torch.nn.functional, transformers.PreTrainedModel])
    wrong: list[str] = []

    def work(names: list[str]) -> None:
        for name in names * 3:
            if str(modelport.capture(tmp_path / name, inputs, dynamic=True)) != alone[name]:
                wrong.append(name)

    orders = [list(dtypes), list(reversed(dtypes)), ["brain", "single"], ["half", "brain"]]
    in_threads(*(functools.partial(work, order) for order in orders))
    assert wrong == [] and torch.get_default_dtype() == torch.float32
    after = everything_of([torch, torch.nn.init, torch.nn.functional, transformers.PreTrainedModel])
    assert differences(before, after) == []


def test_a_model_that_draws_random_numbers_leaves_the_generator_as_it_was_whoever_is_done_last() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(x.shape[0], 3) * torch.rand(3)

    before = torch.get_rng_state()

    def work() -> None:
        for _ in range(10):
            modelport.capture(noisy, (torch.ones(4, 3),), dynamic=True)

    in_threads(*[work] * THREADS)
    assert torch.equal(torch.get_rng_state(), before)
