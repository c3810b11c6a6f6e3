from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import (
    CompiledSchedule,
    DeclarativeSchedule,
    KernelGeometry,
    Loop,
    OpDesc,
    PipelineConfig,
    Read,
    RotaError,
    compile_schedule,
    mi355x_target,
)
from rota.audit.audit import audit_gemm
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.errors import Finding
from rota.isa.binary.toolchain import find_toolchain
from rota.pipeline.op import ScheduleEntry
from rota.program.kinds import OpKind, OpRole, Phase
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.program.lowered import LoweredProgram
from rota.values.compile_loop import unroll_bare
from rota.values.unroll import Placement
from tests.emit.gemm_oracle import GEOMETRY, SHAPE
from tests.emit.kernels import ping_pong
from tests.findings.smallest import raised
from tests.wording.golden import mentions

Change = Callable[[LoopOp], LoopOp]
QUADRANTS = SHAPE.loop(instructions=False)


def written(loop: LoopSpec, geometry: KernelGeometry = GEOMETRY) -> Finding:
    return raised("T206", lambda: emit_gemm(one_after_the_other(loop), geometry))


def but(name: str, **changes: object) -> LoopSpec:
    """The loop of quadrants, one op of it changed; accumulators that nothing writes any more are not declared."""
    ops = tuple(replace(op, **changes) if op.name == name else op for op in QUADRANTS.ops)  # type: ignore[arg-type]
    return declared(ops)


def declared(ops: tuple[LoopOp, ...]) -> LoopSpec:
    known = {name for op in ops for name in op.writes}
    return replace(QUADRANTS, values=tuple(value for value in QUADRANTS.values if value.name in known), ops=ops)


def reads(*names: str, distance: int = 0) -> tuple[Read, ...]:
    return tuple(Read(value=name, distance=distance) for name in names)


def test_a_quadrant_that_is_missing() -> None:
    missing = declared(tuple(op for op in QUADRANTS.ops if op.name != "mma_c11"))
    assert mentions(written(missing).message, "a1", "b1")


def test_a_quadrant_that_is_there_twice() -> None:
    again = declared((*QUADRANTS.ops, replace(QUADRANTS.ops[-1], name="again")))
    finding = written(again)
    assert mentions(finding.message, "a1", "b1", "c11")
    assert [concern.label for concern in finding.concerns] == ["mma_c11", "again"]
    assert mentions(written(but("mma_c11", reads=reads("a0", "b0"))).message, "c00", "c11", "a0", "b0")


def test_four_sums_into_one_accumulator() -> None:
    one = tuple(replace(op, writes=("c00",)) if op.kind is OpKind.MMA else op for op in QUADRANTS.ops)
    assert mentions(written(declared(one)).message, "c00", "a0", "b0", "b1")


def test_the_audit_refuses_it_too() -> None:
    """A kernel that computes all quadrants is not the machine code of a loop that doesn't."""
    code = find_toolchain().compile(emit_gemm(one_after_the_other(QUADRANTS), GEOMETRY), "gfx950")
    missing = declared(tuple(op for op in QUADRANTS.ops if op.name != "mma_c11"))
    raised("T206", lambda: audit_gemm(one_after_the_other(missing), GEOMETRY, code))


def halves_of_k(*, tiles: int) -> LoopSpec:
    """A GEMM whose author cuts the K-tile in two along K, in LDS or when reading: right, but not what is written."""
    loop = Loop("halves_of_k", waves=4)
    fragments: dict[str, list[str]] = {}
    for operand in "AB":
        names = [loop.tile(f"{operand}{half}", size=8192 // tiles, operand=operand) for half in range(tiles)]
        for name in names:
            loop.load(name, instructions=2 // tiles, moved=8192 // tiles)
        fragments[operand] = [
            loop.fragment(f"{operand.lower()}{half}", names[half % tiles], registers=8, instructions=2)
            for half in range(2)
        ]
    loop.accumulator("c", registers=16)
    for half, (a, b) in enumerate(zip(fragments["A"], fragments["B"], strict=True)):
        loop.mma("c", a, b, instruction=SHAPE.instruction, instructions=4, name=f"mma{half}")
    return loop.build()


@pytest.mark.parametrize("tiles", [1, 2])
def test_a_split_along_k_is_called_one(tiles: int) -> None:
    finding = written(halves_of_k(tiles=tiles))
    assert mentions(finding.message, "a0", "b0", "a1", "b1")
    assert "taken for" in dict(finding.evidence)


def test_half_as_deep_instead_is_written() -> None:
    """The fix of a split along K."""
    shallow = replace(SHAPE, depth=32, rows=128, columns=128)
    assert "C = A x B^T" in emit_gemm(one_after_the_other(shallow.loop(instructions=False)), shallow.geometry)


@pytest.mark.parametrize(
    ("loop", "names"),
    [
        (but("mma_c00", reads=reads("b0", "a0")), ("mma_c00", "b0", "a0")),
        (but("mma_c00", reads=reads("a0", "a1")), ("mma_c00", "a0", "a1")),
        (but("mma_c00", reads=reads("a0", "a0", "b0")), ("mma_c00", "a0")),
        (but("mma_c00", reads=reads("a0", "b0", distance=1)), ("mma_c00", "a0")),
        (but("read_a0", reads=reads("A0", distance=1)), ("read_a0", "A0")),
        (but("read_a1", reads=reads("A0")), ("A1",)),
    ],
)
def test_what_else_a_product_may_be(loop: LoopSpec, names: tuple[str, ...]) -> None:
    assert mentions(raised("T206", lambda: bound(one_after_the_other(loop), GEOMETRY)).message, *names)


@pytest.mark.parametrize("names", [("a0", "b0", "c11"), ("A0", "B0")])
def test_operands_that_are_no_registers_are_refused(names: tuple[str, ...]) -> None:
    """At the latest here."""
    with pytest.raises(RotaError):
        bound(one_after_the_other(but("mma_c00", reads=reads(*names))), GEOMETRY)


def one_after_the_other(loop: LoopSpec) -> CompiledSchedule:
    count = len(loop.ops)
    return unroll_bare(loop, Placement(interval=count, starts=tuple(range(count)), copies=()))


def bound(compiled: CompiledSchedule | LoweredProgram, geometry: KernelGeometry) -> GemmBinding:
    return GemmBinding(compiled, gemm_tile(compiled, geometry))


def test_the_transposed_product_the_right_way_round_is_written() -> None:
    """The fix of a product of B by A."""
    finding = raised("T206", lambda: bound(one_after_the_other(but("mma_c00", reads=reads("b0", "a0"))), GEOMETRY))
    assert finding.fixes[0].endswith(": a0, b0")
    bound(one_after_the_other(but("mma_c00", reads=reads("a0", "b0"))), GEOMETRY)


BY_INSTRUCTION = SHAPE.loop(instructions=True)


def instruction_but(name: str, **changes: object) -> LoopSpec:
    ops = tuple(replace(op, **changes) if op.name == name else op for op in BY_INSTRUCTION.ops)  # type: ignore[arg-type]
    return replace(BY_INSTRUCTION, ops=ops)


@pytest.mark.parametrize(
    ("loop", "names"),
    [
        (instruction_but("mma0_0_0", reads=reads("a0_0", "b0_1")), ("mma0_0_0",)),
        (instruction_but("mma0_0_0", reads=reads("a0_0", "a1_1", "b0_0", "b0_1")), ("mma0_0_0",)),
        (replace(BY_INSTRUCTION, ops=BY_INSTRUCTION.ops[:-1]), ("32",)),
    ],
)
def test_steps_of_k_that_do_not_meet(loop: LoopSpec, names: tuple[str, ...]) -> None:
    assert mentions(raised("T206", lambda: bound(one_after_the_other(loop), GEOMETRY)).message, *names)


# By stages: what a schedule's entries compute, whatever its certificate says.


def changed(change: Callable[[ScheduleEntry], tuple[ScheduleEntry, ...]]) -> CompiledSchedule:
    """Ping-pong with every entry replaced by some."""
    compiled, _ = ping_pong()

    def phase(entries: tuple[ScheduleEntry, ...]) -> tuple[ScheduleEntry, ...]:
        return tuple(each for entry in entries for each in change(entry))

    return replace(
        compiled, prologue=phase(compiled.prologue), kernel=phase(compiled.kernel), epilogue=phase(compiled.epilogue)
    )


def is_compute(entry: ScheduleEntry, row: int, column: int) -> bool:
    return entry.op.role is OpRole.COMPUTE and (entry.op.stage, entry.op.subtile) == (row, column)


def with_op(entry: ScheduleEntry, **changes: int) -> tuple[ScheduleEntry]:
    return (replace(entry, op=replace(entry.op, **changes)),)  # type: ignore[arg-type]


GRIDS: dict[str, tuple[Callable[[ScheduleEntry], tuple[ScheduleEntry, ...]], tuple[str, ...]]] = {
    "a quadrant is missing": (lambda entry: () if is_compute(entry, 1, 1) else (entry,), ("0", "4")),
    "a quadrant is there twice": (lambda entry: (entry, entry) if is_compute(entry, 1, 1) else (entry,), ("mma[1,1]",)),
    "one quadrant stands for another": (
        lambda entry: with_op(entry, stage=0) if is_compute(entry, 1, 1) else (entry,),
        ("mma[0,1]",),
    ),
    "a quadrant is outside of the grid": (
        lambda entry: with_op(entry, stage=2, subtile=0) if is_compute(entry, 1, 1) else (entry,),
        ("mma[2,0]", "A[2]", "2 x 2"),
    ),
    "a stage that the pipeline doesn't have": (
        lambda entry: with_op(entry, stage=7) if entry.op.role is OpRole.GLOBAL_LOAD else (entry,),
        ("load_b s7 t0 k0", "B[7][0]", "2 x 2"),
    ),
    "a third operand": (
        lambda entry: with_op(entry, channel=2) if entry.op.role is OpRole.FRAGMENT_LOAD else (entry,),
        ("mma_load_b s0 t0", "2[0]", "2 x 2"),
    ),
    "a fragment is never read": (
        lambda entry: () if entry.op.role is OpRole.FRAGMENT_LOAD and entry.op.channel == 0 else (entry,),
        ("mma[0,0]",),
    ),
    "nothing is loaded in the loop": (
        lambda entry: () if entry.op.role is OpRole.GLOBAL_LOAD and entry.phase is Phase.KERNEL else (entry,),
        ("mma[1,0]",),
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_that_is_no_gemm(name: str) -> None:
    change, names = GRIDS[name]
    geometry = ping_pong()[1]
    assert mentions(raised("T206", lambda: bound(changed(change), geometry)).message, *names)


def test_a_schedule_whose_certificate_outlived_a_quadrant_is_refused() -> None:
    change, _ = GRIDS["a quadrant is missing"]
    with pytest.raises(RotaError):
        emit_gemm(replace(changed(change), compiler_tracks_registers=False), ping_pong()[1])


def test_sums_of_different_blocks_in_one_accumulator_are_refused() -> None:
    """By stages an accumulator is a place of the grid, but an entry may say where it adds."""
    program = ping_pong()[0].lowered
    first, last = (
        next(entry for entry in program.kernel if entry.op.name == name) for name in ("mma[0,0]", "mma[1,1]")
    )
    elsewhere = replace(last.effect, writes=first.effect.writes)
    wrong = program.with_phases(
        {
            phase: [
                replace(entry, effect=elsewhere) if entry.op == last.op else entry for entry in program.phase(phase)
            ]
            for phase in Phase
        }
    )
    finding = raised("T206", lambda: bound(wrong, ping_pong()[1]))
    assert mentions(finding.message, "mma[1,1]", "mma[0,0]")


def test_a_loop_that_never_comes_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trips that are followed have a limit, whatever the schedule."""
    monkeypatch.setattr("rota.emit.gemm.gemm_binding._MOST_TRIPS", 1)
    raised("T206", lambda: bound(*ping_pong()))


class OneRow(DeclarativeSchedule):
    """B's fragments are chosen by the compute's row, as A's: only the diagonal of the grid is computed."""

    def config(self) -> PipelineConfig:
        return super().config().but(ch1_match_field=0)


def test_fragments_chosen_by_the_wrong_field_are_refused() -> None:
    schedule = OneRow(target=mi355x_target(2, 2, 1))
    compiled = compile_schedule(schedule, sync="as_written")
    geometry = ping_pong()[1]
    finding = raised("T206", lambda: bound(compiled, geometry))
    assert mentions(finding.message, "mma[0,0]", "mma[0,1]")


def test_rows_and_columns_by_their_other_names_are_written() -> None:
    """An accumulator is known by what feeds it: only the names change."""

    class Exchanged(DeclarativeSchedule):
        def config(self) -> PipelineConfig:
            return super().config().but(ch0_match_field=1, ch1_match_field=0)

    compiled = compile_schedule(Exchanged(target=mi355x_target(2, 2, 1)), sync="as_written")
    bound(compiled, ping_pong()[1])


def test_an_op_that_is_none_of_a_gemms_is_refused() -> None:
    extra = OpDesc(tag=9, role=OpRole.VALU_COMPUTE)
    compiled = changed(lambda entry: (entry, replace(entry, op=extra)) if is_compute(entry, 1, 1) else (entry,))
    raised("T203", lambda: bound(compiled, ping_pong()[1]))
