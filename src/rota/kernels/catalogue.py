"""Kernels by name: takes a name, gives a `Kernel`: one that rota ships, or one that an installed package registers.

A package registers a `Kernel`, or whatever can be the source of one.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from rota.kernels.kernel import Kernel
from rota.registry import Registry

_STAGES, _VALUES = "rota.kernels.shipped_by_stages", "rota.kernels.shipped_by_values"

KERNELS: Registry[object] = Registry(
    what="kernel",
    group="rota.kernels",
    own=MappingProxyType(
        {
            "four_wave": f"{_STAGES}:FOUR_WAVE",
            "ping_pong": f"{_STAGES}:PING_PONG",
            "single_buffer": f"{_STAGES}:SINGLE_BUFFER",
            "gemm_8wave": f"{_VALUES}:GEMM_8WAVE",
            "gemm_4wave": f"{_VALUES}:GEMM_4WAVE",
            "gemm_small": f"{_VALUES}:GEMM_SMALL",
            "gemm_fp8": f"{_VALUES}:GEMM_FP8",
            "attention": f"{_VALUES}:ATTENTION_128",
            "gemm_8wave_mi300x": f"{_VALUES}:GEMM_8WAVE_MI300X",
            "gemm_4wave_mi300x": f"{_VALUES}:GEMM_4WAVE_MI300X",
            "gemm_small_mi300x": f"{_VALUES}:GEMM_SMALL_MI300X",
            "attention_mi300x": f"{_VALUES}:ATTENTION_MI300X",
        }
    ),
    expected="a Kernel, or anything that can be compiled as one",
    lacks=lambda _: None,
)
"""All of them, in the order in which they are listed."""


def kernel_named(name: str) -> Kernel:
    """The kernel of that name; the full name of a shipped one serves as well."""
    short = name if KERNELS.knows(name) else full_names().get(name, name)
    found = KERNELS.named(short)
    return replace(found, name=short) if isinstance(found, Kernel) else Kernel(name=short, source=found)


def shipped_kernels() -> dict[str, Kernel]:
    """Every shipped kernel by its short name, in the order in which they are listed."""
    return {name: kernel_named(name) for name in KERNELS.own}


def full_names() -> dict[str, str]:
    """The short name behind each full one."""
    return {
        full: name
        for name, kernel in shipped_kernels().items()
        if isinstance(full := getattr(kernel.source, "name", None), str)
    }
