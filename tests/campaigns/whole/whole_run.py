"""A whole kernel run on a problem: takes what was built and a problem, gives what went wrong.

Every array is handed over without its surroundings: an access one byte beyond it is found.  What lies between rows is
NaN in what is read, and must stay as it was in what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.audit.gemm_launch import pack
from rota.emit.gemm.gemm_tile import BLayout
from rota.emit.whole.whole_kernel import PARTIAL_UNIT
from rota.emit.whole.whole_options import PARAMETERS, REDUCTION_THREADS, EpilogueStep, Output, WholeGemm
from rota.errors import Finding, IsaError
from rota.isa.launch.interleaving import some_interleavings
from rota.pipeline.geometry import SCALED_BLOCK
from tests.campaigns.whole.whole_kernels import Built
from tests.campaigns.whole.whole_problems import (
    LEAST_SIGNIFICANT,
    Floats,
    Operands,
    Problem,
    draw_operands,
    expected,
    fitted,
    gap_by_columns,
    is_exact,
    scale_gap,
    scaled_operands,
    wrong_elements,
)

_ALIGNED = 256  # bytes, as allocators of GPU memory align
_UNTOUCHED = 0xA5
_NAN: dict[str, float] = {"bf16": 0x7FC0, "f16": np.nan, "fp32": np.nan, "f8f6f4": 0x7F, "fp8_fp8": 0x80, "fp4": 0x77}
"""A NaN as each type is held: bf16 and fp8 as their bits; fp4 has none, and the largest instead."""

_NAN_SCALE = 0xFF

Launch = tuple[tuple[int, int, int], int]
"""A grid and how many threads a workgroup has."""


def run_problem(built: Built, problem: Problem, shape: Callable[[Built, Problem], Launch] | None = None) -> list[str]:
    """What is wrong, in words; nothing if all is right."""
    asked, element, scales = built.asked, built.tile.element.value, built.tile.scales
    problem = fitted(problem, built.tile.element.packed, scales)
    given = draw_operands(problem, LEAST_SIGNIFICANT[element], asked.output, asked.epilogue, scales)
    arrays = _arrays(built, problem, given)
    orders = some_interleavings(built.tile.waves, max(3, problem.orders), problem.seed)
    chosen = orders if problem.orders > 1 else [orders[problem.seed % len(orders)]]
    values = [
        arrays[each.name] if each.name in arrays else _scalar(each.name, problem, given, built) for each in PARAMETERS
    ]
    found: list[str] = []
    grid, threads = (shape or grid_of)(built, problem)
    try:
        found += _said(built.kernel.launch(*values, grid=grid, block=threads, orders=chosen, check=False, processes=1))
        if problem.splits > 1:
            found += _said(_reduce(built, problem, values, chosen))
    except IsaError as error:
        found += [f"{each.code} {each.message}" for each in error.findings]
    due = scaled_operands(given, scales) if built.tile.has_scales else given
    return [*found, *_wrong(built.asked, problem, due, arrays["D"])]


def grid_of(built: Built, problem: Problem) -> Launch:
    """What the launcher asks for."""
    geometry, asked = built.tile.geometry, built.asked
    tiles = -(-problem.m // geometry.BM) * -(-problem.n // (geometry.BN // asked.products))
    return (_workgroups(asked, tiles), problem.splits, problem.batches), built.tile.waves * built.tile.lanes


def _workgroups(asked: WholeGemm, tiles: int) -> int:
    return max(1, tiles // 2) if asked.persistent else tiles


def _reduce(built: Built, problem: Problem, values: list[Any], orders: Any) -> Any:  # a launch's
    units = problem.m * -(-problem.n // built.asked.output.width)
    grid = (-(-units // REDUCTION_THREADS), 1, problem.batches)
    return built.reduce.launch(*values, grid=grid, block=REDUCTION_THREADS, orders=orders, check=False, processes=1)


def _said(result: Any) -> Iterator[str]:  # of a launch
    findings: tuple[Finding, ...] = result.findings
    yield from (f"{each.code} {each.message}" for each in findings)


def _scalar(name: str, problem: Problem, given: Operands, built: Built) -> float | int | None:
    gaps, k, n = problem.gaps, problem.k, problem.n
    strides = {"a": k + gaps[0], "b": k + gaps[1], "c": n + gaps[2], "d": n + gaps[3]}
    rows = {"a": problem.m, "b": n, "c": problem.m, "d": problem.m}
    if built.tile.b_layout is BLayout.KN:
        strides["b"], rows["b"] = n + gap_by_columns(problem), k
    known: dict[str, float | int | None] = {f"{each}_stride": stride for each, stride in strides.items()}
    known |= {f"{each}_batch": strides[each] * rows[each] for each in strides}
    known |= {"M": problem.m, "N": n, "K": k, "splits": problem.splits, "workgroups": grid_of(built, problem)[0][0]}
    known |= {"alpha": given.alpha, "beta": given.beta}
    if built.tile.has_scales:
        stride = given.a_scale.shape[2] + scale_gap(problem, built.tile.scales)
        known |= {f"{each}_scale_stride": stride for each in "ab"}
        known |= {f"{each}_scale_batch": stride * rows[each] for each in "ab"}
    return known.get(name, 0 if name.endswith(("_stride", "_batch")) else None)


def _arrays(built: Built, problem: Problem, given: Operands) -> dict[str, NDArray[Any]]:
    asked, element = built.asked, built.tile.element.value
    gaps, skew = problem.gaps, problem.skew
    given_b, gap_b = (given.b, given.b_up), gaps[1]
    if built.tile.b_layout is BLayout.KN:
        given_b, gap_b = (given.b.transpose(0, 2, 1), given.b_up.transpose(0, 2, 1)), gap_by_columns(problem)
    d = np.full((problem.batches, problem.m, problem.n), np.nan)
    found: dict[str, NDArray[Any]] = {
        "A": _laid(given.a, gaps[0], skew[0], lambda each: pack(each, element), _NAN[element]),
        "B": _laid(given_b[0], gap_b, skew[1], lambda each: pack(each, element), _NAN[element]),
        "D": _laid(d, gaps[3], skew[2], lambda each: _packed_output(each, asked.output), _NAN[asked.output.value]),
    }
    if built.tile.has_scales:
        gap, shift = scale_gap(problem, built.tile.scales), 0 if problem.seed % 3 else problem.seed % 4
        pack_scales, nan = (_packed_scales, _NAN_SCALE) if built.tile.scaled else (_packed_floats, np.nan)
        found["A_scale"] = _laid(given.a_scale, gap, shift, pack_scales, nan)
        found["B_scale"] = _laid(given.b_scale, gap, 0, pack_scales, nan)
        if asked.gate:
            found["B_up_scale"] = _laid(given.b_up_scale, gap, shift, pack_scales, nan)
    if asked.gate:
        found["B_up"] = _laid(given_b[1], gap_b, skew[1], lambda each: pack(each, element), _NAN[element])
    if EpilogueStep.BETA in asked.epilogue:
        found["C"] = _laid(
            given.c, gaps[2], 0, lambda each: _packed_output(each, asked.output), _NAN[asked.output.value]
        )
    if {EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS} & set(asked.epilogue):
        found["bias"] = _packed_output(given.bias, asked.output)
    if EpilogueStep.ROW_SCALE in asked.epilogue:
        found["row_scale"] = given.row_scale.astype(np.float32)
    if EpilogueStep.COLUMN_SCALE in asked.epilogue:
        found["column_scale"] = given.column_scale.astype(np.float32)
    if problem.splits > 1:
        across = -(-problem.n // PARTIAL_UNIT) * PARTIAL_UNIT * asked.products
        size = problem.batches * problem.splits * problem.m * across
        found["partial"] = _aligned(size * 4, 0).view(np.float32)
        found["partial"][:] = np.nan
    return found


def _aligned(size: int, skew: int) -> NDArray[np.uint8]:
    octets = np.full(size + 2 * _ALIGNED, _UNTOUCHED, np.uint8)
    start = -octets.ctypes.data % _ALIGNED + skew
    return octets[start : start + size]


def _laid(matrices: Floats, gap: int, skew: int, pack: Callable[[Floats], NDArray[Any]], nan: float) -> NDArray[Any]:
    """Rows `gap` elements apart, NaN between them, and no gap after the last: what is handed over ends there."""
    batches, rows, _ = matrices.shape
    with_gaps = np.concatenate([matrices, np.full((batches, rows, gap), np.nan)], axis=2)
    values = with_gaps.reshape(-1)[: with_gaps.size - gap]
    if not values.size:  # a matrix without elements has an address all the same, and nothing there may be read
        values = np.full(SCALED_BLOCK, np.nan)
    flat = pack(np.nan_to_num(values))
    flat[np.isnan(values[:: values.size // flat.size])] = nan
    to = _aligned(flat.nbytes, skew * flat.itemsize).view(flat.dtype)
    to[:] = flat
    return to


def _packed_scales(scales: Floats) -> NDArray[Any]:
    """As E8M0; a gap has any."""
    return np.asarray(127 + np.log2(np.where(scales == 0, 1, scales)), np.uint8)


def _packed_floats(scales: Floats) -> NDArray[Any]:
    return scales.astype(np.float32)


def _packed_output(values: Floats, output: Output) -> NDArray[Any]:
    if output is Output.F32:
        return values.astype(np.float32)
    return pack(values, "f16" if output is Output.F16 else "bf16")


def _wrong(asked: WholeGemm, problem: Problem, given: Operands, d: NDArray[Any]) -> Iterator[str]:
    stride = problem.n + problem.gaps[3]
    untouched = np.full(1, _NAN[asked.output.value], d.dtype)[0]
    rows = np.full(problem.batches * problem.m * stride, untouched, d.dtype)
    rows[: d.size] = d
    rows = rows.reshape(problem.batches, problem.m, stride)
    between = rows[:, :, problem.n :]
    if between.tobytes() != np.full(between.shape, untouched, d.dtype).tobytes():
        yield "D was written between its rows"
    got = np.ascontiguousarray(rows[:, :, : problem.n])
    if asked.output is Output.BF16:
        got = (got.astype(np.uint32) << 16).view(np.float32)
    value = expected(problem, given, asked.epilogue)
    exact = is_exact(problem, asked.epilogue)
    wrong = np.argwhere(wrong_elements(got.astype(np.float64), value, asked.output, exact=exact))
    if len(wrong):
        at = tuple(int(each) for each in wrong[0])
        yield f"{len(wrong)} of {got.size} elements are wrong, the first at {at}: {got[at]}, due {value.due[at]}"
