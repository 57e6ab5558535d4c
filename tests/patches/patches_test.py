"""Model code that a capture replaces: each target is there, and each replacement gives what the original gives."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers as t
from tiny_models import tiny
from transformers import masking_utils

import modelport
from modelport import ExportError
from modelport.base import object_nodes
from modelport.generation.watching import refuse_if_it_cannot_generate
from modelport.models import transformers_private
from modelport.patches import masks, packed_items, scans
from modelport.patches.agreement import where_values_agree
from modelport.patches.places import Found, Kind, Patch, places_of_patch
from modelport.patches.registry import KINDS, PATCHES, resolve, table

ROOT = Path(__file__).resolve().parents[2]
GRIDS = torch.tensor([[1, 4, 6], [4, 8, 4], [1, 2, 2], [2, 2, 4]])
PATCH_COUNT = int(GRIDS.prod(-1).sum())


# Code of transformers that the kinds were written for: which functions they find there.
KNOWN = (
    ("vision_utils.get_vision_position_ids", "vision_position_ids"),
    ("vision_utils.get_vision_window_index", "window_index"),
    ("models.qwen3_omni_moe.modeling_qwen3_omni_moe.get_audio_cu_seqlens", "audio_windows"),
    ("models.qwen3_asr.modeling_qwen3_asr.get_audio_cu_seqlens", "audio_windows"),
    ("models.rwkv.modeling_rwkv.rwkv_linear_attention_cpu", "rwkv_attention"),
    ("models.qwen2_vl.modeling_qwen2_vl.Qwen2VLModel.get_rope_index", "rope_index"),
    ("models.qwen2_5_vl.modeling_qwen2_5_vl.Qwen2_5_VLModel.get_rope_index", "rope_index"),
    (
        "models.qwen3_omni_moe.modeling_qwen3_omni_moe.Qwen3OmniMoePreTrainedModelForConditionalGeneration.get_rope_index",
        "rope_index_by_tokens",
    ),
    ("models.hunyuan_vl.modeling_hunyuan_vl.HunYuanVLModel.get_rope_index", "rope_index_of_images"),
    ("models.siglip2.modeling_siglip2.Siglip2VisionEmbeddings.resize_positional_embeddings", "resized_positions"),
    ("models.video_llama_3.modeling_video_llama_3.VideoLlama3VisionModel.pixel_unshuffle", "unshuffled"),
    ("models.recurrent_gemma.modeling_recurrent_gemma.RecurrentGemmaRglru._rnn_scan", "linear_scan"),
    ("models.xlstm.modeling_xlstm.xLSTMBackend.forward", "mlstm_in_one_chunk"),
)


@pytest.mark.parametrize("target", [patch.target for patch in PATCHES])
def test_the_target_of_a_patch_is_there(target: str) -> None:
    assert callable(resolve(target))


@pytest.mark.parametrize(("name", "replacement"), KNOWN)
def test_a_function_is_known_by_its_parameters(name: str, replacement: str) -> None:
    function = inspect.unwrap(resolve(f"transformers.{name}"))
    [kind] = [kind for kind in KINDS if kind.has(function)]
    assert kind.factory.__name__ == replacement


def test_each_kind_of_function_is_there() -> None:
    assert {kind.factory.__name__ for kind in KINDS} == {replacement for _, replacement in KNOWN}


@pytest.mark.parametrize("patch", (*PATCHES, *KINDS), ids=lambda patch: patch.factory.__name__)
def test_a_patch_names_a_test_that_exists_and_says_why(patch: Patch | Kind) -> None:
    file, _, test = patch.test.partition("::")
    assert re.search(rf"^def {re.escape(test)}\(", (ROOT / file).read_text(), re.MULTILINE), patch.test
    assert len(patch.why) > 20


@pytest.mark.parametrize("name", transformers_private.NAMES)
def test_a_private_name_of_transformers_is_there(name: str) -> None:
    resolve(name)


class _OfAnotherRelease:
    """A model of a transformers that has none of the names."""

    def can_generate(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model: transformers_private.dtype_plan(model, torch.float16), "_get_dtype_plan"),
        (lambda model: transformers_private.make_missing(model, {"weight"}), "_move_missing_keys_from_meta_to_device"),
        (lambda model: transformers_private.classes_for(model, None), "_model_mapping"),
        (refuse_if_it_cannot_generate, "_prepare_cache_for_generation"),
    ],
)
def test_a_private_name_that_is_not_there_is_told_by_what_needs_it(call: Any, name: str) -> None:
    with pytest.raises(ExportError, match=f"cannot be done beside transformers .*{name}") as caught:
        call(_OfAnotherRelease())
    assert caught.value.code == "E0307" and "pip install 'transformers==" in str(caught.value)


class _OfAnOlderRelease:
    def updated(self, states: Any, **kwargs: Any) -> Any:
        return states


@pytest.mark.parametrize(
    ("parameters", "replaced"),
    [("self, states", True), ("self, ...", True), ("self, states, index", False), ("", True)],
)
def test_a_patch_leaves_code_with_other_parameters_alone(parameters: str, replaced: bool) -> None:
    patch = Patch(f"{__name__}._OfAnOlderRelease.updated", "", "", lambda original: original, Found.AT_HOME, parameters)
    places = [(_OfAnOlderRelease, "updated")] if replaced else []
    assert list(places_of_patch(patch, [], set())) == places


def test_patterns_of_optional_weights_may_be_missing() -> None:
    assert transformers_private.optional_weights(_OfAnotherRelease()) == []


def test_a_transformers_whose_exporters_do_not_load_has_no_plugin_and_all_the_rest() -> None:
    code = "import sys\nsys.modules['transformers.exporters'] = None\nimport modelport\nmodelport.OnnxExporter()\n"
    code += "try:\n    import modelport.plugin\nexcept modelport.ExportError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "error[E0307]: import modelport.plugin cannot be done beside transformers" in done.stdout


def test_private_names_of_transformers_are_used_in_one_file_and_its_exporters_by_the_plugin_alone() -> None:
    names = {name.rpartition(".")[2] for name in transformers_private.NAMES} | {"_is_hf_initialized"}
    overridden = {"_prepare_cache_for_generation", "_expand_inputs_for_generation", "_validate_generated_length"}
    for file in (ROOT / "python" / "modelport").rglob("*.py"):
        path, text = file.relative_to(ROOT / "python" / "modelport").as_posix(), file.read_text()
        is_plugin = path == "plugin/__init__.py"  # whose purpose is to put ours into theirs
        assert is_plugin or not re.search(r"(from|import) transformers\.exporters", text), path
        if path != "models/transformers_private.py":
            allowed = overridden if path == "running/generating.py" else set()
            assert not [name for name in names - allowed if re.search(rf"\b{name}\b", text)], path


def test_weights_that_a_checkpoint_lacks_get_their_values() -> None:
    with torch.device("meta"):
        model = tiny("bert")
    transformers_private.make_missing(model, set(model.state_dict()))
    assert not any(tensor.is_meta for tensor in model.state_dict().values())
    assert model.embeddings.LayerNorm.weight.eq(1).all()


def test_the_classes_of_an_auto_class_are_those_of_the_configuration() -> None:
    assert transformers_private.classes_for(t.AutoModelForMaskedLM, t.BertConfig()) == [t.BertForMaskedLM]
    assert transformers_private.classes_for(t.AutoModelForMaskedLM, t.ViTConfig()) == []


def test_weights_that_stay_in_float32_are_planned_so() -> None:
    plan = transformers_private.dtype_plan(tiny("t5"), torch.float16)
    assert torch.float32 in plan.values()


def test_caches_are_described_as_transformers_describes_them() -> None:
    from transformers.exporters import exporter_dynamo as theirs

    cache = t.DynamicCache()
    cache.update(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), 0)
    leaves, description = object_nodes._flatten(cache)
    their_leaves, their_description = theirs._pytree_flatten(cache)
    assert description == their_description
    assert all(ours is other for ours, other in zip(leaves, their_leaves, strict=True))
    assert object_nodes._unflatten(leaves, description).get_seq_length() == 3


def test_names_of_transformers_that_are_patched_do_not_become_more() -> None:
    names = [patch.target for patch in PATCHES if patch.target.startswith("transformers.")]
    assert len(names) <= 7, "a way to capture the code as it is serves more models than one more patch"


def test_the_table_of_patches_in_the_documents_is_the_registry() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    _, _, rest = text.partition("<!-- patches -->\n")
    assert rest.partition("<!-- end -->")[0] == table()


def original(ending: str) -> Any:
    names = [*(patch.target for patch in PATCHES), *(f"transformers.{name}" for name, _ in KNOWN)]
    [found] = [name for name in names if name.endswith(ending)]
    return resolve(found)


def test_a_mask_by_broadcasting_is_the_one_by_vmap() -> None:
    def causal(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (batch >= 0) & (head != 1)

    indices = [torch.arange(size) for size in (2, 3, 4, 5)]
    want = masking_utils._vmap_expansion_sdpa(causal)(*indices)
    assert torch.equal(masks.broadcast_mask(None)(causal)(*indices), want)


def test_frames_side_by_side_are_those_of_transformers() -> None:
    model = SimpleNamespace(spatial_merge_size=2)
    hidden = torch.randn(PATCH_COUNT // 4, 3)
    slicing = original("_temporal_slicing")
    assert torch.equal(packed_items.time_slices(slicing)(model, hidden, GRIDS), slicing(model, hidden, GRIDS))


def test_blocks_of_patches_are_projected_as_in_transformers() -> None:
    model = SimpleNamespace(
        merge_kernel_size=(2, 2),
        pre_norm=torch.nn.LayerNorm(8),
        linear_1=torch.nn.Linear(32, 16),
        act=torch.nn.GELU(),
        linear_2=torch.nn.Linear(16, 4),
    )
    features = torch.randn(PATCH_COUNT, 8)
    forward = original("PaddleOCRProjector.forward")
    got = packed_items.merged_projection(forward)(model, features, GRIDS)
    torch.testing.assert_close(got, forward(model, features, GRIDS))


def test_the_middle_of_each_block_is_that_of_transformers() -> None:
    merges = torch.tensor([2, 1, 2, 2])
    hidden = torch.randn(PATCH_COUNT, 8)
    shuffle = original("pixel_unshuffle")
    got = packed_items.unshuffled(shuffle)(SimpleNamespace(), hidden, GRIDS, merges)
    torch.testing.assert_close(got, shuffle(SimpleNamespace(), hidden, GRIDS, merges))


@pytest.mark.parametrize("family", ["qwen3_omni_moe", "qwen3_asr"])
def test_windows_of_sounds_are_those_of_transformers(family: str) -> None:
    function = resolve(f"transformers.models.{family}.modeling_{family}.get_audio_cu_seqlens")
    lengths = torch.tensor([250, 90, 400])
    chunks = torch.tensor([100, 100, 50, 90, 100, 100, 100, 100])
    got = packed_items.audio_windows(function)(chunks, lengths, 400, 50)
    assert torch.equal(got, function(chunks, lengths, 400, 50))


def test_merged_patches_are_those_of_transformers() -> None:
    model = SimpleNamespace(spatial_merge_size=2, patch_size=4, merging_layer=torch.nn.Linear(32, 8, bias=False))
    sizes = torch.tensor([[16, 24], [8, 8], [20, 12]])
    features = torch.randn(int((sizes // 4).prod(-1).sum()), 8)
    forward = original("Mistral3PatchMerger.forward")
    torch.testing.assert_close(
        packed_items.merged_patches(forward)(model, features, sizes), forward(model, features, sizes)
    )


def test_packed_images_are_read_as_in_transformers() -> None:
    torch.manual_seed(0)
    config = t.PixtralVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=4
    )
    model = t.PixtralVisionModel(config).eval()
    inputs = {"pixel_values": torch.randn(2, 3, 32, 24), "image_sizes": torch.tensor([[32, 24], [16, 8]])}
    captured = modelport.capture(model, inputs, dynamic=True)
    for sizes in ([[32, 24], [16, 8]], [[8, 8], [32, 16]]):
        captured.check(model, inputs | {"image_sizes": torch.tensor(sizes)})


@pytest.mark.parametrize("with_state", [False, True])
def test_a_linear_recurrence_is_that_of_transformers(with_state: bool) -> None:
    x, gate, reset = torch.randn(2, 9, 4), torch.rand(2, 9, 4), torch.zeros(2, 9, 1, dtype=torch.bool)
    reset[:, 0] = not with_state
    state = torch.randn(2, 4) if with_state else None
    scan = original("_rnn_scan")
    got, want = scans.linear_scan(scan)(None, x, gate, reset, state), scan(None, x, gate, reset, state)
    torch.testing.assert_close(got, want)


def test_a_scan_leaves_the_length_of_the_text_open() -> None:
    model = tiny("mamba")
    captured = modelport.capture(model, {"input_ids": torch.randint(0, 64, (2, 6))}, dynamic=True)
    captured.check(model, {"input_ids": torch.randint(0, 64, (2, 11))})


def test_a_replacement_that_gives_other_values_is_not_used() -> None:
    class Counts(torch.nn.Module):
        def plus(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.plus(x)

    def doubled(_original: Any) -> Any:
        return lambda self, x: x * 2

    for value, op in ((1.0, "aten.mul"), (3.0, "aten.add")):
        model = Counts().eval()
        model.plus = where_values_agree(doubled)(Counts.plus).__get__(model)
        captured = modelport.capture(model, (torch.full((2, 3), value),))
        assert captured.program.nodes()[-1]["op"].startswith(op), str(captured)


def test_a_replacement_is_compared_where_a_run_computes_only_shapes() -> None:
    class Weighted(torch.nn.Module):
        def __init__(self, replacement: Any) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.sum = where_values_agree(lambda _original: replacement)(lambda x, axis: x.exp().sum(axis))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.sum(x * self.weight, x.dim() - 1)

    for replacement, agrees in ((lambda x, axis: x.exp().mean(axis) * x.shape[axis], True), (torch.sum, False)):
        captured = modelport.capture(Weighted(replacement).eval(), (torch.rand(2, 3),), dynamic=True)
        ops = [node["op"] for node in captured.program.nodes()]
        assert any(op.startswith("aten.mean") for op in ops) == agrees, str(captured)
        assert any(op.startswith("aten.exp") for op in ops), str(captured)
