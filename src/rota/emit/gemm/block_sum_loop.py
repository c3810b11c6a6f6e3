"""Sums of blocks in a loop by values: takes what each of them sums, refuses a loop that doesn't add each to C once.

A block's products are summed in registers of their own; a vector op takes such a sum and the scales of its rows and
columns, and adds what it makes of them to an accumulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.scale_loop import ScaleLoop
from rota.emit.refusal import miscounted, no_product
from rota.errors import Concern
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopOp, LoopSpec

SumParts = Mapping[Factor, Sequence[int]]
"""The parts of A and of B whose products a sum holds."""


def check_block_sums(loop: LoopSpec, scales: ScaleLoop, sums: Mapping[str, SumParts]) -> None:
    """`sums` are the parts of each by the name of its register value."""
    adders: dict[str, LoopOp] = {}
    for op in loop.ops:
        if op.kind is not OpKind.VALU:
            continue
        concerns = [Concern(label=op.name, source=op.source)]
        own = [read.value for read in op.reads if read.value in sums]
        if len(own) != 1:
            raise no_product(
                f"{op} adds {' and '.join(own) or 'no sum of a block'}: a vector op of a GEMM scales one sum of blocks",
                concerns=concerns,
            )
        if own[0] in adders:
            raise no_product(f"{adders[own[0]]} and {op} both add {own[0]} to C", concerns=concerns)
        adders[own[0]] = op
        scales.check_scaled(op, sums[own[0]], [read.value for read in op.reads if read.value not in own])
        held, summed = (loop.value(name).size for name in (op.writes[0], own[0]))
        if held != summed:
            raise miscounted(
                f"{op.writes[0]} is declared as {held} registers of each lane, but {own[0]}, which {op} adds to it, "
                f"has {summed}",
                concerns=concerns,
                evidence=(("declared", held), ("taken", summed)),
                fixes=(f"registers={summed}",),
            )
    for name in sums:
        if name not in adders:
            raise no_product(
                f"nothing adds {name} to C",
                concerns=[Concern(label=op.name, source=op.source) for op in loop.writers(name)],
                fixes=(f"loop.add(accumulator, [{name}, scales of A, scales of B])",),
            )
