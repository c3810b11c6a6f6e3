"""Every path of a kernel: takes its operations, runs all waves on what is known, gives what the judges found.

Waves that do the same run together.  Where a branch depends on something unknown, the path forks; what the whole
workgroup shares is decided once for all waves.  A path ends where its state was met before.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence

import numpy as np

from rota.isa.binary.elf import CODE_BASE
from rota.isa.wave.operand import M0, SCALAR, named_register
from rota.prove.decisions import Chronicle, Decisions
from rota.prove.evaluation import Evaluator, OneWave
from rota.prove.judge import Judge
from rota.prove.memory_steps import MemorySteps
from rota.prove.operation import SCC_ROW, Operation, OperationKind
from rota.prove.slicing import BackwardSlice, call_targets, meeting
from rota.prove.state import Accesses, Flight, Half, Mask, Masks, Squad, atoms_of
from rota.prove.symbol import GROUP, LANE, Lanes, Linear, Symbol, Value, simple
from rota.prove.transfer import evaluate_indexed, evaluate_scalar, evaluate_vector, in_place, set_index
from rota.prove.verdict import Meter
from rota.prove.widening import LoopVisit, MetStates, Namer, ProductState, Recorder, Widener, shape_of


def condense(one: Evaluator, squad: Squad) -> None:
    """Makes EXEC depend on one unknown, and other masks on the same where they are equal to it or its rest."""
    old = squad.exec
    if len(atoms_of(old)) < 2:
        return
    masks = one.masks
    possible = masks.leaf(masks.possible(old))
    atom = one.symbols.fresh("left", LANE).base
    new = masks.combine("and", possible, masks.unknown(atom, len(squad.waves)))
    turned: dict[Mask, Mask] = {old: new}
    for row, value in squad.registers.items():
        if not isinstance(value, Half):
            continue
        mask = value.mask
        if mask not in turned:
            whole = masks.combine("or", possible, masks.leaf(masks.possible(mask)))
            rest = masks.combine("andn2", whole, old)
            turned[mask] = masks.combine("andn2", whole, new) if rest is mask else one.tamed(mask, 1)
        squad.registers[row] = Half(turned[mask], value.which)
    squad.exec = new


def assume_empty(one: Evaluator, squad: Squad) -> None:
    """No lane is left in EXEC: what that says of its unknown is put into all masks."""
    masks, mask = one.masks, squad.exec
    nothing = masks.leaf((0,) * len(squad.waves))
    squad.exec = nothing
    if mask.atom is None or mask.high is None or mask.low is None:
        return
    if (
        mask.high.leaf is None
        or mask.low.leaf is None
        or any(a & b for a, b in zip(mask.high.leaf, mask.low.leaf, strict=True))
    ):
        return
    atom = masks.unknown(mask.atom, len(squad.waves))
    known = masks.combine("or", mask.low, masks.combine("andn2", atom, mask.high))
    for row, value in squad.registers.items():
        if isinstance(value, Half) and mask.atom in atoms_of(value.mask):
            squad.registers[row] = Half(masks.substituted(value.mask, {mask.atom: known}), value.which)


_VCC = named_register("vcc")


class ForkError(Exception):
    """An operation needs a decision first: about a condition, of these waves or of the whole workgroup.

    With `parts`, waves may go different ways by it, even if all of them share what it is about.
    """

    def __init__(self, condition: Symbol, waves: tuple[int, ...] = (), *, parts: bool = False) -> None:
        super().__init__()
        self.condition, self.waves, self.parts = condition, waves, parts or bool(waves)


class Branching:
    """Takes branches; one for a proof."""

    def __init__(self, one: Evaluator, accesses: Accesses, waves: int) -> None:
        self._one, self._accesses, self._one_wave = one, accesses, OneWave(one, waves)

    def branch(self, product: ProductState, squad: Squad, operation: Operation) -> bool:
        """Takes a branch; False if waves part at it, so that another squad has to go on now."""
        instruction = operation.instruction
        opcode, target = instruction.opcode, instruction.target
        assert target is not None  # noqa: S101
        if opcode == "s_branch":
            squad.at = target
            return True
        taken = self._taken(product, squad, operation)
        empty = None if "_exec" not in opcode else not opcode.endswith("nz")  # what is taken when no lane is left
        if isinstance(taken, bool):
            squad.at = target if taken else squad.at + 1
            if taken is empty:
                assume_empty(self._one, squad)
            return True
        rows = [[row for row, each in enumerate(taken) if each is wanted] for wanted in (True, False)]
        parts = [squad.part(each, self._one.masks, self._accesses) for each in rows]
        parts[0].at, parts[1].at = target, squad.at + 1
        if empty is not None:
            assume_empty(self._one, parts[0 if empty else 1])
        place = product.squads.index(squad)
        product.squads[place : place + 1] = sorted(parts, key=lambda part: -part.at)  # those that leave a loop first
        return False

    def _taken(self, product: ProductState, squad: Squad, operation: Operation) -> bool | list[bool]:
        opcode, known = operation.instruction.opcode, product.known
        if opcode == "s_setvskip":
            word, place = (self._one.read(squad, each, known) for each in operation.operands)
            flag = self._one.compute("and", self._one.compute("shr", word, self._one.compute("and", place, 31)), 1)
            wanted = not operation.instruction.modifiers
            flag = self._one.flag_of(self._one.compare("eq", "u", flag, int(wanted)))
            return self._outcome(squad, flag, known)
        if "_scc" in opcode:
            return self._outcome(squad, self._one.row(squad, SCC_ROW, known), known, wanted=opcode.endswith("1"))
        wanted = opcode.endswith("nz")
        if "_exec" not in opcode:
            return self._outcome(squad, self._one.any_of(self._one.pair(squad, _VCC, known)), known, wanted=wanted)
        squad.exec = self._one.masks.settled(squad.exec, known.decided)
        if isinstance(self._one.any_of(squad.exec), Linear):
            condense(self._one, squad)
        return self._outcome(squad, self._one.any_of(squad.exec), known, wanted=wanted)

    def _outcome(self, squad: Squad, flag: Value, known: Decisions, *, wanted: bool = True) -> bool | list[bool]:
        flag = self._one.settled(flag, known)
        if isinstance(flag, int):
            return bool(flag) == wanted
        if not isinstance(flag, Linear):
            outcomes = [bool(each) == wanted for each in flag[:, 0].tolist()]
            return outcomes[0] if len(set(outcomes)) == 1 else outcomes
        base = flag.base
        if base.op == "select":
            raise ForkError(base.args[0])  # type: ignore[arg-type]
        if not isinstance(flag.offset, int) or base.bits != 1 or flag.scale not in {1, 0xFFFF_FFFF}:
            flag = self._one.flag_of(self._one.compare("ne", "u", flag, 0))
            if not isinstance(flag, Linear):
                return self._outcome(squad, flag, known, wanted=wanted)
            base = flag.base
        positive = wanted == (flag.scale == 1)
        if base.spread == GROUP:
            decided = known.decided(base)
            if decided is None:
                raise ForkError(base)
            return decided == positive
        each = [self._of_wave(base, wave, known) for wave in squad.waves]
        open_ = tuple(wave for wave, one in zip(squad.waves, each, strict=True) if one is None)
        if open_:
            raise ForkError(base, open_)
        outcomes = [one == positive for one in each]
        return outcomes[0] if len(set(outcomes)) == 1 else outcomes

    def _of_wave(self, base: Symbol, wave: int, known: Decisions) -> bool | None:
        """What a condition that waves don't share is in one of them."""
        decided = known.decided(base, wave)
        if decided is not None:
            return decided
        told = self._one_wave.symbol(base, wave)
        if isinstance(told, int):
            return bool(told)
        if not isinstance(told, Linear) or told.base.spread != GROUP or told.base.bits != 1:
            return None
        decided = known.decided(told.base)
        if decided is None:
            raise ForkError(told.base, parts=True)
        return decided == (told.scale == 1)


class _ApartError(Exception):
    """Two squads that can't be one."""


def join(squads: list[Squad], masks: Masks, accesses: Accesses) -> list[Squad]:
    """Squads at one place, with the same memory ops under way, go on together."""
    joined: list[Squad] = []
    for squad in squads:
        for place, other in enumerate(joined):
            if squad.at == other.at and squad.ended == other.ended and squad.barriers == other.barriers:
                try:
                    joined[place] = _both(other, squad, masks, accesses)
                except _ApartError:
                    continue
                break
        else:
            joined.append(squad)
    return joined


def _both(one: Squad, other: Squad, masks: Masks, accesses: Accesses) -> Squad:
    if one.ended:
        return _husk(one, other, masks)
    counts = len(one.waves), len(other.waves)
    rows = one.registers.keys() & other.registers.keys()  # one that only some have was never written by the others
    registers = {row: _value(one.registers[row], other.registers[row], counts, masks) for row in rows}
    vm = _flights(one.vm, other.vm, accesses)
    ds = _flights(one.ds, other.ds, accesses)
    if [each.same for each in one.sm] != [each.same for each in other.sm] or one.flat or other.flat:
        raise _ApartError
    both = Squad(
        waves=(*one.waves, *other.waves),
        at=one.at,
        registers=registers,
        exec=_mask(one.exec, other.exec, masks),
        vm=vm,
        ds=ds,
        sm=one.sm,
        busy=one.busy,
        barriers=one.barriers,
    )
    order = sorted(range(len(both.waves)), key=both.waves.__getitem__)
    return both if order == list(range(len(order))) else both.part(order, masks, accesses)


def _husk(one: Squad, other: Squad, masks: Masks) -> Squad:
    """Ended waves, of which only the number of barriers matters, and what they left under way."""
    if any((*one.vm, *other.vm, *one.ds, *other.ds, *one.flat, *other.flat)):
        raise _ApartError
    waves = tuple(sorted((*one.waves, *other.waves)))
    return Squad(
        waves=waves, at=one.at, registers={}, exec=masks.leaf((0,) * len(waves)), ended=True, barriers=one.barriers
    )


def _flights(one: tuple[Flight, ...], other: tuple[Flight, ...], accesses: Accesses) -> tuple[Flight, ...]:
    if len(one) != len(other):
        raise _ApartError
    both = []
    for a, b in zip(one, other, strict=True):
        if a.rows != b.rows or (a.access is None) != (b.access is None):
            raise _ApartError
        if a.access is not None and b.access is not None:
            if a.number != b.number or a.access.how != b.access.how:
                raise _ApartError
            octets = (*a.access.bytes, *b.access.bytes)
            access = accesses.make(a.number, a.access.how, octets, exact=a.access.exact and b.access.exact)
            both.append(a._replace(access=access))
        elif a.bare or (a.number, a.also) == (b.number, b.also):
            both.append(a)
        else:  # loads to the same registers, by two copies of the code
            also = {a.number, *a.also, b.number, *b.also}
            first = min(also)
            both.append(a._replace(number=first, also=tuple(sorted(also - {first})), near=_agreed(a.near, b.near)))
    return tuple(both)


def _agreed(one: int, other: int) -> int:
    """The wait that nearly covered both, if it is one."""
    return one if one == other else -1


def _value(one: Value | Half, other: Value | Half, counts: tuple[int, int], masks: Masks) -> Value | Half:
    if isinstance(one, Half) or isinstance(other, Half):
        if not isinstance(one, Half) or not isinstance(other, Half) or one.which != other.which:
            raise _ApartError
        return Half(_mask(one.mask, other.mask, masks), one.which)
    if isinstance(one, Linear) or isinstance(other, Linear):
        if not isinstance(one, Linear) or not isinstance(other, Linear):
            raise _ApartError
        if one.base is not other.base or one.scale != other.scale:
            raise _ApartError
        offset = _value(one.offset, other.offset, counts, masks)
        if isinstance(offset, (Linear, Half)):
            raise _ApartError
        return Linear(one.base, one.scale, offset)
    if isinstance(one, int) and isinstance(other, int) and one == other:
        return one
    width = max(1 if isinstance(each, int) else each.shape[1] for each in (one, other))
    parts: list[Lanes] = [
        np.broadcast_to(np.asarray(each, np.int64), (count, width))
        for each, count in zip((one, other), counts, strict=True)
    ]
    return simple(np.concatenate(parts))


def _mask(one: Mask, other: Mask, masks: Masks) -> Mask:
    if one.leaf is not None and other.leaf is not None:
        return masks.leaf((*one.leaf, *other.leaf))
    if one.atom is None or one.atom is not other.atom or one.high is None or one.low is None:
        raise _ApartError
    if other.high is None or other.low is None:
        raise _ApartError
    return masks.choice(one.atom, _mask(one.high, other.high, masks), _mask(one.low, other.low, masks))


_STRETCH = 256  # steps between two looks at the budget


class InconclusiveError(Exception):
    """The proof can't go on: why, at which operation, and which limit of the budget has ended it, if one has."""

    def __init__(self, message: str, operation: Operation | None = None, *, ended_by: str = "") -> None:
        super().__init__(message)
        self.operation, self.ended_by = operation, ended_by


class Explorer:
    """Runs a kernel on all paths."""

    def __init__(
        self, operations: Sequence[Operation], sliced: BackwardSlice, one: Evaluator, memory: MemorySteps,
        judge: Judge, *, kernarg_row: int, waves: int, meter: Meter, recorder: Recorder | None = None,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self.operations, self.one, self.memory, self.judge, self.meter = operations, one, memory, judge, meter
        self._evaluated, self._looping = sliced.evaluated, sliced.looping
        self._targets = call_targets(operations)
        self._places = {
            each.instruction.address: each.number
            for each in reversed(operations)
            if each.instruction.address is not None
        }
        self._heads = frozenset(
            target for number, ways in enumerate(sliced.successors) for target in ways if target <= number
        )
        self._joins = self._join_points()
        self._namer = Namer(one, sliced.needed, sliced.for_addresses, kernarg_row)
        self._widener = Widener(one, sliced.for_addresses)
        self._runs = self._quiet_runs()
        self._meets = meeting(operations, sliced.successors, flat=memory.flat_lds)
        self._branching = Branching(one, memory.accesses, waves)
        self.chronicle = Chronicle()
        self._met = MetStates(one, self._namer, sliced.for_addresses, self.chronicle)
        self._open: list[tuple[int, int, ProductState]] = []
        self._pushed = 0
        self.steps = self.states = self.paths = 0

    def _join_points(self) -> frozenset[int]:
        """Where ways meet: behind the waits at a branch's target, which make paths more alike; not before a barrier."""
        found = set()
        for target in {each.instruction.target for each in self.operations if each.instruction.target is not None}:
            at = target
            while at < len(self.operations) and self.operations[at].kind in {OperationKind.WAIT, OperationKind.QUIET}:
                at += 1
            if at < len(self.operations) and self.operations[at].kind not in {OperationKind.BARRIER, OperationKind.END}:
                found.add(at)
        return frozenset(found)

    def _quiet_runs(self) -> list[tuple[int, int]]:
        """For each operation that needs no step of its own: the registers of all up to the next that does, and that."""
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
        """Follows every path to its end, or raises if the budget is gone."""
        self._put(start)
        while self._open:
            _, _, product = heapq.heappop(self._open)
            self._met.leave(product)
            self.paths += 1
            self._run(product)

    def _put(self, product: ProductState) -> None:
        """Leaves a state for later; those that are least far in the listing come first, so that paths meet."""
        self._pushed += 1
        far = sum(len(squad.waves) * (len(self.operations) if squad.ended else squad.at) for squad in product.squads)
        heapq.heappush(self._open, (far, self._pushed, product))

    def _run(self, product: ProductState) -> None:
        while True:
            squad = next((each for each in product.squads if not each.waiting and not each.ended), None)
            if squad is None:
                if not self._meet(product):
                    return
            elif not self._advance(product, squad) or (
                (squad.waiting or squad.ended)
                and product.forks
                and len(product.squads) > 1
                and not self._checkpoint(product, ("arrived",))
            ):
                return

    def _meet(self, product: ProductState) -> bool:
        """All waves wait at a barrier or have ended; gives whether any goes on."""
        self.judge.stretch(product.squads, product.epoch, product.known, self._search_on)
        waiting = [each for each in product.squads if not each.ended]
        if not waiting:
            self.judge.ended(product.squads)
            return False
        product.epoch += 1
        for squad in product.squads:
            squad.done = {}
        for squad in waiting:
            squad.waiting = False
            squad.barriers += 1
            squad.at += 1
        self.judge.passed(waiting)
        if len(waiting) < len(product.squads):  # of waves that have ended, only what is under way can still matter
            self.judge.ended(product.squads)
            product.squads = [each for each in product.squads if not each.ended or each.vm or each.ds or each.flat]
        product.squads = join(product.squads, self.one.masks, self.memory.accesses)
        product.squads.sort(key=lambda squad: squad.waves)
        return self._checkpoint(product, ("barrier",))

    def _advance(self, product: ProductState, squad: Squad) -> bool:  # noqa: C901, PLR0912
        """Steps a squad until it waits, ends or splits; False if the path is over."""
        operations, runs, heads = self.operations, self._runs, self._heads
        count = 0
        while True:
            at, self.one.symbols.company = squad.at, squad.waves
            if at >= len(operations):
                raise InconclusiveError("code runs past its last instruction")
            touches, end = runs[at]
            count += 1
            if not count % _STRETCH:  # straight code without end may not escape the budget
                self._spend(count, operations[at])
                count = 0
            if end >= 0:
                if touches & squad.busy:
                    self._look(squad, at, end, product)
                squad.at = end
                continue
            if product.resumed:
                product.resumed = False
            elif at in heads:
                self._spend(count, operations[at])
                count = 0
                if not self._checkpoint(product, (squad.waves[0],)):
                    return False
            elif product.forks != product.marked and at in self._joins:
                self._spend(count, operations[at])
                count = 0
                if not self._checkpoint(product, ("join",)):
                    return False
            operation = operations[at]
            if (operation.reads | operation.writes) & squad.busy:
                self._early(squad, operation, product)
            try:
                going = self._step(product, squad, operation)
            except ForkError as fork:
                if fork.parts and self._can_leave(product, len(squad.waves)):
                    self._spend(count, operation)
                    self._leave_alone(product, squad)
                    return False
                going = not fork.parts or len(squad.waves) == 1
                if going:
                    self._fork(product, squad, fork)
                else:
                    self._part(product, squad)
            if not going:
                self._spend(count, operation)
                return True

    def _spend(self, steps: int, operation: Operation) -> None:
        self.steps += steps
        self.meter.spend(steps)
        if over := self.meter.over:
            raise InconclusiveError(f"the budget of {over} is used up", operation, ended_by=over)

    def _search_on(self, pairs: int) -> None:
        self.meter.spend(pairs=pairs)
        if over := self.meter.over:
            message = f"the budget of {over} is used up by the search for pairs that race"
            raise InconclusiveError(message, ended_by=over)

    def _early(self, squad: Squad, operation: Operation, product: ProductState) -> None:
        uses, writes = operation.reads | operation.writes, operation.writes
        if operation.data and not operation.flat and operation.kind in {OperationKind.LDS, OperationKind.VMEM}:
            uses = operation.reads | operation.writes & ~self.memory.refilled(squad, operation)
        if operation.indexed:
            meant = in_place(self.one, squad, operation, product.known) or operation
            uses, writes = meant.reads | meant.writes, meant.writes
        if uses & squad.busy:
            self.judge.early(squad, operation, uses, writes, product.known)

    def _look(self, squad: Squad, at: int, end: int, product: ProductState) -> None:
        for number in range(at, end):
            operation = self.operations[number]
            self._early(squad, operation, product)

    def _step(self, product: ProductState, squad: Squad, operation: Operation) -> bool:  # noqa: C901, PLR0912
        """One operation; False if another squad has to go on now."""
        kind = operation.kind
        if kind is OperationKind.BRANCH:
            return self._branching.branch(product, squad, operation)
        if kind is OperationKind.VALUE:
            if operation.indexed:
                evaluate_indexed(self.one, squad, operation, product.known)
            elif self._evaluated[operation.number]:
                self.one.symbols.looping = self._looping[operation.number]
                evaluate = evaluate_vector if operation.vector else evaluate_scalar
                evaluate(self.one, squad, operation, product.known)
        elif kind is OperationKind.WAIT:
            self.memory.wait(squad, operation)
        elif kind is OperationKind.LDS:
            self._resolve(squad, operation.operands[0].rows[0], product)
            self.memory.lds(squad, operation, product)
        elif kind is OperationKind.VMEM:
            if operation.to_lds:
                self._resolve(squad, SCALAR + M0, product)
            elif operation.flat and operation.address:
                for row in operation.operands[0].rows:
                    self._resolve(squad, row, product)
            self.memory.vector(squad, operation, product)
        elif kind is OperationKind.SMEM:
            self.one.symbols.looping = self._looping[operation.number]
            self.memory.scalar(squad, operation, product.known)
        elif kind is OperationKind.EXCHANGE:
            self.memory.exchange(squad, operation, product)
        elif kind is OperationKind.BARRIER:
            squad.waiting = True
            return False
        elif kind is OperationKind.END:
            squad.ended = True
            self.judge.leaves(squad, operation, product.known)
            squad.rest(self.one.masks)
            return False
        elif kind is OperationKind.CALL:
            self._call(squad, operation, product)
            return True
        elif kind is OperationKind.INDEX:
            set_index(self.one, squad, operation, product.known)
        squad.at += 1
        return True

    def _resolve(self, squad: Squad, row: int, product: ProductState) -> None:
        """An address that a decision of the workgroup chooses needs that decision."""
        value = self.one.row(squad, row, product.known)
        if isinstance(value, Linear) and value.base.op == "select":
            raise ForkError(value.base.args[0])  # type: ignore[arg-type]

    def _call(self, squad: Squad, operation: Operation, product: ProductState) -> None:
        instruction = operation.instruction
        target = instruction.target
        if instruction.opcode != "s_call_b64":
            mask = self.one.pair(squad, operation.operands[-1], product.known)
            if mask.leaf is None or len(set(mask.leaf)) != 1:
                raise InconclusiveError("where a jump by register goes isn't known", operation)
            target = self._places.get(mask.leaf[0] - CODE_BASE)
            if target not in self._targets:
                raise InconclusiveError("a jump by register goes to no function and no return", operation)
        if instruction.opcode != "s_setpc_b64" and instruction.follows is not None:
            place = CODE_BASE + instruction.follows
            self.one.write_pair(squad, operation.operands[0].rows[0], self.one.masks.leaf((place,) * len(squad.waves)))
        assert target is not None  # noqa: S101
        squad.at = target

    # Decisions.

    def _fork(self, product: ProductState, squad: Squad, fork: ForkError) -> None:
        """Takes one way here, and leaves the other for later."""
        product.forks += 1
        self._spend(0, self.operations[squad.at])
        where = self.operations[squad.at].instruction
        if not fork.waves:
            other = product.copy()
            for each, holds in ((product, False), (other, True)):
                each.known.decide(fork.condition, holds=holds, epoch=each.epoch)
                each.known.trail = (
                    *each.known.trail[-11:],
                    f"{_told(fork.condition)} is {str(holds).lower()} at line {where.line}",
                )
            self._put(other)
            return
        (wave,) = fork.waves
        other = product.copy()
        for each, holds in ((product, False), (other, True)):
            each.known.decide(fork.condition, holds=holds, epoch=each.epoch, wave=wave)
            told = f"{_told(fork.condition)} is {str(holds).lower()} in wave {wave} at line {where.line}"
            each.known.trail = (*each.known.trail[-11:], told)
        self._put(other)

    def _part(self, product: ProductState, squad: Squad) -> None:
        """Waves that may decide differently go on alone: what each comes to is found once, not in every company."""
        place = product.squads.index(squad)
        alone = [squad.part([row], self.one.masks, self.memory.accesses) for row in range(len(squad.waves))]
        product.squads[place : place + 1] = alone

    # Checkpoints.

    def _can_leave(self, product: ProductState, waves: int = 1) -> bool:
        """Does no wave come to LDS or a barrier any more, so that none can matter to another?"""
        several = len(product.squads) > 1 or waves > 1
        return several and not any(self._meets[each.at] for each in product.squads if not each.ended)

    def _leave_alone(self, product: ProductState, parting: Squad | None = None) -> None:
        """Each squad goes on by itself, and each wave of one that parts."""
        self.judge.stretch(product.squads, product.epoch, product.known, self._search_on)
        self.judge.ended(product.squads)
        for squad in product.squads:
            rows = range(len(squad.waves)) if squad is parting else ()
            parts = [squad.part([row], self.one.masks, self.memory.accesses) for row in rows] or [squad]
            for each in parts if not squad.ended else ():
                alone = ProductState(
                    squads=[each], known=product.known.copy(), epoch=product.epoch, forks=product.forks
                )
                self._namer.rename(alone)
                number, going = self._met.arrive(alone, ("alone",), shape_of(alone))
                if self._recorder is not None:
                    self._recorder.came(alone, ("alone",), number)
                if going:
                    self._count(alone)
                    self._put(alone)

    def _count(self, product: ProductState) -> None:
        self.states += 1
        if self.states > self.meter.budget.states:
            at = next((self.operations[each.at] for each in product.squads if not each.ended), None)
            raise InconclusiveError("the budget of states is used up", at, ended_by="states")

    def _checkpoint(self, product: ProductState, head: tuple[Hashable, ...]) -> bool:
        """Names and compares the state; False if it was met before, or is left for later."""
        if self._can_leave(product):
            self._leave_alone(product)
            return False
        product.marked = product.forks
        self.meter.spend(registers=sum(len(squad.registers) for squad in product.squads))
        self._namer.rename(product)
        shape = shape_of(product)
        place = (head, *((squad.waves, squad.at) for squad in product.squads))
        visits = product.history.get(place, ())
        number = self._met.covering(product, head, shape) if isinstance(head[0], int) and visits else None
        going = False
        if number is None:
            if isinstance(head[0], int) and visits and self._widener.widen(product, visits, shape):
                self._namer.rename(product)
            number, going = self._met.arrive(product, head, shape)
        if self._recorder is not None:
            self._recorder.came(product, head, number)
        if not going:
            return False
        self._count(product)
        registers = tuple(dict(squad.registers) for squad in product.squads)
        visit = LoopVisit(shape=shape, registers=registers, known=product.known.copy(), forks=product.forks)
        product.history[place] = (*visits, visit)
        product.resumed = isinstance(head[0], int) or head[0] == "join"
        self._put(product)
        return False


def _told(condition: Symbol) -> str:
    """A condition in words."""
    return f"condition {condition.number} ({condition.op})"
