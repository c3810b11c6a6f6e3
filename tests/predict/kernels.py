"""Kernels for tests of whole problems: takes a device and a type, gives a `TiledGemm` without compiling anything."""

from __future__ import annotations

from rota.predict.predict_problem import TiledGemm
from rota.targets.registry import device_named


def kernel(
    device: str = "mi355x", element: str = "bf16", tile: tuple[int, int, int] = (256, 256, 64), loop: float = 2078
) -> TiledGemm:
    """Large tiles as rota's own kernels have them; twice the clocks on CDNA3."""
    slower = 2 if device.startswith("mi30") or device == "mi325x" else 1
    return TiledGemm(
        name="mine",
        device=device_named(device),
        tile=tile,
        element=element,
        loop_clocks=slower * loop,
        matrix_clocks=slower * min(loop, 2048),
    )
