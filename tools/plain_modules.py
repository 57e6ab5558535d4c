"""Tries modules of timm and diffusers as plain modules, in each format, and writes docs/plain-modules.md.

python tools/plain_modules.py [--only NAME] [--rows FILE] needs both packages, timm with torchvision; neither is a
dependency."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

import modelport
from modelport.exporters.exported_program import write_pt2
from modelport.exporters.onnx import DEFAULT_OPSET

PAGE = Path(__file__).resolve().parents[1] / "docs" / "plain-modules.md"
TIMM = (
    "resnet18", "resnet26d", "mobilenetv3_small_050", "efficientnet_b0", "convnext_atto", "convnextv2_atto",
    "vit_tiny_patch16_224", "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "regnetx_002", "regnety_002",
    "ghostnet_050", "mixnet_s", "mnasnet_small", "lcnet_050", "tinynet_e", "mobilevit_xxs", "edgenext_xx_small",
    "poolformer_s12", "levit_128s", "efficientformer_l1", "xcit_nano_12_p16_224", "mixer_s32_224", "pvt_v2_b0",
)  # fmt: skip


class Case(NamedTuple):
    package: str
    name: str
    make: Callable[[], tuple[Any, dict[str, Any]]]


def of_timm(name: str) -> Case:
    def make() -> tuple[Any, dict[str, Any]]:
        import timm

        return timm.create_model(name, pretrained=False), {"x": torch.randn(2, 3, 224, 224)}

    return Case("timm", name, make)


def of_diffusers(name: str, inputs: dict[str, Any], **settings: Any) -> Case:
    def make() -> tuple[Any, dict[str, Any]]:
        import diffusers

        made = getattr(diffusers, name)(**settings)
        takes = "return_dict" in inspect.signature(made.forward).parameters
        return made, inputs | ({"return_dict": False} if takes else {})

    return Case("diffusers", name, make)


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


STEPS = torch.tensor([10, 20])
BLOCKS = {"block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8}
CROSS = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "cross_attention_dim": 24, "attention_head_dim": 8,
}  # fmt: skip
UP = {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
VAE = {
    "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2, **BLOCKS,
    "latent_channels": 4,
}  # fmt: skip
IMAGE, LATENT, TEXT = {"sample": noise(2, 3, 32, 48)}, noise(2, 4, 16, 16), noise(2, 7, 24)
ASKED = {"sample": noise(2, 4, 16, 24), "timestep": STEPS, "encoder_hidden_states": TEXT}
HEADS = {"num_attention_heads": 2, "attention_head_dim": 16}
DIFFUSERS = (
    of_diffusers(
        "UNet2DModel", IMAGE | {"timestep": STEPS}, sample_size=32, attention_head_dim=8, **BLOCKS,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ),
    of_diffusers("UNet2DConditionModel", ASKED, sample_size=16, **BLOCKS, **CROSS, **UP),
    of_diffusers(
        "UNet3DConditionModel",
        {"sample": noise(2, 4, 3, 16, 16), "timestep": STEPS, "encoder_hidden_states": TEXT},
        sample_size=16, **BLOCKS, cross_attention_dim=24, attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
    ),
    of_diffusers(
        "UNet1DModel", {"sample": noise(2, 14, 16), "timestep": STEPS}, in_channels=14, out_channels=14,
        block_out_channels=(8, 8, 16, 16), down_block_types=("DownResnetBlock1D",) * 4,
        up_block_types=("UpResnetBlock1D",) * 3, mid_block_type="MidResTemporalBlock1D",
        out_block_type="OutConv1DBlock", time_embedding_type="positional", use_timestep_embedding=True, act_fn="swish",
        freq_shift=1.0, flip_sin_to_cos=False,
    ),
    of_diffusers(
        "ControlNetModel", ASKED | {"controlnet_cond": noise(2, 3, 32, 48)}, **BLOCKS, **CROSS,
        conditioning_embedding_out_channels=(16, 32),
    ),
    of_diffusers("AutoencoderKL", IMAGE, **VAE),
    of_diffusers(
        "AsymmetricAutoencoderKL", IMAGE, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, down_block_out_channels=(32, 64), up_block_out_channels=(32, 64),
        layers_per_down_block=1, layers_per_up_block=1, norm_num_groups=8,
    ),
    of_diffusers("AutoencoderTiny", IMAGE, encoder_block_out_channels=(32, 32), decoder_block_out_channels=(32, 32),
                 num_encoder_blocks=(1, 2), num_decoder_blocks=(2, 1)),
    of_diffusers("VQModel", IMAGE, **VAE | {"latent_channels": 3}, num_vq_embeddings=32),
    of_diffusers("T2IAdapter", {"x": noise(2, 3, 64, 64)}, channels=[32, 64], num_res_blocks=1, downscale_factor=8),
    of_diffusers(
        "DiTTransformer2DModel",
        {"hidden_states": LATENT, "timestep": STEPS, "class_labels": torch.tensor([1, 2])},
        **HEADS, in_channels=4, num_layers=2, sample_size=16, patch_size=2, num_embeds_ada_norm=100,
    ),
    of_diffusers(
        "PixArtTransformer2DModel",
        {"hidden_states": LATENT, "encoder_hidden_states": TEXT, "timestep": STEPS},
        **HEADS, in_channels=4, out_channels=8, num_layers=2, sample_size=16, patch_size=2, caption_channels=24,
        cross_attention_dim=32, use_additional_conditions=False,
    ),
    of_diffusers(
        "SD3Transformer2DModel",
        {"hidden_states": LATENT, "encoder_hidden_states": TEXT, "pooled_projections": noise(2, 20), "timestep": STEPS},
        **HEADS, sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_layers=2, joint_attention_dim=24,
        caption_projection_dim=32, pooled_projection_dim=20, pos_embed_max_size=24,
    ),
    of_diffusers(
        "FluxTransformer2DModel",
        {"hidden_states": noise(2, 24, 4), "encoder_hidden_states": TEXT, "pooled_projections": noise(2, 20),
         "timestep": STEPS / 1000, "img_ids": torch.zeros(24, 3), "txt_ids": torch.zeros(7, 3)},
        **HEADS, in_channels=4, num_layers=1, num_single_layers=1, joint_attention_dim=24, pooled_projection_dim=20,
        axes_dims_rope=(4, 4, 8), patch_size=1,
    ),
    of_diffusers(
        "Transformer2DModel", {"hidden_states": noise(2, 32, 12, 16), "encoder_hidden_states": TEXT}, **HEADS,
        in_channels=32, num_layers=1, cross_attention_dim=24, norm_num_groups=8,
    ),
    of_diffusers(
        "PriorTransformer",
        {"hidden_states": noise(2, 32), "timestep": STEPS, "proj_embedding": noise(2, 32),
         "encoder_hidden_states": noise(2, 7, 32)},
        **HEADS, num_layers=2, embedding_dim=32, num_embeddings=7, additional_embeddings=4,
    ),
    of_diffusers(
        "SanaTransformer2DModel",
        {"hidden_states": LATENT, "encoder_hidden_states": TEXT, "timestep": STEPS},
        **HEADS, in_channels=4, out_channels=4, num_layers=1, num_cross_attention_heads=2, cross_attention_head_dim=16,
        cross_attention_dim=32, caption_channels=24, sample_size=16, patch_size=1,
    ),
    of_diffusers(
        "AuraFlowTransformer2DModel",
        {"hidden_states": LATENT, "encoder_hidden_states": TEXT, "timestep": STEPS / 1000},
        **HEADS, sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_mmdit_layers=1,
        num_single_dit_layers=1, joint_attention_dim=24, caption_projection_dim=32, pos_embed_max_size=64,
    ),
    of_diffusers(
        "CogVideoXTransformer3DModel",
        {"hidden_states": noise(2, 3, 4, 16, 16), "encoder_hidden_states": TEXT, "timestep": STEPS},
        **HEADS, in_channels=4, out_channels=4, num_layers=1, text_embed_dim=24, time_embed_dim=8, sample_width=16,
        sample_height=16, sample_frames=9, max_text_seq_length=7,
    ),
    of_diffusers(
        "LTXVideoTransformer3DModel",
        {"hidden_states": noise(2, 24, 4), "encoder_hidden_states": TEXT, "timestep": STEPS,
         "encoder_attention_mask": torch.ones(2, 7), "num_frames": 2, "height": 3, "width": 4},
        **HEADS, in_channels=4, out_channels=4, num_layers=1, cross_attention_dim=32, caption_channels=24,
    ),
    of_diffusers(
        "WanTransformer3DModel",
        {"hidden_states": noise(2, 4, 2, 16, 16), "timestep": STEPS, "encoder_hidden_states": TEXT},
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=24,
        freq_dim=64, ffn_dim=32, num_layers=1, rope_max_seq_len=32,
    ),
    of_diffusers(
        "AutoencoderKLTemporalDecoder", {"sample": noise(2, 3, 32, 32), "num_frames": 2},
        down_block_types=("DownEncoderBlock2D",) * 2, block_out_channels=(32, 64), layers_per_block=1,
    ),
)  # fmt: skip


class Outcome(NamedTuple):
    package: str
    name: str
    capture: str
    targets: dict[str, str]
    axes: str


@torch.no_grad()
def tried(case: Case) -> Outcome:
    torch.manual_seed(0)
    try:
        model, inputs = case.make()
    except Exception as error:  # another release of the package may have other settings
        return Outcome(case.package, case.name, f"cannot be made: {_short(error)}", {}, "")
    model.eval()
    try:
        captured = modelport.capture(model, inputs, dynamic=True)
    except Exception as error:
        return Outcome(case.package, case.name, _short(error), {}, "")
    open_axes = ", ".join(dim["name"] for dim in captured.lazy_program.dims() if not dim["from_data"])
    found = {}
    for target, compared in TARGETS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[target] = compared(captured, model, inputs, Path(folder))
            except Exception as error:
                found[target] = _short(error)
    return Outcome(case.package, case.name, "ok", found, open_axes)


def _in_pt2(captured: Any, model: Any, inputs: dict[str, Any], folder: Path) -> str:
    write_pt2(captured, folder / "model.pt2")
    modelport.load_pt2(folder / "model.pt2").check(model, inputs)  # throws where values differ
    return MATCH


def _in_onnx(captured: Any, model: Any, inputs: dict[str, Any], folder: Path) -> str:
    program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), DEFAULT_OPSET)
    return _checked(program.save(folder / "model.onnx"), model, inputs)


def _in_executorch(_captured: Any, model: Any, inputs: dict[str, Any], folder: Path) -> str:
    config = modelport.ExecutorchConfig(backend="xnnpack")
    program = modelport.ExecutorchExporter().export(model, dict(inputs), config)
    program.save(folder / "model.pte")
    return _checked(folder / "model.pte", model, inputs)


def _checked(file: Path, model: Any, inputs: dict[str, Any]) -> str:
    report = modelport.check(file, model, [inputs], name_first=False)
    if report.ok:
        return MATCH
    return f"values differ by {max(row.absolute for row in report.rows if row.ok is False):.1g}"


MATCH = "match"
TARGETS: dict[str, Callable[[Any, Any, dict[str, Any], Path], str]] = {
    ".pt2": _in_pt2,
    "ONNX": _in_onnx,
    "ExecuTorch": _in_executorch,
}


def tried_alone(case: Case) -> Outcome:
    """In a process of its own: a runtime may end the one that it is in."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(tried(case)))
    child.start()
    there.close()
    try:
        return here.recv() if here.poll(LIMIT) else Outcome(case.package, case.name, f"over {LIMIT} s", {}, "")
    except EOFError:
        return Outcome(case.package, case.name, "the process ended", {}, "")
    finally:
        child.kill()
        child.join()


LIMIT = 900.0


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    kind = "" if isinstance(error, modelport.ExportError) else f"{type(error).__name__}: "
    return f"{kind}{first}"[:160].replace("|", "\\|")


def page(rows: list[Outcome]) -> str:
    lines = [
        "# Modules of timm and diffusers",
        "",
        "Plain modules, small, with random weights: captured with every axis open (`modelport.capture(module, inputs,",
        "dynamic=True)`), exported, and compared with the module in the runtime of the format at the example: `.pt2`",
        "and ONNX with open axes, ExecuTorch with the recipe xnnpack and the sizes of the example. Made by",
        "`python tools/plain_modules.py`, which needs both packages; Modelport does not.",
    ]
    for package in ("timm", "diffusers"):
        some = [row for row in rows if row.package == package]
        lines += [
            "",
            f"## {package}",
            "",
            f"| module | capture | {' | '.join(TARGETS)} | open axes |",
        ]
        lines.append("|---" * (len(TARGETS) + 3) + "|")
        lines += [_line(row) for row in some]
        good = [f"{sum(r.targets.get(name) == MATCH for r in some)} {name}" for name in TARGETS]
        lines += ["", f"Of {len(some)}: {sum(r.capture == 'ok' for r in some)} captured, {', '.join(good)}."]
    return "\n".join(lines) + "\n"


def _line(row: Outcome) -> str:
    cells = [f"`{row.name}`", row.capture, *(row.targets.get(name, "") for name in TARGETS), row.axes]
    return f"| {' | '.join(cells)} |"


def kept(path: Path | None) -> dict[str, Outcome]:
    if path is None or not path.exists():
        return {}
    rows = [Outcome(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row.name: row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a module to try, whose outcome is printed")
    parser.add_argument("--rows", type=Path, help="a file that keeps outcomes: what is there is not tried again")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = kept(args.rows)
    cases = [case for case in (*map(of_timm, TIMM), *DIFFUSERS) if args.only in (None, case.name)]
    for case in cases:
        if case.name in rows:
            continue
        getattr(importlib.import_module(case.package), case.name, None)  # imported once for all processes
        row = rows[case.name] = tried_alone(case)
        print(row.name, row.capture, row.targets, row.axes, sep="\t", flush=True)
        if args.rows is not None:
            with args.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    if args.only is None:
        PAGE.write_text(page([rows[case.name] for case in cases]), encoding="utf-8")


if __name__ == "__main__":
    main()
