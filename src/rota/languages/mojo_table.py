"""A schedule as a table in the reference's vocabulary: takes a GEMM's plan, gives a `TableRow` for each entry.

A schedule by stages has its rows' fields itself.  Of a loop by values they follow from what its ops are bound to: a
load or read is a slice of A or B, a compute the product of two slices.  A kernel that walks the table knows no more
than the rows: what it would do with each of them must be what the entry is bound to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_instructions import Dma, Instruction, LdsRead, Mfma
from rota.emit.gemm.gemm_plan import GemmPlan
from rota.emit.gemm.program_form import form_of
from rota.emit.refusal import unfit
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import DoubleBufferTag, FrameworkTag
from rota.program.entry import Entry
from rota.program.kinds import OpKind, OpRole, ResourceKind
from rota.program.phase import Phase

LOADS = {DoubleBufferTag.LOAD_A: Factor.A, DoubleBufferTag.LOAD_B: Factor.B}
FRAGMENTS = {DoubleBufferTag.MMA_LOAD_A: Factor.A, DoubleBufferTag.MMA_LOAD_B: Factor.B}
_WAITS = {"vmcnt": FrameworkTag.WAIT_VM, "lgkmcnt": FrameworkTag.WAIT_LGKM}
_FRAMEWORK = {
    OpKind.BARRIER: FrameworkTag.BARRIER,
    OpKind.PRIORITY: FrameworkTag.SET_PRIO,
    OpKind.FENCE: FrameworkTag.SCHEDULE_BARRIER,
}


class TableRow(NamedTuple):
    """One entry: the fields of its op, then those of its place; `k_offset` in K-tiles, None where an op has none."""

    tag: int
    stage: int
    subtile: int
    k_offset: int | None
    vm_cost: int
    lgkm_cost: int
    wait_value: int
    resource: str
    latency: int
    role: str
    channel: int
    vgpr_def: int
    vgpr_kill: int
    time_slot: int
    phase: str
    is_prefetch: bool


class Extra(NamedTuple):
    """A barrier beside the table that keeps two wave groups apart: before which row, and of which group; -1 is both."""

    before: int
    group: int


def table_rows(plan: GemmPlan) -> Mapping[Phase, tuple[TableRow, ...]]:
    """The table of each phase; what a walk of it couldn't tell is refused."""
    found: dict[Phase, tuple[TableRow, ...]] = {}
    in_stages = form_of(plan.program).in_stages
    for phase in Phase:
        listed = [entry for entry in plan.program.phase(phase) if entry.listed]
        rows: list[TableRow] = []
        for entry, written in zip(listed, plan.compiled.phase(phase), strict=True):
            if in_stages:
                row = _of_stages(written.op, written.time_slot, phase, is_prefetch=written.is_prefetch)
            else:
                row = _of_values(plan, entry, phase)
            if walked(plan, row) != plan.binding.instructions(entry):
                raise unfit(
                    f"{entry.op} is no whole slice of A or B, which is what a row of a table stands for",
                    concerns=(entry.concern(),),
                )
            rows.append(row)
        found[phase] = tuple(rows)
    return found


def extras(plan: GemmPlan, phase: Phase) -> tuple[Extra, ...]:
    """The barriers that are in no table."""
    found: list[Extra] = []
    rows = 0
    for entry in plan.program.phase(phase):
        if not entry.listed:
            found.append(Extra(rows, -1 if entry.roles is None else entry.roles[0]))
        rows += entry.listed
    return tuple(found)


def walked(plan: GemmPlan, row: TableRow) -> tuple[Instruction, ...]:
    """What a walk makes of a row: the machine instructions of a load, a read or a compute."""
    if row.tag in LOADS:
        return tuple(_dmas(plan, LOADS[DoubleBufferTag(row.tag)], row))
    if row.tag in FRAGMENTS:
        return tuple(_reads(plan, FRAGMENTS[DoubleBufferTag(row.tag)], row))
    return tuple(_mfmas(plan, row)) if row.tag == DoubleBufferTag.MMA else ()


def dmas_of_slice(plan: GemmPlan, operand: Factor) -> int:
    """DMAs that bring a slice."""
    return plan.tile.slice_rows(operand, plan.binding.buffers[operand].slices) // plan.tile.dma_rows


def parts_of_slice(plan: GemmPlan, operand: Factor) -> int:
    """Parts of a slice that one wave multiplies."""
    return plan.tile.parts(operand) // plan.binding.buffers[operand].slices


def _dmas(plan: GemmPlan, operand: Factor, row: TableRow) -> Iterator[Instruction]:
    each, tile = dmas_of_slice(plan, operand), plan.tile
    for number in range(row.subtile * each, (row.subtile + 1) * each):
        lds = row.stage * tile.tile_bytes(operand) + number * tile.dma_rows * tile.row_bytes
        yield Dma(operand, lds, number, row.k_offset or 0)


def _reads(plan: GemmPlan, operand: Factor, row: TableRow) -> Iterator[Instruction]:
    own, tile = parts_of_slice(plan, operand), plan.tile
    for part in range(row.subtile * own, (row.subtile + 1) * own):
        lds = row.stage * tile.tile_bytes(operand) + plan.binding.first_row(operand, part) * tile.row_bytes
        yield from (LdsRead(operand, lds, part, piece, 0) for piece in range(plan.pieces))


def _mfmas(plan: GemmPlan, row: TableRow) -> Iterator[Instruction]:
    rows, columns = parts_of_slice(plan, Factor.A), parts_of_slice(plan, Factor.B)
    copies = (0,) * plan.tile.pieces_per_step
    for step in range(plan.tile.steps):
        for m in range(row.stage * rows, (row.stage + 1) * rows):
            for n in range(row.subtile * columns, (row.subtile + 1) * columns):
                yield Mfma(step, m, n, copies, copies)


def _of_stages(op: OpDesc, slot: int, phase: Phase, *, is_prefetch: bool) -> TableRow:
    return TableRow(
        tag=int(op.tag),
        stage=op.stage,
        subtile=op.subtile,
        k_offset=op.k_offset.value,
        vm_cost=op.vm_cost,
        lgkm_cost=op.lgkm_cost,
        wait_value=op.wait_value,
        resource=op.resource.name,
        latency=op.latency,
        role=op.role.name,
        channel=op.channel,
        vgpr_def=op.vgpr_def,
        vgpr_kill=op.vgpr_kill,
        time_slot=slot,
        phase=phase.name,
        is_prefetch=is_prefetch,
    )


def _of_values(plan: GemmPlan, entry: Entry, phase: Phase) -> TableRow:
    """A load is never left out, so that none is a prefetch; latencies and registers are not the table's to say."""
    effect = entry.effect
    row = TableRow(
        tag=-1,
        stage=0,
        subtile=0,
        k_offset=None,
        vm_cost=effect.tokens if effect.counter == "vmcnt" and not entry.op.is_framework else 0,
        lgkm_cost=effect.tokens if effect.counter == "lgkmcnt" and not entry.op.is_framework else 0,
        wait_value=effect.wait_value,
        resource=ResourceKind.SCALAR.name,
        latency=0,
        role=OpRole.SYNC.name,
        channel=-1,
        vgpr_def=0,
        vgpr_kill=0,
        time_slot=entry.time_slot,
        phase=phase.name,
        is_prefetch=False,
    )
    if entry.op.kind is OpKind.WAIT:
        return row._replace(tag=_WAITS[effect.counter or ""])
    if entry.op.is_framework:
        role = OpRole.SYNC if entry.op.kind is OpKind.BARRIER else OpRole.FENCE
        return row._replace(tag=_FRAMEWORK[entry.op.kind], role=role.name)
    return _data(plan, row, plan.instructions(entry)[0])


def _data(plan: GemmPlan, row: TableRow, first: Instruction) -> TableRow:
    if isinstance(first, Mfma):
        m, n = first.a_part // parts_of_slice(plan, Factor.A), first.b_part // parts_of_slice(plan, Factor.B)
        multiplies = row._replace(resource=ResourceKind.MMA_UNIT.name, role=OpRole.COMPUTE.name)
        return multiplies._replace(tag=int(DoubleBufferTag.MMA), stage=m, subtile=n)
    operand = first.operand
    channel = list(Factor).index(operand)
    placed = row._replace(channel=channel, stage=first.lds // plan.tile.tile_bytes(operand))
    if isinstance(first, Dma):
        subtile = first.number // dmas_of_slice(plan, operand)
        fetches = placed._replace(resource=ResourceKind.GLOBAL_MEM.name, role=OpRole.GLOBAL_LOAD.name)
        return fetches._replace(tag=int(list(LOADS)[channel]), subtile=subtile, k_offset=first.k_tile)
    subtile = first.part // parts_of_slice(plan, operand)
    reads = placed._replace(resource=ResourceKind.LDS.name, role=OpRole.FRAGMENT_LOAD.name)
    return reads._replace(tag=int(list(FRAGMENTS)[channel]), subtile=subtile)
