"""`.pt2` files from strangers: nothing in them runs, and what is wrong is refused quickly."""

from __future__ import annotations

import collections
import copy
import io
import json
import os
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_generators
import torch
import transformers
from peak_memory import peak_memory
from tiny_models import tiny

import modelport

LEAF = {"type": None, "context": None, "children_spec": []}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> Any:
        return {"y": x * self.weight}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = modelport.DynamoExporter().export(Net().eval(), {"x": torch.ones(3)}, modelport.DynamoConfig())
    return program.save(tmp_path_factory.mktemp("pt2") / "plain.pt2")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], Path]:
    """A model that takes and gives a cache, its inputs and its file."""
    model = tiny("qwen3")
    ids = torch.arange(6).view(1, 6)
    with torch.no_grad():
        cache = model(input_ids=ids[:, :4], use_cache=True).past_key_values
    inputs = {"input_ids": ids[:, 4:], "past_key_values": cache}
    program = modelport.DynamoExporter().export(model, copy.deepcopy(inputs), modelport.DynamoConfig())
    return model, inputs, program.save(tmp_path_factory.mktemp("pt2") / "decoder.pt2")


def changed(source: Path, path: Path, change: Callable[[dict[str, Any]], None], **zip_options: Any) -> Path:
    """A copy of the archive with another program."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", **zip_options) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith("models/model.json"):
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(entry.filename, data)
    return path


def call_of(program: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in program["graph_module"]["module_call_graph"] if row["fqn"] == "")["signature"]


def with_argument(node: dict[str, Any], in_place_of_x: bool = False) -> Callable[[dict[str, Any]], None]:
    """The program called with a further argument of this structure."""

    def change(program: dict[str, Any]) -> None:
        call = call_of(program)
        spec = json.loads(call["in_spec"])
        keywords = spec[1]["children_spec"][1]
        if in_place_of_x:
            keywords["children_spec"] = [node]
        else:
            keywords["children_spec"].append(node)
            keywords["context"] = json.dumps([*json.loads(keywords["context"]), "more"])
        call["in_spec"] = json.dumps(spec)

    return change


def with_result(node: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(program: dict[str, Any]) -> None:
        call_of(program)["out_spec"] = json.dumps([1, node])

    return change


def refusal(path: Path) -> str:
    with pytest.raises(modelport.ExportError) as raised:
        modelport.load_pt2(path)
    assert raised.value.code == "E0103"
    return str(raised.value)


# --- structures -------------------------------------------------------------------------------------------------------


def test_a_decoder_with_its_cache_comes_back(decoder: Any) -> None:
    model, inputs, path = decoder
    loaded = modelport.load_pt2(path)
    with torch.no_grad():
        want = model(**copy.deepcopy(inputs))
    got = loaded.run(**copy.deepcopy(inputs))
    assert type(got) is type(want)
    assert type(got.past_key_values) is transformers.DynamicCache
    torch.testing.assert_close(got.logits, want.logits)
    for ours, theirs in zip(got.past_key_values.layers, want.past_key_values.layers, strict=True):
        assert type(ours) is type(theirs)
        torch.testing.assert_close(ours.keys, theirs.keys)


def test_what_was_loaded_is_written_as_it_was(decoder: Any, tmp_path: Path) -> None:
    _, inputs, path = decoder
    loaded = modelport.load_pt2(path)
    again = modelport.load_pt2(modelport.ExportedProgram(loaded).save(tmp_path / "again.pt2"))
    torch.testing.assert_close(again.run(**copy.deepcopy(inputs)).logits, loaded.run(**copy.deepcopy(inputs)).logits)


def test_a_decoder_that_torch_saved_is_loaded_in_a_fresh_process(decoder: Any) -> None:
    _, _, path = decoder
    code = f"import modelport; print(type(modelport.load_pt2({str(path)!r}).outputs.spec.type).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["gemma3", "gpt2", "t5"])
def test_caches_of_every_kind_come_back(name: str, tmp_path: Path, recwarn: Any) -> None:
    """Windows, layers of several kinds, and a cache of two caches."""
    model = tiny_generators.made(tiny_generators.t5 if name == "t5" else tiny_generators.DECODERS[name])
    ids = torch.arange(6).view(1, 6)
    inputs = {"input_ids": ids, "use_cache": True} | ({"decoder_input_ids": ids[:, :3]} if name == "t5" else {})
    path = modelport.DynamoExporter().export(model, inputs, modelport.DynamoConfig()).save(tmp_path / "model.pt2")
    recwarn.clear()
    got = modelport.load_pt2(path).run(**inputs)
    assert not [row for row in recwarn if "comes as a dict" in str(row.message)]
    with torch.no_grad():
        want = model(**inputs)
    assert type(got) is type(want) and type(got.past_key_values) is type(want.past_key_values)
    ours, theirs = (torch.utils._pytree.tree_leaves(out.past_key_values) for out in (got, want))
    torch.testing.assert_close(ours, theirs)


Point = collections.namedtuple("Point", ["a", "b"])


def test_containers_that_torch_writes_come_back(tmp_path: Path) -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: Any, pair: Any) -> Any:
            first, second = pair
            ordered = collections.OrderedDict(one=x + 1, two=[first["k"] * 2, (second,)])
            return {"ordered": ordered, 3: x, "point": Point(x, second)}

    torch.utils._pytree._register_namedtuple(Point, serialized_type_name="test.Point")
    args = (torch.ones(2), ({"k": torch.ones(3)}, torch.ones(4)))
    torch.export.save(torch.export.export(Nested(), args), tmp_path / "nested.pt2")
    got = modelport.load_pt2(tmp_path / "nested.pt2").run(x=args[0], pair=args[1])
    want = Nested()(*args)
    assert torch.utils._pytree.tree_structure(got) == torch.utils._pytree.tree_structure(want)
    torch.testing.assert_close(got["ordered"]["two"][0], want["ordered"]["two"][0])


def cache_node(context: Any, children: int = 0) -> dict[str, Any]:
    name = "transformers.cache_utils:DynamicCache"
    return {"type": name, "context": json.dumps(context), "children_spec": [LEAF] * children}


def state(**attributes: Any) -> dict[str, Any]:
    return {"_t": "obj", "p": "transformers.cache_utils:DynamicCache", "s": attributes}


@pytest.mark.parametrize(
    "tagged",
    [
        {"_t": "seq", "p": "os:system", "v": ["touch ran"]},
        {"_t": "seq", "p": "builtins:exec", "v": ["open('ran', 'w')"]},
        {"_t": "map", "p": "subprocess:Popen", "v": {"args": "touch ran"}},
        {"_t": "obj", "p": "evil:Thing", "s": {}},
        {"_t": "type", "p": "evil:Thing"},
        {"_t": "type", "p": "transformers.cache_utils:torch"},
        {"_t": "type", "p": "transformers.cache_utils:logging.sys"},
        {"_t": "dtype", "n": "os"},
        {"_t": "dtype", "n": "hub"},
        {"_t": "device", "s": "no such device"},
        {"_t": "tensor", "i": 7},
        {"_t": "tensor", "i": -1},
        {"_t": ["obj"], "p": "x"},
        {"_t": "unheard of"},
    ],
    ids=lambda tagged: f"{tagged['_t']} {tagged.get('p', tagged.get('n', ''))}",
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_cache_that_names_code_is_refused_and_runs_nothing(
    decoder: Any, plain: Path, tmp_path: Path, monkeypatch: Any, tagged: dict[str, Any], inside: bool
) -> None:
    """`decoder` has made the classes of caches known to torch, as any capture of a model that generates does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nclass Thing: pass\n")
    context = state(layers=[tagged]) if inside else tagged
    path = changed(plain, tmp_path / "hostile.pt2", with_argument(cache_node(context)))
    assert "its inputs have" in refusal(path)
    assert not (tmp_path / "ran").exists() and "evil" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "context"),
    [
        (
            "collections.defaultdict",
            {"default_factory_module": "evil", "default_factory_name": "f", "dict_context": []},
        ),
        ("collections.namedtuple", "evil.Thing"),
        ("evil.Thing", "[]"),
        ("evil:Thing", json.dumps(state())),
        ("transformers.evil.Thing", "[]"),
        ("transformers.models.bert.modeling_bert.torch", "[]"),
        ("transformers.pipeline", "[]"),
        ("builtins.dict", json.dumps([["k"]])),
        ("builtins.dict", json.dumps({"__enum__": True, "fqn": "evil:Thing", "name": "x"})),
        ("transformers.modeling_outputs.BaseModelOutput", json.dumps(["__class__"])),
    ],
)
def test_other_types_are_refused_among_inputs_and_left_out_of_results(
    plain: Path, tmp_path: Path, monkeypatch: Any, kind: str, context: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nclass Thing: pass\nf = list\n")
    node = {"type": kind, "context": context, "children_spec": [LEAF]}
    assert "its inputs have" in refusal(changed(plain, tmp_path / "in.pt2", with_argument(node, in_place_of_x=True)))
    result = changed(plain, tmp_path / "out.pt2", with_result(node))
    with pytest.warns(UserWarning, match="it comes as a dict"):
        loaded = modelport.load_pt2(result)
    assert isinstance(loaded.run(x=torch.ones(3)), dict)
    assert not (tmp_path / "ran").exists() and "evil" not in sys.modules


def test_a_cache_whose_tensors_are_in_another_order_is_refused(plain: Path, tmp_path: Path) -> None:
    swapped = state(layers=[{"_t": "tensor", "i": 1}, {"_t": "tensor", "i": 0}])
    path = changed(plain, tmp_path / "swapped.pt2", with_argument(cache_node(swapped, 2)))
    assert "in another order" in refusal(path)


def test_a_structure_with_other_leaves_than_the_program_is_refused(plain: Path, tmp_path: Path) -> None:
    assert "differ" in refusal(changed(plain, tmp_path / "in.pt2", with_argument(LEAF)))
    two = {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]}
    assert "differ" in refusal(changed(plain, tmp_path / "out.pt2", with_result(two)))


# --- size and damage --------------------------------------------------------------------------------------------------


def test_brackets_without_end_are_refused(plain: Path, tmp_path: Path) -> None:
    brackets = "[" * 200_000 + "]" * 200_000

    def in_context(program: dict[str, Any]) -> None:
        call = call_of(program)
        spec = json.loads(call["in_spec"])
        spec[1]["children_spec"][1]["context"] = brackets
        call["in_spec"] = json.dumps(spec)

    def as_structure(program: dict[str, Any]) -> None:
        call_of(program)["out_spec"] = brackets

    for change in (in_context, as_structure):
        assert "nested deeper" in refusal(changed(plain, tmp_path / "deep.pt2", change))
    with zipfile.ZipFile(tmp_path / "program.pt2", "w") as archive:
        archive.writestr("model/models/model.json", brackets)
    assert "nested deeper" in refusal(tmp_path / "program.pt2")


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def test_a_payload_with_a_wrong_check_sum_is_refused(plain: Path, tmp_path: Path) -> None:
    whole = plain.read_bytes()
    weight = torch.arange(3.0).numpy().tobytes()
    assert whole.count(weight) == 1
    path = tmp_path / "changed.pt2"
    path.write_bytes(whole.replace(weight, torch.arange(3.0, 6.0).numpy().tobytes()))
    assert "wrong check sum" in refusal(path)


def test_a_packed_payload_with_a_wrong_check_sum_is_refused(plain: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packed.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries(plain).items():
            archive.writestr(name, data)
    assert torch.equal(modelport.load_pt2(tmp_path / "packed.pt2").run(x=torch.ones(3))["y"], torch.arange(3.0))
    data = bytearray((tmp_path / "packed.pt2").read_bytes())
    sum_of = zlib.crc32(torch.arange(3.0).numpy().tobytes()).to_bytes(4, "little")
    directory = data.rindex(sum_of)
    data[directory] ^= 1
    (tmp_path / "damaged.pt2").write_bytes(data)
    assert "wrong check sum" in refusal(tmp_path / "damaged.pt2")


def test_an_archive_that_unpacks_to_gigabytes_is_refused(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in entries(plain).items():
            archive.writestr(name, b"\0" * (1 << 29) if name.endswith("weight_0") else data)
    assert path.stat().st_size < 4 << 20
    started = time.monotonic()
    with peak_memory() as peak:
        assert "unpacks to more than" in refusal(path)
    assert time.monotonic() - started < 5
    assert peak.grown < 100 << 20


def test_entries_that_lie_over_each_other_are_refused(plain: Path, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("model/models/model.json", "{}" + " " * 100_000)
        first = archive.infolist()[0]
        for i in range(5):
            again = copy.copy(first)
            again.filename = f"model/data/weights/{i}"
            archive.filelist.append(again)
    path = tmp_path / "overlap.pt2"
    path.write_bytes(out.getvalue())
    assert "larger than it is" in refusal(path)


class Many(torch.nn.Module):
    """Weights that are parts of one storage."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        whole = torch.zeros(count + size)
        for i in range(count):
            self.register_parameter(f"w{i}", torch.nn.Parameter(whole[i : i + size]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight in self.parameters():
            x = x + weight[0]
        return x


def test_an_entry_of_many_weights_is_unpacked_once(plain: Path, tmp_path: Path) -> None:
    """Hundreds of weights in one packed entry of 16 MB: unpacked for each, they would take gigabytes."""
    size = 4 << 20
    program = torch.export.export(Many(3, size), (torch.ones(2),))
    torch.export.save(program, tmp_path / "many.pt2")
    packed = tmp_path / "packed.pt2"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in entries(tmp_path / "many.pt2").items():
            archive.writestr(name, data)
    records = [name for name in entries(packed) if "/weights/weight_" in name]
    assert len(records) == 1, "torch writes one record for a storage"
    with peak_memory() as peak:
        loaded = modelport.load_pt2(packed)
    assert peak.grown < 2 * 4 * size
    assert torch.equal(loaded.run(torch.ones(2)), torch.ones(2))


def test_weights_that_repeat_a_record_are_refused_before_they_fill_the_memory(plain: Path, tmp_path: Path) -> None:
    """Each is as large as the record and lies in another order: hundreds of copies of one file."""
    rows = 1 << 11
    model = Many(1, 4)
    del model.w0
    base = torch.zeros(rows, rows)
    count = 40
    for i in range(count):
        model.register_parameter(f"w{i}", torch.nn.Parameter(base.T[: rows - i]))
    model.forward = lambda x: x + sum(getattr(model, f"w{i}")[0, 0] for i in range(count))
    torch.export.save(torch.export.export(model, (torch.ones(2),)), tmp_path / "views.pt2")
    if os.path.getsize(tmp_path / "views.pt2") > 2 * 4 * rows * rows:
        pytest.skip("this torch writes a record for each view")
    with peak_memory() as peak:
        assert "much larger than the file" in refusal(tmp_path / "views.pt2")
    assert peak.grown < 12 * 4 * rows * rows
