"""Whole attention kernels on drawn problems: takes a count and a seed, runs their machine code, prints what is wrong.

Run `python -m benchmarks.whole_attention [--count 60] [--seed 1] [--only NAME] [--quick]` from the repository's root.
Queries and keys from 1 to some hundreds, awkward numbers as often as others, causal and not, grouped heads, gaps; O and
the log-sum-exp must be within what the arithmetic loses.  Every tenth problem runs under five interleavings.  `--quick`
takes the schedules of the heuristic instead of the search's, which take minutes to find.  The exit status is 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.audit.audit import audit_attention
from rota.audit.gemm_launch import pack
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_kernel import ATTENTION_PARAMETERS, emit_attention
from rota.emit.attention.attention_ops import ForwardShape
from rota.emit.gemm.program_form import form_of
from rota.errors import IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import some_interleavings
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.kernels.attention import HEAD_64, HEAD_128, SMALL_TILE
from rota.order.modulo.scheduler import ModuloScheduler
from rota.prove.kernel_proof import prove_object
from rota.values.compile_loop import compile_loop
from tests.campaigns.whole.attention_problems import (
    AttentionNumbers,
    AttentionProblem,
    Floats,
    attention_due,
    draw_attention,
    draw_numbers,
)

SHAPES: dict[str, ForwardShape] = {"head128": HEAD_128, "head64": HEAD_64, "small": SMALL_TILE}
_NAN = 0x7FC0
_ALIGNED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltAttention:
    """A kernel, compiled and decoded."""

    shape: ForwardShape
    compiled: CompiledSchedule
    code: CodeObject
    kernel: LoadedKernel


@cache
def schedule_of(name: str, *, quick: bool) -> CompiledSchedule:
    """The schedule of one of the shapes."""
    if quick:
        return compile_loop(SHAPES[name].loop(), scheduler=ModuloScheduler(time_limit=0), polish=False)
    return compile_loop(SHAPES[name].loop())


@cache
def built_attention(name: str, *, quick: bool) -> BuiltAttention:
    """A kernel around it."""
    compiled = schedule_of(name, quick=quick)
    return attention_of(name, compiled, find_toolchain().compile(emit_attention(compiled), compiled.machine.arch))


def attention_of(name: str, compiled: CompiledSchedule, code: CodeObject) -> BuiltAttention:
    """The same of machine code, such as a damaged one."""
    symbol = form_of(compiled.lowered).symbol
    kernel = LoadedKernel(program=load_program(code.kernel(symbol), tuple(code.instructions(symbol))))
    return BuiltAttention(shape=SHAPES[name], compiled=compiled, code=code, kernel=kernel)


def run_attention(built: BuiltAttention, problem: AttentionProblem) -> list[str]:
    """What is wrong, in words; nothing if all is right.  An access beyond an array is found by the interpreter."""
    shape = built.shape
    given = draw_numbers(problem, shape.head)
    arrays, strides = _arrays(problem, given)
    known: dict[str, Any] = {**arrays, **strides, "scale": given.scale, "causal": int(problem.causal)}
    known |= {name: getattr(problem, name) for name in ("queries", "keys", "heads", "kv_heads", "shift")}
    values = [known[each.name] for each in ATTENTION_PARAMETERS]
    orders = some_interleavings(shape.waves, max(3, problem.orders), problem.seed)
    chosen = orders if problem.orders > 1 else [orders[problem.seed % len(orders)]]
    grid = (-(-problem.queries // (shape.rows * shape.waves)), problem.heads, problem.batches)
    try:
        result = built.kernel.launch(
            *values, grid=grid, block=shape.waves * 64, orders=chosen, check=False, processes=1
        )
    except IsaError as error:
        return [f"{each.code} {each.message}" for each in error.findings]
    found = [f"{each.code} {each.message}" for each in result.findings]
    return [*found, *_wrong(problem, given, arrays, shape)]


def _strides(problem: AttentionProblem, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """From a row, a head and a batch to the next."""
    _, heads, rows, head = shape
    wide = head + problem.gap
    return (
        wide * heads if problem.interleaved else wide,
        wide if problem.interleaved else wide * rows,
        wide * rows * heads,
    )


def _arrays(
    problem: AttentionProblem, given: AttentionNumbers
) -> tuple[dict[str, NDArray[Any] | None], dict[str, int]]:
    arrays: dict[str, NDArray[Any] | None] = {}
    strides: dict[str, int] = {}
    empty = np.full(given.q.shape, np.nan)
    for name, values in (("q", given.q), ("k", given.k), ("v", given.v), ("o", empty)):
        each = _strides(problem, values.shape)
        strides |= dict(zip((f"{name}_row", f"{name}_head", f"{name}_batch"), each, strict=True))
        arrays[name.upper()] = _laid(values, each)
    rows = problem.batches * problem.heads * problem.queries
    arrays["L"] = np.full(rows, np.nan, np.float32) if problem.lse else None
    return arrays, strides


def _laid(values: Floats, strides: tuple[int, int, int]) -> NDArray[np.uint16]:
    """As bf16 where they belong, NaN between them, and nothing after the last."""
    places = _places(values.shape, strides)
    octets = np.zeros((int(places.max()) + 1) * 2 + 2 * _ALIGNED, np.uint8)
    start = -octets.ctypes.data % _ALIGNED
    flat: NDArray[np.uint16] = octets[start : start + (int(places.max()) + 1) * 2].view(np.uint16)
    flat[:] = _NAN
    flat[places] = np.where(np.isnan(values), _NAN, pack(np.nan_to_num(values), "bf16"))
    return flat


def _places(shape: tuple[int, ...], strides: tuple[int, int, int]) -> NDArray[np.int64]:
    row, head, batch = strides
    b, h, i, e = np.ogrid[tuple(slice(each) for each in shape)]
    return np.asarray(b * batch + h * head + i * row + e)


def _wrong(
    problem: AttentionProblem, given: AttentionNumbers, arrays: dict[str, NDArray[Any] | None], shape: ForwardShape
) -> Iterator[str]:
    due = attention_due(problem, given, shape.keys)
    o, lse = arrays["O"], arrays["L"]
    assert o is not None
    places = _places(given.q.shape, _strides(problem, given.q.shape))
    between = np.ones(o.size, bool)
    between[places] = False
    if (o[between] != _NAN).any():
        yield "O was written between its rows"
    got = (o[places].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    yield from _compared("O", got, due.o, due.o_bound)
    if lse is not None:
        yield from _compared("L", lse.reshape(due.lse.shape).astype(np.float64), due.lse, due.lse_bound)


def _compared(name: str, got: Floats, due: Floats, bound: Floats) -> Iterator[str]:
    with np.errstate(invalid="ignore"):
        wrong = np.argwhere(~((np.abs(got - due) <= bound) | (got == due)))
    if len(wrong):
        at = tuple(int(each) for each in wrong[0])
        first = f"{got[at]}, due {due[at]} +- {bound[at]:.2g}"
        yield f"{len(wrong)} of {got.size} of {name} are wrong, the first at {at}: {first}"


def drawn_attention(count: int, seed: int) -> Iterator[tuple[int, str, AttentionProblem]]:
    """So many problems, each with its kernel."""
    random = Random(seed)
    names = list(SHAPES)
    for number in range(count):
        yield number, names[number % len(names)], draw_attention(random, number=number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    tally: Counter[str] = Counter()
    start = time.monotonic()
    for name in SHAPES:
        if options.only in name:
            made = built_attention(name, quick=options.quick)
            audit = audit_attention(made.compiled, made.code)
            (verdict,) = prove_object(made.code)
            tally["not the schedule"] += not audit.exact
            tally["not proved"] += not verdict.proved
            print(audit, f"  from the machine code alone: {verdict.status.value}", sep="\n", flush=True)
    for number, name, problem in drawn_attention(options.count, options.seed):
        if options.only not in name:
            continue
        wrong = run_attention(built_attention(name, quick=options.quick), problem)
        tally.update(["problems", *(["wrong"] if wrong else []), *(["interleaved"] if problem.orders > 1 else [])])
        tally.update([name, "causal" if problem.causal else "all keys"])
        print(f"{number} {name}: {problem}: {'; '.join(wrong) or 'right'}", flush=True)
    print(f"{dict(sorted(tally.items()))} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if tally["wrong"] or tally["not the schedule"] or tally["not proved"] else 0
