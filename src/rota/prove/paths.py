"""Symbolic execution of a kernel on every path, with all waves of a workgroup.

Waves that do the same run together as a wave set.  A path forks at a branch on an unknown; what the whole workgroup
shares is decided once for all waves.  A path ends when a seen state covers its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from rota.isa.binary.elf import CODE_BASE
from rota.isa.opcodes import IsaFlow
from rota.isa.registers import M0, SCALAR
from rota.isa.wave.operand import named_register
from rota.prove import mbarriers, named_barriers
from rota.prove.decisions import Decisions, Spelling, StateGraph
from rota.prove.evaluation import Evaluator, WaveView
from rota.prove.judge import Judge
from rota.prove.memory_steps import MemorySteps, PhaseError
from rota.prove.named_barriers import WORKGROUP, BarrierError
from rota.prove.operation import SCC_ROW, CountedBy, Operation, OperationKind, rows_of
from rota.prove.rings import decide, find_period
from rota.prove.seen_states import SeenStates
from rota.prove.slicing import BackwardSlice, find_call_targets, find_interacting, forget_polls
from rota.prove.state import Accesses, Half, InFlight, Mask, Masks, WaveSet, atoms_of
from rota.prove.symbol import GROUP, LANE, Lanes, Linear, Plain, Symbol, Value, simplify
from rota.prove.tensor_copies import UnknownFieldError
from rota.prove.transfer import evaluate_indexed, evaluate_scalar, evaluate_vector, resolve_index, set_index
from rota.prove.verdict import Meter
from rota.prove.widening import LoopVisit, Namer, ProductState, Recorder, Widener, shape_of


def condense(evaluator: Evaluator, wave_set: WaveSet) -> None:
    """Make EXEC depend on a single atom, and express masks that equal it or its complement by the same atom."""
    old = wave_set.exec
    if len(atoms_of(old)) < 2:
        return
    masks = evaluator.masks
    possible = masks.leaf(masks.possible(old))
    atom = evaluator.symbols.fresh("left", LANE).base
    new = masks.combine("and", possible, masks.unknown(atom, len(wave_set.waves)))
    replaced: dict[Mask, Mask] = {old: new}
    for row, value in wave_set.registers.items():
        if not isinstance(value, Half):
            continue
        mask = value.mask
        if mask not in replaced:
            whole = masks.combine("or", possible, masks.leaf(masks.possible(mask)))
            rest = masks.combine("andn2", whole, old)
            replaced[mask] = masks.combine("andn2", whole, new) if rest is mask else evaluator.limit_atoms(mask, 1)
        wave_set.registers[row] = Half(replaced[mask], value.which)
    wave_set.exec = new


def assume_empty(evaluator: Evaluator, wave_set: WaveSet) -> None:
    """Assume that EXEC has no lanes, and apply what that says of its atom to all masks."""
    masks, mask = evaluator.masks, wave_set.exec
    nothing = masks.leaf((0,) * len(wave_set.waves))
    wave_set.exec = nothing
    if mask.atom is None or mask.high is None or mask.low is None or mask.high.leaf is None or mask.low.leaf is None:
        return
    if any(a & b for a, b in zip(mask.high.leaf, mask.low.leaf, strict=True)):
        return
    atom = masks.unknown(mask.atom, len(wave_set.waves))
    known = masks.combine("or", mask.low, masks.combine("andn2", atom, mask.high))
    for row, value in wave_set.registers.items():
        if isinstance(value, Half) and mask.atom in atoms_of(value.mask):
            wave_set.registers[row] = Half(masks.substitute(value.mask, {mask.atom: known}), value.which)


_VCC = named_register("vcc")


class ForkError(Exception):
    """An operation needs a decision first: of these waves, of the workgroup, or of each wave alone (`per_wave`)."""

    def __init__(self, condition: Symbol, waves: tuple[int, ...] = (), *, per_wave: bool = False) -> None:
        super().__init__()
        self.condition, self.waves, self.per_wave = condition, waves, per_wave or bool(waves)


class Branching:
    def __init__(self, evaluator: Evaluator, accesses: Accesses, waves: int) -> None:
        self._evaluator, self._accesses, self._view = evaluator, accesses, WaveView(evaluator, waves)

    def branch(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        """Execute a branch; False if waves separate at it, so that another wave set has to go on now."""
        condition, target = operation.spec.condition, operation.instruction.target
        assert target is not None  # noqa: S101
        if operation.spec.flow is IsaFlow.JUMP:
            wave_set.at = target
            return True
        taken = self._evaluate(product, wave_set, operation)
        empty = None if condition is None or condition.register != "exec" else not condition.holds
        if isinstance(taken, bool):
            wave_set.at = target if taken else wave_set.at + 1
            if taken is empty:  # it branches without lanes
                assume_empty(self._evaluator, wave_set)
            return True
        rows = [[row for row, each in enumerate(taken) if each is wanted] for wanted in (True, False)]
        parts = [wave_set.restrict(each, self._evaluator.masks, self._accesses) for each in rows]
        parts[0].at, parts[1].at = target, wave_set.at + 1
        if empty is not None:
            assume_empty(self._evaluator, parts[0 if empty else 1])
        place = product.wave_sets.index(wave_set)
        product.wave_sets[place : place + 1] = sorted(parts, key=lambda part: -part.at)  # those that exit a loop first
        return False

    def _evaluate(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool | list[bool]:
        condition, known, evaluator = operation.spec.condition, product.known, self._evaluator
        if condition is None:  # s_setvskip
            word, place = (evaluator.read(wave_set, each, known) for each in operation.operands)
            flag = evaluator.compute("and", evaluator.compute("shr", word, evaluator.compute("and", place, 31)), 1)
            wanted = not operation.instruction.modifiers
            flag = evaluator.flag_of(evaluator.compare("eq", "u", flag, int(wanted)))
            return self._decide(wave_set, flag, known)
        wanted = condition.holds
        if condition.register == "scc":
            flag = evaluator.read_row(wave_set, SCC_ROW, known)
            return self._decide(wave_set, flag, known, wanted=wanted)
        if condition.register == "vcc":
            flag = evaluator.any_of(evaluator.read_pair(wave_set, _VCC, known))
            return self._decide(wave_set, flag, known, wanted=wanted)
        wave_set.exec = evaluator.masks.settle(wave_set.exec, known.lookup)
        if isinstance(evaluator.any_of(wave_set.exec), Linear):
            condense(evaluator, wave_set)
        return self._decide(wave_set, evaluator.any_of(wave_set.exec), known, wanted=wanted)

    def _decide(self, wave_set: WaveSet, flag: Value, known: Decisions, *, wanted: bool = True) -> bool | list[bool]:
        flag = self._evaluator.settle(flag, known)
        if isinstance(flag, int):
            return bool(flag) == wanted
        if not isinstance(flag, Linear):
            outcomes = [bool(each) == wanted for each in flag[:, 0].tolist()]
            return outcomes[0] if len(set(outcomes)) == 1 else outcomes
        base = flag.base
        if base.op == "select":
            raise ForkError(base.args[0])  # type: ignore[arg-type]
        if not isinstance(flag.offset, int) or base.bits != 1 or flag.scale not in {1, 0xFFFF_FFFF}:
            flag = self._evaluator.flag_of(self._evaluator.compare("ne", "u", flag, 0))
            if not isinstance(flag, Linear):
                return self._decide(wave_set, flag, known, wanted=wanted)
            base = flag.base
        positive = wanted == (flag.scale == 1)
        if base.spread == GROUP:
            decided = known.lookup(base)
            if decided is None:
                raise ForkError(base)
            return decided == positive
        decisions = [self._look_up(base, wave, known) for wave in wave_set.waves]
        undecided = tuple(wave for wave, each in zip(wave_set.waves, decisions, strict=True) if each is None)
        if undecided:
            raise ForkError(base, undecided)
        outcomes = [each == positive for each in decisions]
        return outcomes[0] if len(set(outcomes)) == 1 else outcomes

    def _look_up(self, base: Symbol, wave: int, known: Decisions) -> bool | None:
        """Whether a condition that waves don't share holds in one of them; None if that isn't decided."""
        decided = known.lookup(base, wave)
        if decided is not None:
            return decided
        value = self._view.symbol(base, wave)
        if isinstance(value, int):
            return bool(value)
        if not isinstance(value, Linear) or value.base.spread != GROUP or value.base.bits != 1:
            return None
        decided = known.lookup(value.base)
        if decided is None:
            raise ForkError(value.base, per_wave=True)
        return decided == (value.scale == 1)


# Joining wave sets.


class _CannotJoinError(Exception):
    """Two wave sets differ in something that one set can't express."""


def join(wave_sets: list[WaveSet], masks: Masks, accesses: Accesses) -> list[WaveSet]:
    """Join wave sets at one place with the same memory ops in flight."""
    joined: list[WaveSet] = []
    for wave_set in wave_sets:
        for place, other in enumerate(joined):
            alike = wave_set.ended == other.ended and wave_set.barriers == other.barriers
            if wave_set.at == other.at and alike and wave_set.named == other.named:
                try:
                    joined[place] = _join_two(other, wave_set, masks, accesses)
                except _CannotJoinError:
                    continue
                break
        else:
            joined.append(wave_set)
    return joined


def _join_two(one: WaveSet, other: WaveSet, masks: Masks, accesses: Accesses) -> WaveSet:
    if one.covered or other.covered:
        raise _CannotJoinError
    if one.ended:  # only their barriers and ops in flight matter
        if any((*one.in_flight, *other.in_flight)):
            raise _CannotJoinError
        waves = tuple(sorted((*one.waves, *other.waves)))
        nothing = masks.leaf((0,) * len(waves))
        return replace(one, waves=waves, registers={}, exec=nothing, last_waits={})
    counts = len(one.waves), len(other.waves)
    rows = one.registers.keys() & other.registers.keys()  # others were never written by some of the waves
    registers = {row: _join_values(one.registers[row], other.registers[row], counts, masks) for row in rows}
    both = WaveSet(
        waves=(*one.waves, *other.waves),
        at=one.at,
        registers=registers,
        exec=_join_masks(one.exec, other.exec, masks),
        queues={by: _join_queues(by, queue, other.queues[by], accesses) for by, queue in one.queues.items()},
        pending=one.pending,
        barriers=one.barriers,
        named=one.named,
    )
    order = sorted(range(len(both.waves)), key=both.waves.__getitem__)
    return both if order == list(range(len(order))) else both.restrict(order, masks, accesses)


def _join_queues(
    by: CountedBy, one: tuple[InFlight, ...], other: tuple[InFlight, ...], accesses: Accesses
) -> tuple[InFlight, ...]:
    if not by.in_order:
        are_plain = len(by.counters) == 1 and not any(each.access for each in one)
        if [each.identity for each in one] != [each.identity for each in other] or (one and not are_plain):
            raise _CannotJoinError
        return one
    if len(one) != len(other):
        raise _CannotJoinError
    both = []
    for a, b in zip(one, other, strict=True):
        if a.rows != b.rows or a.may != b.may or (a.access is None) != (b.access is None):
            raise _CannotJoinError
        if a.access is not None and b.access is not None:
            if a.number != b.number or a.access.how != b.access.how or a.issued_since(0) != b.issued_since(0):
                raise _CannotJoinError
            both.append(a._replace(access=accesses.join(a.access, b.access)))
        elif a.only_counts or (a.number, a.other_numbers) == (b.number, b.other_numbers):
            both.append(a)
        else:  # loads to the same registers, by two copies of the code
            first, *others = sorted({a.number, *a.other_numbers, b.number, *b.other_numbers})
            near_wait = a.near_wait if a.near_wait == b.near_wait else -1
            both.append(a._replace(number=first, other_numbers=tuple(others), near_wait=near_wait))
    return tuple(both)


def _join_values(one: Value | Half, other: Value | Half, counts: tuple[int, int], masks: Masks) -> Value | Half:
    if isinstance(one, Half) or isinstance(other, Half):
        if not isinstance(one, Half) or not isinstance(other, Half) or one.which != other.which:
            raise _CannotJoinError
        return Half(_join_masks(one.mask, other.mask, masks), one.which)
    if isinstance(one, Linear) and isinstance(other, Linear) and one.base is other.base and one.scale == other.scale:
        return Linear(one.base, one.scale, _join_plain(one.offset, other.offset, counts))
    if isinstance(one, Linear) or isinstance(other, Linear):
        raise _CannotJoinError
    return _join_plain(one, other, counts)


def _join_plain(one: Plain, other: Plain, counts: tuple[int, int]) -> Plain:
    if isinstance(one, int) and isinstance(other, int) and one == other:
        return one
    width = max(1 if isinstance(each, int) else each.shape[1] for each in (one, other))
    parts: list[Lanes] = [
        np.broadcast_to(np.asarray(each, np.int64), (count, width))
        for each, count in zip((one, other), counts, strict=True)
    ]
    return simplify(np.concatenate(parts))


def _join_masks(one: Mask, other: Mask, masks: Masks) -> Mask:
    if one.leaf is not None and other.leaf is not None:
        return masks.leaf((*one.leaf, *other.leaf))
    if one.atom is None or one.atom is not other.atom:
        raise _CannotJoinError
    if one.high is None or one.low is None or other.high is None or other.low is None:
        raise _CannotJoinError
    return masks.choice(one.atom, _join_masks(one.high, other.high, masks), _join_masks(one.low, other.low, masks))


# Exploration.

_CHECK_EVERY = 256  # steps between two checks of the budget


class InconclusiveError(Exception):
    """The proof can't go on: why, at which operation, and which limit of the budget it has reached, if any."""

    def __init__(
        self, message: str, operation: Operation | None = None, *, ended_by: str = "",
        evidence: tuple[tuple[str, str], ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.operation, self.ended_by, self.evidence = operation, ended_by, evidence


class Explorer:
    def __init__(  # noqa: PLR0917
        self, operations: Sequence[Operation], sliced: BackwardSlice, evaluator: Evaluator, memory: MemorySteps,
        judge: Judge, kernarg_row: int, waves: int, meter: Meter, recorder: Recorder | None,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        operations = forget_polls(operations, sliced.needed)
        self.operations, self.evaluator, self.memory = operations, evaluator, memory
        self.judge, self.meter = judge, meter
        self._evaluated, self._looping, self._unread = sliced.evaluated, sliced.looping, sliced.unread
        self._targets = find_call_targets(operations)
        self._places = {each.instruction.address: each.number for each in reversed(operations)}
        leads = enumerate(sliced.successors)
        self._heads = frozenset(to for number, following in leads for to in following if to <= number)
        self._joins = self._join_points()
        self._namer = Namer(evaluator, sliced.needed, sliced.for_addresses, kernarg_row)
        self._period = find_period(operations, sliced.looping)
        self._widener = Widener(evaluator, sliced.for_addresses, self._period)
        self._runs = self._quiet_runs()
        self._polls = evaluator.symbols.keeps_parity = any(each.polls for each in operations)
        self._interacts = find_interacting(operations, sliced.successors, flat=memory.flat_lds)
        self._branching = Branching(evaluator, memory.accesses, waves)
        self.graph = StateGraph()
        self._seen = SeenStates(evaluator, self._namer, sliced.for_addresses, self.graph)
        self._open: list[tuple[int, int, int, ProductState]] = []
        self._pushed = 0
        self.steps = self.states = self.paths = 0
        self.hangs = False  # on some path, at a named barrier
        self._refused: dict[int, str] = {}  # why waves can't be followed beyond an arrival
        self.spelling = Spelling()
        self._described: dict[tuple[Symbol, bool, str], str] = {}

    def _join_points(self) -> frozenset[int]:
        """Join points: after the waits at a branch target, which make paths more alike, and never before a barrier."""
        found = set()
        for target in {each.instruction.target for each in self.operations if each.instruction.target is not None}:
            at = target
            while at < len(self.operations) and self.operations[at].kind in {OperationKind.WAIT, OperationKind.QUIET}:
                at += 1
            if at < len(self.operations) and self.operations[at].kind not in {OperationKind.BARRIER, OperationKind.END}:
                found.add(at)
        return frozenset(found)

    def _quiet_runs(self) -> list[tuple[int, int]]:
        """For each operation that needs no step: the next one that does, and the registers of all in between."""
        runs = [(0, -1)] * (len(self.operations) + 1)
        for number in range(len(self.operations) - 1, -1, -1):
            each = self.operations[number]
            plain = each.kind is OperationKind.QUIET or (
                each.kind is OperationKind.VALUE and not self._evaluated[number] and not each.indexed
            )
            if not plain or number in self._heads or number in self._joins:
                continue
            touches, end = runs[number + 1] if number + 1 < len(self.operations) else (0, -1)
            mine = each.reads | each.writes
            runs[number] = (mine | touches, end) if end >= 0 else (mine, number + 1)
        return runs

    def explore(self, start: ProductState) -> None:
        """Follow every path to its end; raises InconclusiveError if the budget doesn't last."""
        self._push(start)
        while self._open:
            *_, product = heapq.heappop(self._open)
            self._seen.close(product)
            self.paths += 1
            self._run(product)

    def _push(self, product: ProductState) -> None:
        """Leave a state for later.  Those least far come first, so that paths join.

        A wave that waits or has ended is far, wherever that is: first the others go all their ways to a barrier.
        """
        self._pushed += 1
        end = len(self.operations)
        settled = sum(len(each.waves) for each in product.wave_sets if each.waiting or each.ended)
        far = sum(len(each.waves) * (end if each.ended else each.at) for each in product.wave_sets)
        heapq.heappush(self._open, (settled, far, self._pushed, product))

    def _run(self, product: ProductState) -> None:
        while True:
            wave_set = next((each for each in product.wave_sets if not each.waiting and not each.ended), None)
            if wave_set is None:
                if not self._pass_barrier(product):
                    return
            elif not self._advance(product, wave_set) or (
                (wave_set.waiting or wave_set.ended)
                and product.forks
                and len(product.wave_sets) > 1
                and not self._checkpoint(product, ("arrived",))
            ):
                return

    def _pass_barrier(self, product: ProductState) -> bool:
        """Release the barrier at which all waves wait that have not ended; False if none goes on."""
        self.judge.check_races(product.wave_sets, product.epoch, product.known, self._spend_pairs)
        waiting = [each for each in product.wave_sets if not each.ended]
        if not waiting:
            self.judge.check_barrier_counts(product.wave_sets)
            return False
        if polling := mbarriers.find_polling(waiting):
            for wave_set in polling:
                mbarriers.resume(wave_set)
            return self._checkpoint(product, ("barrier",))
        released, are_ordered = self._find_released(product, waiting)
        if not released:
            self._hang(waiting)
            return False
        meets_all = are_ordered and released[0].named.target == WORKGROUP
        if meets_all:
            named_barriers.settle(product.wave_sets)
            mbarriers.settle(product.wave_sets)
        product.epoch += meets_all  # what orders a part of the waves counts for no other
        for wave_set in product.wave_sets if meets_all else released:  # nothing is known of when others have ended
            wave_set.covered, wave_set.late = wave_set.late | ({} if are_ordered else wave_set.covered), {}
        for wave_set in released:
            if not wave_set.signalled:
                self.judge.record_barrier(wave_set)
            wave_set.waiting = wave_set.signalled = False
            wave_set.barriers += meets_all
            wave_set.at += 1
        if meets_all and len(waiting) < len(
            product.wave_sets
        ):  # of waves that have ended, only ops in flight can still matter
            self.judge.check_barrier_counts(product.wave_sets)
            kept = [each for each in product.wave_sets if not each.ended or each.covered or any(each.in_flight)]
            product.wave_sets = kept
        product.wave_sets = join(product.wave_sets, self.evaluator.masks, self.memory.accesses)
        product.wave_sets.sort(key=lambda wave_set: wave_set.waves)
        return self._checkpoint(product, ("barrier",))

    def _hang(self, waiting: Sequence[WaveSet]) -> None:
        """No wave goes on any more; raises InconclusiveError if one would that the proof can't follow."""
        for each in waiting:
            if each.named.target == mbarriers.STUCK:
                raise InconclusiveError(self._refused[each.at], self.operations[each.at])
        self.hangs = True

    def _find_released(self, product: ProductState, waiting: Sequence[WaveSet]) -> tuple[list[WaveSet], bool]:
        """The wave sets that go on, and whether all that are left are ordered; marks say what orders a part of them."""
        found = named_barriers.find_released(waiting)
        members, number = found.members, found.barrier
        if not members or number == WORKGROUP:
            return members, bool(members)
        if not found.fits or mbarriers.is_spoiled(members[0], number):
            mbarriers.spoil(number, product.wave_sets)
            return members, False
        if found.alone:
            return members, True
        try:
            mbarriers.meet(members, number, product.wave_sets)
        except BarrierError as error:
            raise InconclusiveError(str(error), self.operations[members[0].at]) from error
        mbarriers.drop_known(product.wave_sets)
        return members, False

    def _advance(self, product: ProductState, wave_set: WaveSet) -> bool:  # noqa: C901, PLR0912
        """Step a wave set until it waits, ends or splits; False if the path ends."""
        operations, runs, heads = self.operations, self._runs, self._heads
        count = 0
        while True:
            at, self.evaluator.symbols.row_waves = wave_set.at, wave_set.waves
            if at >= len(operations):
                raise InconclusiveError("code runs past its last instruction")
            touches, end = runs[at]
            count += 1
            if not count % _CHECK_EVERY:  # long straight code spends its budget, too
                self._spend(count, operations[at])
                count = 0
            if end >= 0:
                if touches & wave_set.pending:
                    for number in range(at, end):
                        self._check_registers(wave_set, operations[number], product)
                wave_set.at = end
                continue
            if product.resumed:
                product.resumed = False
            elif at in heads:
                self._spend(count, operations[at])
                count = 0
                if not self._checkpoint(product, (wave_set.waves[0],)):
                    return False
            elif product.forks != product.marked and at in self._joins:
                self._spend(count, operations[at])
                count = 0
                if not self._checkpoint(product, ("join",)):
                    return False
            operation = operations[at]
            if (operation.reads | operation.writes) & wave_set.pending:
                self._check_registers(wave_set, operation, product)
            try:
                going = self._step(product, wave_set, operation)
            except ForkError as fork:
                if fork.per_wave and self._is_independent(product, len(wave_set.waves)):
                    self._spend(count, operation)
                    self._separate(product, wave_set)
                    return False
                going = not fork.per_wave or len(wave_set.waves) == 1
                if going:
                    self._fork(product, wave_set, fork)
                else:  # let each wave decide alone: the states that it reaches are then found only once
                    place = product.wave_sets.index(wave_set)
                    product.wave_sets[place : place + 1] = self._split(wave_set)
            if not going:
                self._spend(count, operation)
                return True

    def _spend(self, steps: int, operation: Operation) -> None:
        self.steps += steps
        self.meter.spend(steps)
        if over := self.meter.exceeded:
            raise InconclusiveError(f"the budget of {over} is used up", operation, ended_by=over)

    def _spend_pairs(self, pairs: int) -> None:
        self.meter.spend(pairs=pairs)
        if over := self.meter.exceeded:
            raise InconclusiveError(f"the budget of {over} is used up by the search for races", ended_by=over)

    def _check_registers(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        uses, writes = operation.reads | operation.writes, operation.writes
        if operation.data and not operation.flat and operation.kind in {OperationKind.LDS, OperationKind.VMEM}:
            uses = operation.reads | operation.writes & ~self.memory.find_refilled(wave_set, operation)
        if operation.indexed:
            meant = resolve_index(self.evaluator, wave_set, operation, product.known) or operation
            uses, writes = meant.reads | meant.writes, meant.writes
        if uses & wave_set.pending:
            self.judge.check_registers(wave_set, operation, uses, writes, product.known)

    def _step(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:  # noqa: C901, PLR0912
        """Execute one operation; False if another wave set has to go on now."""
        kind, going = operation.kind, True
        if kind is OperationKind.BRANCH:
            return self._branch(product, wave_set, operation)
        if kind is OperationKind.VALUE:
            self.evaluator.unread = 0 if operation.indexed else self._unread[operation.number]
            if operation.indexed:
                evaluate_indexed(self.evaluator, wave_set, operation, product.known)
            elif self._evaluated[operation.number]:
                self.evaluator.symbols.looping = self._looping[operation.number]
                evaluate = evaluate_vector if operation.is_vector else evaluate_scalar
                evaluate(self.evaluator, wave_set, operation, product.known)
        elif kind is OperationKind.WAIT:
            self.memory.wait(wave_set, operation)
        elif kind is OperationKind.LDS:
            self._resolve(wave_set, operation.operands[0].rows[0], product)
            going = self._access_lds(product, wave_set, operation)
        elif kind is OperationKind.ARRIVAL:
            going = self._arrive(product, wave_set, operation)
        elif kind is OperationKind.VMEM:
            self._access_memory(product, wave_set, operation)
        elif kind is OperationKind.SMEM:
            self.evaluator.symbols.looping = self._looping[operation.number]
            self.memory.issue_scalar(wave_set, operation, product)
        elif kind is OperationKind.EXCHANGE:
            self.memory.issue_lds(wave_set, operation, product)
        elif kind in {OperationKind.BARRIER, OperationKind.SIGNAL}:
            going = self._meet(product, wave_set, operation)
        elif kind is OperationKind.END:
            if wave_set.signalled and wave_set.named.target != WORKGROUP:  # its arrival counts for others
                raise InconclusiveError("a wave ends between the signal of a named barrier and its wait", operation)
            wave_set.ended = True
            self.judge.check_end(wave_set, operation, product.known)
            wave_set.finish(self.evaluator.masks)
            return False
        elif kind is OperationKind.CALL:
            self._call(wave_set, operation, product)
            return True
        elif kind is OperationKind.INDEX:
            set_index(self.evaluator, wave_set, operation, product.known)
        wave_set.at += going
        return going

    def _branch(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        going = self._branching.branch(product, wave_set, operation)
        for each in product.wave_sets if self._polls else ():
            mbarriers.leave(each, self.operations)
        return going

    def _access_memory(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> None:
        if operation.tensor:
            rows: Iterable[int] = rows_of(operation.address)
        elif operation.copies:
            rows = operation.operands[0].rows[:1] if operation.operands else (SCALAR + M0,)
        else:
            rows = operation.operands[0].rows if operation.flat and operation.address else ()
        for row in rows:
            self._resolve(wave_set, row, product)
        try:
            self.memory.issue_vector(wave_set, operation, product)
        except BarrierError as error:
            raise InconclusiveError(str(error), operation) from error
        except UnknownFieldError as error:
            why, evidence = f"a tensor copy's bytes of LDS aren't known: {error}", (("field", error.field),)
            raise InconclusiveError(why, operation, evidence=evidence) from error

    def _access_lds(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        """Issue an LDS op; False if the wave waits, because it polls a barrier in LDS whose phase hasn't ended."""
        lags = wave_set.named.lags
        try:
            self.memory.issue_lds(wave_set, operation, product)
        except PhaseError:
            wave_set.waiting = True
            return False
        except BarrierError as error:
            raise InconclusiveError(str(error), operation) from error
        if self._polls and wave_set.named.lags != lags:  # what it knows to be over may be over for all
            self.judge.check_races(product.wave_sets, product.epoch, product.known, self._spend_pairs)
            mbarriers.drop_known(product.wave_sets)
        return True

    def _arrive(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        """Arrive at a barrier in LDS; False if only some waves of the set do, so that they have to part first."""
        lanes = wave_set.exec.leaf
        if len(wave_set.waves) > 1 and lanes is not None and len({each == 0 for each in lanes}) > 1:
            place = product.wave_sets.index(wave_set)
            product.wave_sets[place : place + 1] = self._split(wave_set)
            return False
        try:
            self.memory.arrive(wave_set, operation, product)
        except BarrierError as error:  # first the others go on as far as they can, and may race
            self._refused[operation.number] = str(error)
            wave_set.waiting, wave_set.named = True, wave_set.named._replace(target=mbarriers.STUCK)
            return False
        return True

    def _meet(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        """Signal a barrier or wait for it; False if the wave waits now."""
        if operation.operands:
            for row in operation.operands[0].rows:
                self._resolve(wave_set, row, product)
            self._change_barrier(product, wave_set, operation)
            return True
        waits, is_named = operation.kind is OperationKind.BARRIER, operation.verb == "wait named"
        target = wave_set.named.target if wave_set.signalled else WORKGROUP
        if wave_set.signalled != (waits and operation.verb != "") or is_named != (target != WORKGROUP):
            raise InconclusiveError("a wave doesn't signal a barrier once before it waits for it", operation)
        if waits:
            wave_set.named = wave_set.named._replace(target=target)
            wave_set.waiting = True
            return False
        wave_set.named = wave_set.named._replace(target=WORKGROUP)
        self.judge.record_barrier(wave_set)
        wave_set.signalled = True
        return True

    def _change_barrier(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> None:
        """Initialise a barrier that a register names, join or signal it."""
        word = self.evaluator.read(wave_set, operation.operands[0], product.known)
        if not isinstance(word, int):
            raise InconclusiveError("which barrier a register names isn't known", operation)
        try:
            if operation.verb == "init":
                named_barriers.initialise(word, product.wave_sets)
            elif operation.verb == "join":
                named_barriers.join(word, wave_set)
            else:
                named_barriers.signal(word, wave_set)
                mbarriers.check_signal(wave_set, wave_set.named.target)
                self.judge.record_barrier(wave_set)
                wave_set.signalled = True
        except BarrierError as error:
            raise InconclusiveError(str(error), operation) from error

    def _resolve(self, wave_set: WaveSet, row: int, product: ProductState) -> None:
        """Fork first if a decision of the workgroup selects an address."""
        value = self.evaluator.read_row(wave_set, row, product.known)
        if isinstance(value, Linear) and value.base.op == "select":
            raise ForkError(value.base.args[0])  # type: ignore[arg-type]

    def _call(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        instruction = operation.instruction
        target = instruction.target
        if instruction.spec.flow is not IsaFlow.CALL:
            mask = self.evaluator.read_pair(wave_set, operation.operands[-1], product.known, words=2)
            if mask.leaf is None or len(set(mask.leaf)) != 1:
                raise InconclusiveError("the target of a jump by register isn't known", operation)
            target = self._places.get(mask.leaf[0] - CODE_BASE)
            if target not in self._targets:
                raise InconclusiveError("a jump by register goes neither to a function nor back from one", operation)
        if instruction.spec.flow.is_call and instruction.follows is not None:
            place = self.evaluator.masks.leaf((CODE_BASE + instruction.follows,) * len(wave_set.waves))
            self.evaluator.write_pair(wave_set, operation.operands[0].rows[0], place, words=2)
        assert target is not None  # noqa: S101
        wave_set.at = target

    # Decisions.

    def _fork(self, product: ProductState, wave_set: WaveSet, fork: ForkError) -> None:
        """Go on with the condition false, and leave the state with it true for later."""
        condition, wave = fork.condition, fork.waves[0] if fork.waves else None
        follows = decide(condition, product.known) if self._period > 1 else None
        if follows is not None:
            product.known.decide(condition, holds=follows, epoch=product.epoch)
            return
        product.forks += 1
        self._spend(0, self.operations[wave_set.at])
        place = self.operations[wave_set.at].instruction.place
        who = "" if wave is None else f"wave {wave}: "
        other = product.copy()
        for each, holds in ((product, False), (other, True)):
            each.known.decide(condition, holds=holds, epoch=each.epoch, wave=wave)
            decided = self._describe(condition, holds, place)
            each.known.trail = (*each.known.trail[-11:], f"{who}{decided}")
        self._push(other)

    def _describe(self, condition: Symbol, holds: bool, place: str) -> str:
        found = self._described.get((condition, holds, place))
        if found is None:
            found = self.spelling.describe(condition, holds=holds, place=place)
            self._described[condition, holds, place] = found
        return found

    def _split(self, wave_set: WaveSet) -> list[WaveSet]:
        masks, accesses = self.evaluator.masks, self.memory.accesses
        return [wave_set.restrict([row], masks, accesses) for row in range(len(wave_set.waves))]

    # Checkpoints.

    def _is_independent(self, product: ProductState, waves: int = 1) -> bool:
        """True if no wave can reach LDS or a barrier any more, so that none matters to another."""
        several = len(product.wave_sets) > 1 or waves > 1
        return several and not any(self._interacts[each.at] for each in product.wave_sets if not each.ended)

    def _separate(self, product: ProductState, split: WaveSet | None = None) -> None:
        """Go on with each wave set alone, and with each wave of the set to split."""
        self.judge.check_races(product.wave_sets, product.epoch, product.known, self._spend_pairs)
        self.judge.check_barrier_counts(product.wave_sets)
        for wave_set in product.wave_sets:
            if wave_set.ended:
                continue
            for each in self._split(wave_set) if wave_set is split else [wave_set]:
                known = product.known.copy()
                alone = ProductState(wave_sets=[each], known=known, epoch=product.epoch, forks=product.forks)
                self._namer.rename(alone)
                number, going = self._seen.arrive(alone, ("alone",), shape_of(alone))
                if self._recorder is not None:
                    self._recorder.record_checkpoint(alone, ("alone",), number)
                if going:
                    self._count_state(alone)
                    self._push(alone)

    def _count_state(self, product: ProductState) -> None:
        self.states += 1
        if self.states > self.meter.budget.states:
            at = next((self.operations[each.at] for each in product.wave_sets if not each.ended), None)
            raise InconclusiveError("the budget of states is used up", at, ended_by="states")

    def _checkpoint(self, product: ProductState, head: tuple[Hashable, ...]) -> bool:
        """Compare the state with seen ones, and leave it for later if none covers it; always ends the path's run."""
        if self._is_independent(product):
            self._separate(product)
            return False
        product.marked = product.forks
        for each in product.wave_sets:
            each.forget_lanes()
        sizes = (len(each.registers) + len(each.covered) + len(each.late) for each in product.wave_sets)
        self.meter.spend(registers=sum(sizes))
        self._namer.rename(product)
        shape = shape_of(product)
        place = (head, *((wave_set.waves, wave_set.at) for wave_set in product.wave_sets))
        visits = product.history.get(place, ())
        number = self._seen.find_covering(product, head, shape) if isinstance(head[0], int) and visits else None
        going = False
        if number is None:
            if isinstance(head[0], int) and visits and self._widener.widen(product, visits, shape):
                self._namer.rename(product)
            number, going = self._seen.arrive(product, head, shape)
        if self._recorder is not None:
            self._recorder.record_checkpoint(product, head, number)
        if not going:
            return False
        self._count_state(product)
        registers = tuple(dict(wave_set.registers) for wave_set in product.wave_sets)
        visit = LoopVisit(shape=shape, registers=registers, known=product.known.copy(), forks=product.forks)
        product.history[place] = (*visits, visit)
        product.resumed = isinstance(head[0], int) or head[0] == "join"
        self._push(product)
        return False
