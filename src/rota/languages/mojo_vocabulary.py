"""A schedule as Mojo source: takes a GEMM's plan, gives the reference's vocabulary and a table for each phase."""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.text.names import comment
from rota.languages.mojo_table import TableRow, table_rows
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.vocabulary import DoubleBufferTag, FrameworkTag, KOffsetKind
from rota.program.kinds import OpRole, ResourceKind
from rota.program.phase import Phase

NO_OFFSET = -128
"""What stands for no K offset in a table."""
_OP = tuple(TableRow._fields[:13])


def emit_mojo_table(compiled: CompiledSchedule, geometry: KernelGeometry) -> str:
    """The tables alone, with a `main` that prints their rows: Mojo's own reading of them."""
    plan = gemm_plan(compiled, geometry)
    return "\n".join([*mojo_tables(plan), "", "", *_printing(), ""])


def mojo_tables(plan: GemmPlan) -> Iterator[str]:
    """The vocabulary, and a function for each phase."""
    for tag in (*DoubleBufferTag, *FrameworkTag):
        yield f"comptime {tag.name} = {tag.value}"
    for kind in KOffsetKind:
        yield f"comptime {_offset(kind.value)} = {NO_OFFSET if kind.value is None else kind.value}"
    for names in (ResourceKind, OpRole, Phase):
        for number, each in enumerate(names):
            yield f"comptime {_constant(names.__name__, each.name)} = {number}"
    yield ""
    yield ""
    yield "@fieldwise_init"
    yield "struct OpDesc(Copyable, Movable, ImplicitlyCopyable):"
    yield from (f"    var {name}: Int" for name in _OP)
    yield ""
    yield ""
    yield "@fieldwise_init"
    yield "struct ScheduleEntry(Copyable, Movable, ImplicitlyCopyable):"
    yield "    var op: OpDesc"
    yield "    var time_slot: Int"
    yield "    var phase: Int"
    yield "    var is_prefetch: Bool"
    rows = table_rows(plan)
    for phase in Phase:
        yield ""
        yield ""
        yield f"def {phase.name.lower()}() -> List[ScheduleEntry]:"
        yield f'    """The entries of the {phase.name.lower()}: {", ".join(_OP)}; time_slot, phase, is_prefetch."""'
        yield "    var table = List[ScheduleEntry]()"
        for row, entry in zip(rows[phase], plan.compiled.phase(phase), strict=True):
            yield f"    table.append({_row(row)})  # {comment(str(entry.op)).removeprefix('// ')}"
        yield "    return table^"


def _row(row: TableRow) -> str:
    tags: dict[int, str] = {int(tag): tag.name for tag in (*DoubleBufferTag, *FrameworkTag)}
    op: list[object] = list(row[:13])
    op[0] = tags[row.tag]
    op[3] = _offset(row.k_offset)
    op[7] = _constant("ResourceKind", row.resource)
    op[9] = _constant("OpRole", row.role)
    return f"ScheduleEntry(OpDesc({', '.join(map(str, op))}), {row.time_slot}, PHASE_{row.phase}, {row.is_prefetch})"


def _offset(multiple: int | None) -> str:
    known = {kind.value: kind.name for kind in KOffsetKind}
    return f"K_OFFSET_{known[multiple]}" if multiple in known else str(multiple)


def _constant(kind: str, name: str) -> str:
    return {"ResourceKind": "RESOURCE", "OpRole": "ROLE", "Phase": "PHASE"}[kind] + f"_{name}"


def _printing() -> Iterator[str]:
    fields = ", ".join(f"e.op.{name}" for name in _OP)
    yield "def main():"
    for phase in Phase:
        yield f"    for e in {phase.name.lower()}():"
        yield f"        print({fields}, e.time_slot, e.phase, Int(e.is_prefetch))"
