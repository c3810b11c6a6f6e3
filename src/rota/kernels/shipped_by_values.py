"""The shipped kernels by values: takes nothing, gives a `Kernel` for each."""

from __future__ import annotations

from dataclasses import replace

from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.kernels.kernel import Kernel
from rota.targets.mi300x import MI300X

_EIGHT, _FOUR, _SMALL, _FP8 = GEMM_SHAPES
_EIGHT_942, _FOUR_942, _SMALL_942 = MI300X_GEMM_SHAPES

GEMM_8WAVE = Kernel(name="gemm_8wave", source=_EIGHT, about="bf16 GEMM by values, 256x256x64, eight waves")
GEMM_4WAVE = Kernel(name="gemm_4wave", source=_FOUR, about="bf16 GEMM by values, 256x256x64, four waves")
GEMM_SMALL = Kernel(name="gemm_small", source=_SMALL, about="bf16 GEMM by values, 128x128x64, four waves")
GEMM_FP8 = Kernel(name="gemm_fp8", source=_FP8, about="fp8 GEMM by values, 256x256x128, eight waves")
ATTENTION_128 = Kernel(
    name="attention", source=ATTENTION, about="bf16 attention forward by values, head size 128, four waves"
)
GEMM_8WAVE_MI300X = replace(GEMM_8WAVE, name="gemm_8wave_mi300x", source=_EIGHT_942, machine=MI300X)
GEMM_4WAVE_MI300X = replace(GEMM_4WAVE, name="gemm_4wave_mi300x", source=_FOUR_942, machine=MI300X)
GEMM_SMALL_MI300X = replace(GEMM_SMALL, name="gemm_small_mi300x", source=_SMALL_942, machine=MI300X)
ATTENTION_MI300X = replace(ATTENTION_128, name="attention_mi300x", source=MI300X_ATTENTION, machine=MI300X)
