"""rota's own emitters: takes an `Emission`, gives a HIP GEMM, a skeleton to put one's own ops into, or a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rota.emit.emission import Emission

if TYPE_CHECKING:
    from rota.emit.gemm_tile import Element
    from rota.pipeline.tile_shape import TileShape


class GemmForm(TypedDict, total=False):
    """What a body declared in tiles leaves to the kernel's settings."""

    element: Element
    waves: int


def gemm_form(shape: TileShape | None) -> GemmForm:
    """The settings; nothing for a loop that says it itself."""
    from rota.emit.gemm_tile import element_of

    if shape is None:
        return {}
    return {"element": element_of(shape.instruction, shape.geometry), "waves": shape.waves}


def hip(asked: Emission) -> str:
    """A whole HIP GEMM."""
    from rota.emit.hip_gemm import emit_gemm

    return emit_gemm(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


def skeleton(asked: Emission) -> str:
    """A C++ header of the order, with calls for the ops."""
    from rota.emit.skeleton import emit_skeleton

    return emit_skeleton(asked.named)


def document(asked: Emission) -> str:
    """The schedule as JSON."""
    from rota.emit.exchange import to_json

    return to_json(asked.compiled) + "\n"
