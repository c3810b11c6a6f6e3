"""A compiled schedule by stages: what it is lowered to, first the effect of each op, and notes on what moved."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Self

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.proved import MOVED, BodyPlaces
from rota.errors import Concern, DeclarationError, Finding, Severity, several
from rota.order.acyclic.problem import DepEdge, LoopBody, OrderCertificate, Ordering, Proof
from rota.pipeline.block import PipelineProgram
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import TileShape, with_work
from rota.pipeline.op import CHANNEL_A, FrameworkTag, OpDesc, ScheduleEntry
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.entry import MEETS, Effect, Entry, Op, Origin, Place, Space, Work, wait_name
from rota.program.kinds import OpKind, OpRole, Phase
from rota.program.lowered import (
    LoweredProgram,
    TileProduct,
    TileSum,
    catch_up,
    fall_back,
    falls_back_at,
    find_common_barrier,
    make_groups,
    name_phases,
)
from rota.program.machine import LANES, Machine


@dataclass(frozen=True)
class EffectTerms:
    """What the effect of an op depends on besides the op.

    `lgkm_fallback` are the tokens of an LDS access to A and to B where neither the op nor the config states them.
    """

    config: PipelineConfig
    machine: Machine
    lgkm_fallback: tuple[int, int] = (0, 0)

    def counter(self, kind: OpKind) -> str:
        found = self.machine.counter_of(kind)
        if found is None:
            raise DeclarationError.of(
                "D105",
                f"{self.machine.name} has no counter for {kind.does}, so nothing could wait for it",
                evidence=(("counters", ", ".join(each.name for each in self.machine.counters)),),
            )
        return found

    @cached_property
    def load(self) -> OpKind:
        """What a global load is: with one buffer it goes through registers."""
        return OpKind.DMA if self.config.depth >= 2 else OpKind.GLOBAL_LOAD

    @cached_property
    def vm(self) -> str:
        """The counter that `wait_vm` waits for."""
        return self.counter(self.load)

    @cached_property
    def lgkm(self) -> str:
        """The counter that `wait_lgkm` waits for."""
        return self.counter(OpKind.LDS_READ)


_FRAMEWORK: dict[int, Callable[[OpDesc, EffectTerms], Effect]] = {
    FrameworkTag.BARRIER: lambda _op, _setting: MEETS,
    FrameworkTag.WAIT_VM: lambda op, setting: Effect(kind=OpKind.WAIT, counter=setting.vm, wait_value=op.wait_value),
    FrameworkTag.WAIT_LGKM: lambda op, setting: Effect(
        kind=OpKind.WAIT, counter=setting.lgkm, wait_value=op.wait_value
    ),
    FrameworkTag.SET_PRIO: lambda op, _setting: Effect(kind=OpKind.PRIORITY, wait_value=op.wait_value),
    FrameworkTag.SCHEDULE_BARRIER: lambda _op, _setting: Effect(kind=OpKind.FENCE),
    FrameworkTag.SCHED_GROUP_BARRIER: lambda op, _setting: Effect(
        kind=OpKind.HINT, tokens=op.subtile, wait_value=op.wait_value
    ),
}


def effect_of(op: OpDesc, setting: EffectTerms) -> Effect:
    """The effect of one op.

    An op's own costs come first, then the pipeline config's per-channel costs, then the fallback; an asynchronous op
    has at least one token, or no wait could ever cover it.
    """
    if op.is_framework:
        known = _FRAMEWORK.get(op.tag)
        return known(op, setting) if known else Effect(kind=OpKind.FENCE)
    described = _BY_ROLE.get(op.role)
    return described(op, setting) if described else Effect(kind=OpKind.NOTHING)


def operands_of(cell: OpDesc, config: PipelineConfig) -> tuple[Place, ...]:
    """The registers that a compute multiplies; of a single buffer, those of its slice of K."""
    if config.depth < 2:
        return (_fragment_place(CHANNEL_A, cell.subtile, config),)
    return tuple(
        _fragment_place(channel, config.compute_match_key(channel, cell), config) for channel in config.channels
    )


def accumulator_of(cell: OpDesc, config: PipelineConfig) -> Place:
    """What a compute adds to; a single buffer has one accumulator for all slices of K."""
    row, column = (cell.stage, cell.subtile) if config.depth >= 2 else (0, 0)
    return Place(Space.ACCUMULATOR, "", row, column)


def _load(op: OpDesc, setting: EffectTerms) -> Effect:
    config, kind = setting.config, setting.load
    tokens = max(config.vm_tokens(op), 1)
    if kind is OpKind.GLOBAL_LOAD:
        return Effect(kind=kind, counter=setting.vm, tokens=tokens, writes=(_staging(op, config),))
    fetches = op.k_offset.signed_bk_multiple()
    return Effect(kind=kind, counter=setting.vm, tokens=tokens, writes=_filled(op, config), fetches=fetches)


def _store(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(
        kind=OpKind.LDS_WRITE,
        counter=setting.counter(OpKind.LDS_WRITE),
        tokens=_lgkm_tokens(op, setting),
        reads=(_staging(op, setting.config),),
        writes=(_tile(op, setting.config),),
    )


def _fragment(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(
        kind=OpKind.LDS_READ,
        counter=setting.lgkm,
        tokens=_lgkm_tokens(op, setting),
        reads=(_tile(op, setting.config),),
        writes=(_fragment_place(op.channel, op.subtile, setting.config),),
    )


def _compute(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(kind=OpKind.MMA, reads=operands_of(op, setting.config), writes=(accumulator_of(op, setting.config),))


_BY_ROLE: dict[OpRole, Callable[[OpDesc, EffectTerms], Effect]] = {
    OpRole.GLOBAL_LOAD: _load,
    OpRole.SHARED_STORE: _store,
    OpRole.FRAGMENT_LOAD: _fragment,
    OpRole.COMPUTE: _compute,
}


def _tile(op: OpDesc, config: PipelineConfig) -> Place:
    """A single buffer's tile is one place: its store writes all of it, each fragment reads a slice of K."""
    return Place(Space.LDS, config.operand_name(op.channel), op.stage, op.subtile if config.depth >= 2 else 0)


def _filled(op: OpDesc, config: PipelineConfig) -> tuple[Place, ...]:
    """What a load to LDS writes: its subtile, or all of them where its channel is loaded at once."""
    spec = config.further_channel(op.channel)
    if spec is None or not spec.whole_tile:
        return (_tile(op, config),)
    return tuple(_tile(op, config)._replace(part=part) for part in range(config.subtiles(spec)))


def _fragment_place(channel: int, subtile: int, config: PipelineConfig) -> Place:
    return Place(Space.REGISTER, config.operand_name(channel), subtile)


def _staging(op: OpDesc, config: PipelineConfig) -> Place:
    return Place(Space.REGISTER, f"staging {config.operand_name(op.channel)}")


def _lgkm_tokens(op: OpDesc, setting: EffectTerms) -> int:
    return max(setting.config.lgkm_tokens(op, *setting.lgkm_fallback), 1)


_WITHOUT_INSTRUCTION = (FrameworkTag.SCHEDULE_BARRIER, FrameworkTag.SCHED_GROUP_BARRIER)
_ISSUED, _NOT_ISSUED = Work(1), Work(0)


def lower(schedule: CompiledPipeline) -> LoweredProgram:
    """The schedule's entries with their effects, and the stagger's extra barriers in place.

    A double buffer computes `num_partitions` tiles a trip and as many in the epilogue; a single buffer one a trip and
    two in the epilogue.
    """
    config, knobs = schedule.config, schedule.schedule_config
    maker = _EntryMaker(EffectTerms(config, schedule.machine, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b)))
    prologue, epilogue = maker.phase(schedule.prologue), maker.phase(schedule.epilogue)
    staggered, split = config.warp_stagger.enabled, schedule.machine.split_barrier
    if staggered:
        prologue = tuple(fall_back(prologue, schedule.warp_stagger_index, split=split))
        epilogue = tuple(catch_up(epilogue, split=split))
    roles = make_groups(None, staggered=staggered)
    return LoweredProgram(
        name=schedule.name,
        machine=schedule.machine,
        semantics=tile_sum(config, schedule.body),
        prologue=prologue,
        kernel=maker.phase(schedule.kernel),
        epilogue=epilogue,
        tiles_per_trip=config.num_partitions if config.depth >= 2 else 1,
        tiles_outside=config.num_partitions if config.depth >= 2 else 2,
        roles=roles,
        barriers=find_common_barrier(roles),
        compiler_tracks_registers=schedule.compiler_tracks_registers,
        reentrant=schedule.reentrant,
        lds_bytes=schedule.lds_bytes,
        registers=schedule.registers,
        register_limit=schedule.register_limit,
        origin="declared by stages",
    )


def tile_sum(config: PipelineConfig, body: Sequence[OpDesc]) -> TileSum:
    """What is declared: every cell of the MMA grid; of a single buffer, every slice of K that its body has."""
    if config.depth >= 2:
        places = [(row, column) for row in range(config.m_mmas) for column in range(config.n_mmas)]
    else:
        places = sorted({(0, op.subtile) for op in body if op.role in (OpRole.FRAGMENT_LOAD, OpRole.COMPUTE)})
    cells = [OpDesc(tag=0, stage=row, subtile=column) for row, column in places]
    return TileSum(
        products=tuple(TileProduct(accumulator_of(cell, config), operands_of(cell, config)) for cell in cells),
        grid=(config.m_mmas, config.n_mmas) if config.depth >= 2 else (1, 1),
        scales=tuple(int(each.match_field != config.ch0_match_field) for each in config.further_channels),
    )


class _EntryMaker:
    """Gives each op its effect; an op that is in several places is lowered once."""

    def __init__(self, setting: EffectTerms) -> None:
        self.setting = setting
        self.lowered: dict[int, tuple[Op, Effect]] = {}  # by identity: telling whether ops are equal takes longer

    def phase(self, entries: Iterable[ScheduleEntry]) -> tuple[Entry, ...]:
        made = []
        for each in entries:
            known = self.lowered.get(id(each.op))
            if known is None:
                known = self.lowered[id(each.op)] = self._lower(each.op)
            op, effect = known
            made.append(
                Entry(op=op, effect=effect, time_slot=each.time_slot, phase=each.phase, is_prefetch=each.is_prefetch)
            )
        return tuple(made)

    def _lower(self, desc: OpDesc) -> tuple[Op, Effect]:
        effect = effect_of(desc, self.setting)
        return Op(
            kind=effect.kind,
            name=str(desc),
            work=self._work(desc, effect),
            source=desc.source,
            declared=desc,
            origin=desc.origin,
        ), effect

    def _work(self, desc: OpDesc, effect: Effect) -> Work | None:
        """What a wave issues for an op; of A and B and of computes it follows from a tile's shape (`TileShape`)."""
        if desc.is_framework:
            return _NOT_ISSUED if desc.tag in _WITHOUT_INSTRUCTION else _ISSUED
        spec = self.setting.config.further_channel(desc.channel)
        return None if spec is None else Work(effect.tokens, spec.lane_bytes * LANES)


if TYPE_CHECKING:
    from rota.sync.repair import Repaired


# What is not issued where the body has it.
#
# A block issues its fragments and loads in two groups, `max_globals` takes loads out of over-full blocks, and an
# author's hooks may list anything. Each may do so; a reader of the body must be told.


class _Move(NamedTuple):
    """An op of the body that has passed others, and from which block to which the plan took it."""

    place: int
    passed: str
    block: int
    planned: int


def count_moved(findings: Iterable[Finding]) -> int:
    """How many ops of the body are not issued where their order says."""
    return sum(len(finding.concerns) for finding in findings if finding.code in MOVED)


def note_moved_ops(
    body: Sequence[OpDesc], ordering: Ordering, program: PipelineProgram, kernel: Sequence[ScheduleEntry]
) -> Iterator[Finding]:
    """Notes about the ops that blocks, `max_globals` and hooks move from their place in the order."""
    planned = [(number, op) for number, block in enumerate(program.blocks) for op in block.data_ops]
    by_hand = bool(program.explicit_blocks) or [entry.op for entry in kernel] != [
        op for index in range(len(program.blocks)) for op in program.block_ops(index)
    ]
    issued = [entry.op for entry in kernel if not entry.op.is_framework] if by_hand else [op for _, op in planned]
    order = [index for index in ordering.order if not (by_hand and body[index].is_framework)]
    if all(body[index] is op for index, op in zip(order, issued, strict=False)):  # far cheaper than equality
        return
    after = _indices(body, order, issued)
    computes = accumulate((body[index].role is OpRole.COMPUTE for index in ordering.order), initial=0)
    block_of = dict(zip(ordering.order, computes, strict=False))
    blocks = dict(zip(_indices(body, ordering.order, [op for _, op in planned]), (b for b, _ in planned), strict=False))
    last = len(program.blocks) - 1
    verb = "declared" if ordering.certificate.by == "identity" else f"put by {ordering.certificate.by}"
    moves = [
        _Move(index, passed, min(block_of[index], last), blocks.get(index, min(block_of[index], last)))
        for index, passed in _find_moves(body, order, after, verb)
    ]
    capped = [move for move in moves if move.block != move.planned]
    rest = [move for move in moves if move.block == move.planned]
    if capped:
        yield _cap(body, capped, program.config.block_sizing.max_globals, verb)
    if rest:
        yield _by_hand(body, rest) if by_hand else _by_template(body, rest, program)


def note_moved_by_hand(body: Sequence[OpDesc], kernel: Sequence[ScheduleEntry]) -> Iterator[Finding]:
    """The same for a single buffer, whose kernel is its body unless a hook changes it."""
    issued = [entry.op for entry in kernel if not entry.op.is_framework]
    order = [index for index, op in enumerate(body) if not op.is_framework]
    after = _indices(body, order, issued)
    if after != order:
        yield _by_hand(
            body, [_Move(index, passed, 0, 0) for index, passed in _find_moves(body, order, after, "declared")]
        )


def _cap(body: Sequence[OpDesc], moves: Sequence[_Move], limit: int, verb: str) -> Finding:
    return _note(
        "P114",
        f"max_globals={limit} moves {several(len(moves), 'load')} to other blocks",
        [body[m.place].concern(m.place, f"{verb} in block {m.block}, issued in block {m.planned}") for m in moves],
        len(body),
        "max_globals=0 leaves every load in its block",
    )


def _by_template(body: Sequence[OpDesc], moves: Sequence[_Move], program: PipelineProgram) -> Finding:
    first, second = ("loads", "fragments") if program.blocks[0].global_before_frag else ("fragments", "loads")
    return _note(
        "P113",
        f"a block issues its {first} before its {second}: {several(len(moves), 'op')} moved",
        [body[move.place].concern(move.place, move.passed) for move in moves],
        len(body),
        f"in each block, declare the {first} in front of the {second}: then the body shows what is issued",
        "build_explicit_blocks() lists whole blocks verbatim",
    )


def _by_hand(body: Sequence[OpDesc], moves: Sequence[_Move]) -> Finding:
    return _note(
        "P115",
        f"build_explicit_blocks() or transform_kernel() moves {several(len(moves), 'op')}",
        [body[move.place].concern(move.place, move.passed) for move in moves],
        len(body),
    )


def _note(code: str, message: str, concerns: Sequence[Concern], ops: int, *fixes: str) -> Finding:
    return Finding(
        code,
        message,
        severity=Severity.NOTE,
        concerns=tuple(concerns),
        evidence=(("moved", len(concerns)), ("ops in the body", ops)),
        fixes=fixes,
    )


def _indices(body: Sequence[OpDesc], order: Sequence[int], issued: Iterable[OpDesc]) -> list[int]:
    """The place in the body of every issued op; of equal ops the first issued is the first in order."""
    places: defaultdict[OpDesc, deque[int]] = defaultdict(deque)
    for index in order:
        places[body[index]].append(index)
    return [places[op].popleft() for op in issued if places[op]]


def _find_moves(
    body: Sequence[OpDesc], order: Sequence[int], after: Sequence[int], verb: str
) -> Iterator[tuple[int, str]]:
    """The ops that have moved, in body order, each with its old neighbours.

    Loads are what rota moves, so as many of the other ops as possible count as unmoved.
    """
    rank = {index: place for place, index in enumerate(order)}
    loads = {index for index in after if body[index].role is OpRole.GLOBAL_LOAD}
    stayed = _in_order([index for index in after if index not in loads], rank)
    ahead, now_ahead = _counts_ahead(order, stayed), _counts_ahead(after, stayed)
    still = [index for index in after if index in stayed or (index in loads and ahead[index] == now_ahead[index])]
    stayed = _in_order(still, rank)
    ahead, now_ahead = _counts_ahead(order, stayed), _counts_ahead(after, stayed)
    kept = [index for index in order if index in stayed]
    for index in sorted(set(after) - stayed):
        was, now = ahead[index], now_ahead[index]
        if now > was:
            yield index, f"{verb} in front of {body[kept[now - 1]]} (#{kept[now - 1]}), issued after it"
        else:
            yield index, f"{verb} after {body[kept[now]]} (#{kept[now]}), issued before it"


def _counts_ahead(sequence: Sequence[int], stayed: frozenset[int]) -> dict[int, int]:
    counts = accumulate((index in stayed for index in sequence), initial=0)
    return dict(zip(sequence, counts, strict=False))


def _in_order(sequence: Sequence[int], rank: dict[int, int]) -> frozenset[int]:
    """A longest part of the sequence whose ranks rise (deadline sorting)."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for index in sequence:
        at = bisect_left(tails, rank[index])
        before[index] = ends[at - 1] if at else None
        tails[at : at + 1], ends[at : at + 1] = [rank[index]], [index]
    kept: list[int] = []
    link = ends[-1] if ends else None
    while link is not None:
        kept.append(link)
        link = before[link]
    return frozenset(kept)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledPipeline(CompiledSchedule):
    """A pipelined loop by stages: its phases, how they came about, and what was found on the way.

    `program` and `ordering` are None for a single buffer, whose body is its kernel.  Wave group 1 executes one extra
    barrier after `warp_stagger_index` prologue entries when the config staggers.
    """

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    config: PipelineConfig
    schedule_config: ScheduleConfig
    body: tuple[OpDesc, ...]
    edges: tuple[DepEdge, ...]
    kernel_deps: tuple[DepEdge, ...]
    warp_stagger_index: int
    program: PipelineProgram | None = None
    ordering: Ordering | None = None

    @property
    def op_count(self) -> int:
        return len(self.body)

    @property
    def graph(self) -> LoopBody:
        """The body with its edges, which a notebook draws."""
        return LoopBody(self.body, self.edges)

    @property
    def registers(self) -> int | None:
        """Registers per lane that are live at once; ops that define registers and never free any don't state it."""
        frees = any(op.vgpr_kill for op in self.body)
        return self.ordering.vgpr_peak if self.ordering and frees else None

    @property
    def register_limit(self) -> int:
        """Registers that a lane has, if its wave has the SIMD for itself."""
        return self.machine.vgprs_per_lane.value

    @property
    def quality(self) -> str:
        """How good the order of one iteration is, as it was before blocks moved ops."""
        moved = count_moved(self.findings)
        before = f", before {moved} of {len(self.body)} ops moved" if moved else ""
        if self.ordering is None:
            return f"the body's order{before}"
        return f"makespan {self.ordering.makespan:,} ({_describe_proof(self.ordering.certificate)}{before})"

    def _lower(self) -> LoweredProgram:
        return lower(self)

    def shaped(self, shape: TileShape) -> LoweredProgram:
        """The lowered program with what a wave issues for each op, which a body declared in tiles leaves open."""
        return with_work(self.lowered, shape)

    def body_index(self) -> Callable[[object], int | None]:
        """Where the body has an op; a prologue's load is the body's own, at the offset that fills its stage first."""
        own = [(index, op) for index, op in enumerate(self.body) if not op.is_framework]
        by_op = {op: index for index, op in reversed(own)}
        by_tile = {_tile_key(op): index for index, op in reversed(own) if op.is_prefetch_load}

        def index(declared: object) -> int | None:
            if not isinstance(declared, OpDesc) or declared.is_framework:
                return None
            found = by_op.get(declared)
            return by_tile.get(_tile_key(declared)) if found is None and declared.is_prefetch_load else found

        return index

    def uncounted(self, *, noted: bool = False) -> Iterable[Finding]:
        """D110 for each counter on which some wait counts, and some op doesn't say how many tokens it has."""
        return find_uncounted(self, Severity.NOTE if noted else Severity.ERROR)

    def synchronised(self, done: Repaired) -> Self:
        """The schedule with waits and barriers added; kernel dependencies follow their entries."""
        phases = {phase: self._written(done, phase) for phase in Phase}
        stagger_index = len(phases[Phase.PROLOGUE]) + 1
        if self.config.warp_stagger.enabled:
            stagger_index = falls_back_at(done.phases[Phase.PROLOGUE])
        moved = self.kernel_deps
        if self.program is not None:  # a single buffer's dependencies are those of its body
            slots = [slot for slot, origin in enumerate(done.origins[Phase.KERNEL]) if origin is not None]
            moved = tuple(
                replace(dep, producer_idx=slots[dep.producer_idx], consumer_idx=slots[dep.consumer_idx])
                for dep in self.kernel_deps
            )
        return replace(
            self, **name_phases(phases), kernel_deps=moved, warp_stagger_index=stagger_index, repairs=done.repairs
        )

    def _written(self, done: Repaired, phase: Phase) -> tuple[ScheduleEntry, ...]:
        """What was lowered from an entry of this schedule is that entry again; the rest are waits and barriers."""
        listed = [entry.listed for entry in self.lowered.phase(phase)]
        own = iter(self.phase(phase))
        mine = [next(own) if is_listed else None for is_listed in listed]
        repairs = {each.slot: each for each in done.repairs if each.phase is phase}
        found: list[ScheduleEntry] = []
        for entry, origin in zip(done.phases[phase], done.origins[phase], strict=True):
            if not entry.listed:
                continue
            before = None if origin is None else mine[origin]
            unchanged = before is not None and str(before.op) == str(entry.op)
            op = before.op if before is not None and unchanged else self._desc(entry)
            if (made := repairs.get(entry.time_slot)) is not None:
                cause = before.op.origin if before is not None else None
                op = op.with_origin(replace(cause or Origin(rule=""), rule=made.reason, repair=True))
            prefetch = before is not None and before.is_prefetch
            found.append(ScheduleEntry(op=op, time_slot=len(found), phase=phase, is_prefetch=prefetch))
        return tuple(found)

    def _desc(self, entry: Entry) -> OpDesc:
        """A wait or barrier that was added, as an op of a body."""
        if entry.op.kind is OpKind.BARRIER:
            return OpDesc.barrier()
        setting = EffectTerms(self.config, self.machine)
        makes = {setting.vm: OpDesc.wait_vm, setting.lgkm: OpDesc.wait_lgkm}.get(entry.effect.counter or "")
        if makes is None:
            message = f"a body by stages has no word for {entry.op}, which {self.name} needs on {self.machine.name}"
            raise DeclarationError.of("D105", message)
        return makes(entry.effect.wait_value)


def _describe_proof(certificate: OrderCertificate) -> str:
    if certificate.proof is Proof.NONE:
        return "the body's order" if certificate.by == "identity" else f"by {certificate.by}"
    return "proven least" if certificate.proof is Proof.OPTIMAL else f"at least {certificate.bound:,}"


def _tile_key(op: OpDesc) -> tuple[int, ...]:
    return (op.tag, op.channel, op.stage, op.subtile)


# Waits that count ops of unstated size.
#
# A wait that leaves nothing in flight needs no counts. One that leaves `n` tokens does: where an op's number of
# instructions isn't stated, those ops are unknown.


class _Words(NamedTuple):
    """What counts on a counter, the fields that state it, and what derives them."""

    units: str
    field: str
    derived_by: str


_VM = _Words("loads", "vm_per_load", "dma_loads")
_LGKM = _Words("LDS reads and writes", "lgkm_per_load", "fragment_reads")


def find_uncounted(compiled: CompiledPipeline, severity: Severity = Severity.ERROR) -> Iterator[Finding]:
    """D110 for each counter on which some wait counts, and some op doesn't say how many tokens it has."""
    config, knobs = compiled.config, compiled.schedule_config
    fallback = knobs.lgkm_per_load_a, knobs.lgkm_per_load_b
    setting = EffectTerms(config, compiled.machine)
    for counter, words in ((setting.vm, _VM), (setting.lgkm, _LGKM)):
        own = [entry for entry in compiled.lowered.entries if entry.effect.counter == counter]
        waits = [entry for entry in own if entry.effect.kind is OpKind.WAIT and entry.effect.wait_value]
        declared = [(entry.op.declared) for entry in reversed(own) if entry.effect.kind is not OpKind.WAIT]
        ops = {
            (op.tag, op.channel): op
            for op in declared
            if isinstance(op, OpDesc)
            and not (config.vm_tokens(op) if words is _VM else config.lgkm_tokens(op, *fallback))
        }
        if waits and ops:
            yield _report_uncounted(compiled, words, waits[0], tuple(reversed(ops.values())), severity)


def _field(compiled: CompiledPipeline, words: _Words, channel: int) -> str:
    spec = compiled.config.further_channel(channel)
    if spec is not None:
        return f"{words.field} of {spec.name}"
    return f"{words.field}_{'a' if channel == CHANNEL_A else 'b'}"


def _report_uncounted(
    compiled: CompiledPipeline, words: _Words, wait: Entry, ops: tuple[OpDesc, ...], severity: Severity
) -> Finding:
    names = sorted({_field(compiled, words, op.channel) for op in ops})
    places, index = BodyPlaces(compiled), compiled.body_index()
    return Finding(
        "D110",
        f"{wait.op} counts {words.units}, but nothing states how many instructions "
        f"{' and '.join(str(op.name) for op in ops)} represent",
        severity=severity,
        concerns=(
            *(op.concern(index(op), "not stated") for op in ops),
            places.concern(wait.concern(f"{wait.phase.value.lower()}, counts them")),
        ),
        evidence=(("not stated", ", ".join(names)),),
        fixes=(
            f"state {' and '.join(names)}, which KernelGeometry(...).{words.derived_by}() derives",
            f"{wait_name(wait.effect.counter or '')}(0) waits for all of them, however many they are",
        ),
    )
