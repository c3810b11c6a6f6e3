"""Tiny programs, written out: takes a few words per phase, gives schedules whose verdict a reader can check."""

from __future__ import annotations

from collections.abc import Sequence

from rota import GFX950, KOffsetKind, OpDesc, OpRole, Phase, PipelineConfig, ScheduleConfig, WarpStaggerRule
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.op import entries_of
from rota.program.entry import BARRIER, MEETS, Effect, Entry, Op, Place, Space, Version, wait_effect, wait_op
from rota.program.kinds import KIND_NAMED, Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import LoweredProgram, number_entries

_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1)


def sync(word: str) -> OpDesc | None:
    """`vm2`, `lgkm0` and `bar`."""
    if word == "bar":
        return OpDesc.barrier()
    if word.startswith("vm"):
        return OpDesc.wait_vm(int(word[2:]))
    if word.startswith("lgkm"):
        return OpDesc.wait_lgkm(int(word[4:]))
    return None


def _stage_op(word: str) -> OpDesc:
    """`loadA0`, `readB1`, `mma`; `store`, `slice1` (a read), `add1` (a compute) of a single buffer."""
    if word == "mma":
        return OpDesc(tag=5, role=OpRole.COMPUTE)
    if word.startswith("add"):
        return OpDesc(tag=5, role=OpRole.COMPUTE, subtile=int(word[3:]))
    if word.startswith("slice"):
        return OpDesc(tag=2, role=OpRole.FRAGMENT_LOAD, channel=0, subtile=int(word[5:]))
    if word == "store":
        return OpDesc(tag=1, role=OpRole.SHARED_STORE, channel=0)
    if word == "load":
        return OpDesc(tag=0, role=OpRole.GLOBAL_LOAD, channel=0)
    verb, channel, stage = word[:4], "AB".index(word[4]), int(word[5])
    if verb == "load":
        return OpDesc(tag=0, role=OpRole.GLOBAL_LOAD, channel=channel, stage=stage, k_offset=_OFFSETS[stage])
    return OpDesc(tag=3, role=OpRole.FRAGMENT_LOAD, channel=channel, stage=stage)


def by_stages(
    prologue: str, kernel: str, epilogue: str, *, stagger: int | None = None, tracked: bool = False, slices: int = 0
) -> CompiledPipeline:
    """A double buffer of a 1x1 grid, one token per op; with `slices` a single buffer that cuts K so often."""
    rule = WarpStaggerRule.none() if stagger is None else WarpStaggerRule.fixed(stagger)
    config = PipelineConfig(
        depth=1 if slices else 2,
        num_partitions=1 if slices else 2,
        m_mmas=1,
        n_mmas=1,
        vm_per_load_a=1,
        vm_per_load_b=1,
        warp_stagger=rule,
    )
    phases = {
        phase: entries_of([sync(word) or _stage_op(word) for word in words.split()], phase)
        for phase, words in zip(Phase, (prologue, kernel, epilogue), strict=True)
    }
    return CompiledPipeline(
        name="written",
        machine=GFX950,
        config=config,
        schedule_config=ScheduleConfig(),
        body=tuple(_stage_op(f"add{number}") for number in range(slices)),
        edges=(),
        prologue=phases[Phase.PROLOGUE],
        kernel=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        kernel_deps=(),
        warp_stagger_index=len(phases[Phase.PROLOGUE]) + 1 if stagger is None else stagger,
        compiler_tracks_registers=tracked,
    )


def loop_of(*ops: str, into: Sequence[tuple[str, str]] = ()) -> LoopSpec:
    """Ops as `x = load`, `r = fragment x`, `c = mma r s@1`; t and u are LDS tiles, c an accumulator, else registers."""
    taken = dict(into)
    values: dict[str, Value] = {}
    made: list[LoopOp] = []
    for text in ops:
        target, _, rest = text.partition(" = ")
        work, *operands = rest.split()
        home = {"t": Home.LDS, "u": Home.LDS, "c": Home.ACCUMULATOR}.get(target[0], Home.REGISTERS)
        kind = KIND_NAMED["gload" if work == "load" and home is Home.REGISTERS else work]
        size = 8192 if home is Home.LDS else 4
        values.setdefault(target, Value(name=target, home=home, size=size, into=taken.get(target, "")))
        reads = [each.partition("@") for each in operands]
        made.append(
            LoopOp(
                name=f"{work}_{target}{len(made)}",
                kind=kind,
                reads=tuple(Read(value=name, distance=int(distance or 0)) for name, _, distance in reads),
                writes=(target,),
                moved=4096 if kind.asynchronous else 0,
            )
        )
    return LoopSpec(name="written", waves=4, values=tuple(values.values()), ops=tuple(made))


def by_values(
    loop: LoopSpec,
    prologue: str,
    kernel: str,
    epilogue: str,
    *,
    copies: dict[str, int] | None = None,
    tracked: bool = False,
    tiles: tuple[int, int] = (1, 0),
) -> LoweredProgram:
    """Entries as `2@0`: op number 2 of iteration 0, counted from the trip's first in the kernel and after it."""
    many = copies or {}
    phases: dict[Phase, tuple[Entry, ...]] = {}
    for phase, words in zip(Phase, (prologue, kernel, epilogue), strict=True):
        first = 0 if phase is Phase.PROLOGUE else -tiles[0]
        made = (_value_op(loop, word, first, many) for word in words.split())
        phases[phase] = number_entries([Entry(op=op, effect=effect, time_slot=0, phase=phase) for op, effect in made])
    return LoweredProgram(
        name=loop.name,
        machine=GFX950,
        semantics=loop,
        prologue=phases[Phase.PROLOGUE],
        kernel=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        tiles_per_trip=tiles[0],
        tiles_outside=tiles[1],
        compiler_tracks_registers=tracked,
    )


def _value_op(loop: LoopSpec, word: str, first: int, copies: dict[str, int]) -> tuple[Op, Effect]:
    if word == "bar":
        return BARRIER, MEETS
    for counter in ("vmcnt", "lgkmcnt"):
        short = counter.removesuffix("cnt")
        if word.startswith(short):
            count = int(word.removeprefix(short))
            return wait_op(counter, count), wait_effect(counter, count)
    number, _, iteration = word.partition("@")
    op = loop.ops[int(number)]
    at = int(iteration) + first
    counter_name = {OpKind.DMA: "vmcnt", OpKind.GLOBAL_LOAD: "vmcnt", OpKind.MMA: None, OpKind.VALU: None}.get(
        op.kind, "lgkmcnt"
    )
    homes = [loop.value(value).home for value in op.writes]
    wants = tuple(
        (place, Version(read.value, at - read.distance))
        for read in op.reads
        for place in _places(loop, read.value, at - read.distance, copies)
    )
    makes = tuple(
        (place, Version(value, at))
        for value in op.writes
        if loop.value(value).home is not Home.ACCUMULATOR
        for place in _places(loop, value, at, copies)
        if place.space is not Space.LDS or loop.writers(value)[place.part] is op
    )
    sums = [value for value, home in zip(op.writes, homes, strict=True) if home is Home.ACCUMULATOR]
    effect = Effect(
        kind=op.kind,
        counter=counter_name,
        tokens=op.instructions if counter_name else 0,
        reads=tuple(place for place, _ in wants),
        writes=(*(place for place, _ in makes), *(Place(Space.ACCUMULATOR, value) for value in sums)),
        instance=Version(op.name, at),
        wants=wants,
        makes=makes,
    )
    return Op(kind=op.kind, name=op.name), effect


def _places(loop: LoopSpec, value: str, iteration: int, copies: dict[str, int]) -> list[Place]:
    first = loop.registers_of(value)[0]
    slot = iteration % copies.get(first, 1)
    if loop.value(value).home is Home.LDS:
        return [Place(Space.LDS, value, slot, part) for part in range(len(loop.writers(value)))]
    return [Place(Space.REGISTER, first, slot)]
