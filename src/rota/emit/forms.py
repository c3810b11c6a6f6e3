"""rota's own emitters: takes an `Emission`, gives HIP, a skeleton for one's own ops, or a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import Emission
from rota.errors import EmissionError, Finding

if TYPE_CHECKING:
    from rota.emit.gemm.gemm_factors import Element
    from rota.pipeline.tile_shape import TileShape


class GemmForm(TypedDict, total=False):
    """What a body declared in tiles leaves to the kernel's settings."""

    element: Element
    waves: int


def gemm_form(shape: TileShape | None) -> GemmForm:
    """The settings; nothing for a loop that says it itself."""
    from rota.emit.gemm.gemm_tile import element_of

    if shape is None:
        return {}
    return {"element": element_of(shape.instruction, shape.geometry), "waves": shape.waves}


def hip(asked: Emission) -> str:
    """The loop of a HIP GEMM, with as much around it as runs it."""
    from rota.emit.gemm.hip_gemm import emit_gemm

    _no_options(asked, "hip")
    return emit_gemm(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


def is_attention(compiled: CompiledSchedule) -> bool:
    """Is it a loop of attention forward, which has a whole kernel of its own?"""
    from rota.emit.attention.attention_kernel import shape_of

    return shape_of(compiled) is not None


def kernel(asked: Emission) -> str:
    """A whole HIP GEMM, for any M, N and K; or a whole attention forward, for any numbers of queries and keys."""
    from rota.emit.attention.attention_kernel import emit_attention
    from rota.emit.whole.whole_kernel import emit_whole
    from rota.emit.whole.whole_options import parse_options

    if is_attention(asked.compiled):
        _no_options(asked, "kernel of attention", fixes=())
        return emit_attention(asked.named)
    settings = parse_options(asked.options)
    return emit_whole(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def launcher(asked: Emission) -> str:
    """The host's side of a whole HIP GEMM, or attention."""
    from rota.emit.attention.attention_host import emit_attention_launcher
    from rota.emit.whole.whole_host import emit_launcher
    from rota.emit.whole.whole_options import parse_options

    if is_attention(asked.compiled):
        _no_options(asked, "launcher of attention", fixes=())
        return emit_attention_launcher(asked.named)
    settings = parse_options(asked.options)
    return emit_launcher(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def project_of(asked: Emission) -> dict[str, str]:
    """The files of a project around a whole HIP GEMM."""
    from rota.emit.whole.whole_options import parse_options
    from rota.emit.whole.whole_project import emit_project

    if is_attention(asked.compiled):
        raise EmissionError(
            Finding(
                code="T209",
                message="there is no project around an attention kernel yet",
                fixes=("`--form kernel` and `--form launcher` write the kernel and the header that launches it",),
            )
        )
    settings = parse_options(asked.options)
    return emit_project(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def skeleton(asked: Emission) -> str:
    """A C++ header of the order, with calls for the ops."""
    from rota.emit.skeleton import emit_skeleton

    _no_options(asked, "skeleton")
    return emit_skeleton(asked.named)


def document(asked: Emission) -> str:
    """The schedule as JSON."""
    from rota.emit.document.exchange import to_json

    _no_options(asked, "json")
    return to_json(asked.compiled) + "\n"


def _no_options(asked: Emission, form: str, fixes: tuple[str, ...] = ("`--form kernel` takes them",)) -> None:
    """What was asked for is applied or refused."""
    if asked.options:
        raise EmissionError(
            Finding(
                code="T209",
                message=f"the form {form} has no settings",
                evidence=tuple(asked.options.items()),
                fixes=fixes,
            )
        )
