"""Every path of a kernel: takes its operations, runs all waves on what is known, gives what the judges found.

Waves that do the same run together.  Where a branch depends on something unknown, the path forks; what the whole
workgroup shares is decided once for all waves.  A path ends where its state was met before.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence

import numpy as np

from rota.isa.binary.elf import CODE_BASE
from rota.isa.wave.operand import M0, SCALAR, named
from rota.prove.decisions import Decisions, StateGraph
from rota.prove.evaluation import Evaluator, WaveView
from rota.prove.judge import Judge
from rota.prove.memory_steps import MemorySteps
from rota.prove.operation import SCC_ROW, Operation, OperationKind
from rota.prove.slicing import BackwardSlice, find_call_targets, find_interacting
from rota.prove.state import Accesses, Half, InFlight, Mask, Masks, WaveSet, atoms_of
from rota.prove.symbol import GROUP, LANE, Lanes, Linear, Symbol, Value, simplify
from rota.prove.transfer import evaluate_indexed, evaluate_scalar, evaluate_vector, resolve_index, set_index
from rota.prove.verdict import Meter
from rota.prove.widening import Namer, ProductState, Recorder, SeenStates, Visit, Widener, shape_of


def condense(evaluator: Evaluator, wave_set: WaveSet) -> None:
    """Makes EXEC depend on one unknown, and other masks on the same where they are equal to it or its rest."""
    old = wave_set.exec
    if len(atoms_of(old)) < 2:
        return
    masks = evaluator.masks
    possible = masks.leaf(masks.possible(old))
    atom = evaluator.symbols.fresh("left", LANE).base
    new = masks.combine("and", possible, masks.unknown(atom, len(wave_set.waves)))
    turned: dict[Mask, Mask] = {old: new}
    for row, value in wave_set.registers.items():
        if not isinstance(value, Half):
            continue
        mask = value.mask
        if mask not in turned:
            whole = masks.combine("or", possible, masks.leaf(masks.possible(mask)))
            rest = masks.combine("andn2", whole, old)
            turned[mask] = masks.combine("andn2", whole, new) if rest is mask else evaluator.limit_atoms(mask, 1)
        wave_set.registers[row] = Half(turned[mask], value.which)
    wave_set.exec = new


def assume_empty(evaluator: Evaluator, wave_set: WaveSet) -> None:
    """No lane is left in EXEC: what that says of its unknown is put into all masks."""
    masks, mask = evaluator.masks, wave_set.exec
    nothing = masks.leaf((0,) * len(wave_set.waves))
    wave_set.exec = nothing
    if mask.atom is None or mask.high is None or mask.low is None:
        return
    if (
        mask.high.leaf is None
        or mask.low.leaf is None
        or any(a & b for a, b in zip(mask.high.leaf, mask.low.leaf, strict=True))
    ):
        return
    atom = masks.unknown(mask.atom, len(wave_set.waves))
    known = masks.combine("or", mask.low, masks.combine("andn2", atom, mask.high))
    for row, value in wave_set.registers.items():
        if isinstance(value, Half) and mask.atom in atoms_of(value.mask):
            wave_set.registers[row] = Half(masks.substitute(value.mask, {mask.atom: known}), value.which)


_VCC = named("vcc")


class ForkError(Exception):
    """An operation needs a decision first: about a condition, of these waves or of the whole workgroup.

    With `parts`, waves may go different ways by it, even if all of them share what it is about.
    """

    def __init__(self, condition: Symbol, waves: tuple[int, ...] = (), *, parts: bool = False) -> None:
        super().__init__()
        self.condition, self.waves, self.parts = condition, waves, parts or bool(waves)


class Branching:
    """Takes branches; one for a proof."""

    def __init__(self, evaluator: Evaluator, accesses: Accesses, waves: int) -> None:
        self._evaluator, self._accesses, self._one_wave = evaluator, accesses, WaveView(evaluator, waves)

    def branch(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        """Takes a branch; False if waves part at it, so that another wave_set has to go on now."""
        instruction = operation.instruction
        opcode, target = instruction.opcode, instruction.target
        assert target is not None  # noqa: S101
        if opcode == "s_branch":
            wave_set.at = target
            return True
        taken = self._taken(product, wave_set, operation)
        empty = None if "_exec" not in opcode else not opcode.endswith("nz")  # what is taken when no lane is left
        if isinstance(taken, bool):
            wave_set.at = target if taken else wave_set.at + 1
            if taken is empty:
                assume_empty(self._evaluator, wave_set)
            return True
        rows = [[row for row, each in enumerate(taken) if each is wanted] for wanted in (True, False)]
        parts = [wave_set.restrict(each, self._evaluator.masks, self._accesses) for each in rows]
        parts[0].at, parts[1].at = target, wave_set.at + 1
        if empty is not None:
            assume_empty(self._evaluator, parts[0 if empty else 1])
        place = product.wave_sets.index(wave_set)
        product.wave_sets[place : place + 1] = sorted(parts, key=lambda part: -part.at)  # those that leave a loop first
        return False

    def _taken(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool | list[bool]:
        opcode, known = operation.instruction.opcode, product.known
        if opcode == "s_setvskip":
            word, place = (self._evaluator.read(wave_set, each, known) for each in operation.operands)
            flag = self._evaluator.compute(
                "and", self._evaluator.compute("shr", word, self._evaluator.compute("and", place, 31)), 1
            )
            wanted = not operation.instruction.modifiers
            flag = self._evaluator.flag_of(self._evaluator.compare("eq", "u", flag, int(wanted)))
            return self._outcome(wave_set, flag, known)
        if "_scc" in opcode:
            return self._outcome(
                wave_set, self._evaluator.read_row(wave_set, SCC_ROW, known), known, wanted=opcode.endswith("1")
            )
        wanted = opcode.endswith("nz")
        if "_exec" not in opcode:
            return self._outcome(
                wave_set, self._evaluator.any_of(self._evaluator.read_pair(wave_set, _VCC, known)), known, wanted=wanted
            )
        wave_set.exec = self._evaluator.masks.settle(wave_set.exec, known.lookup)
        if isinstance(self._evaluator.any_of(wave_set.exec), Linear):
            condense(self._evaluator, wave_set)
        return self._outcome(wave_set, self._evaluator.any_of(wave_set.exec), known, wanted=wanted)

    def _outcome(self, wave_set: WaveSet, flag: Value, known: Decisions, *, wanted: bool = True) -> bool | list[bool]:
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
                return self._outcome(wave_set, flag, known, wanted=wanted)
            base = flag.base
        positive = wanted == (flag.scale == 1)
        if base.spread == GROUP:
            decided = known.lookup(base)
            if decided is None:
                raise ForkError(base)
            return decided == positive
        each = [self._of_wave(base, wave, known) for wave in wave_set.waves]
        open_ = tuple(wave for wave, one in zip(wave_set.waves, each, strict=True) if one is None)
        if open_:
            raise ForkError(base, open_)
        outcomes = [one == positive for one in each]
        return outcomes[0] if len(set(outcomes)) == 1 else outcomes

    def _of_wave(self, base: Symbol, wave: int, known: Decisions) -> bool | None:
        """What a condition that waves don't share is in one of them."""
        decided = known.lookup(base, wave)
        if decided is not None:
            return decided
        told = self._one_wave.symbol(base, wave)
        if isinstance(told, int):
            return bool(told)
        if not isinstance(told, Linear) or told.base.spread != GROUP or told.base.bits != 1:
            return None
        decided = known.lookup(told.base)
        if decided is None:
            raise ForkError(told.base, parts=True)
        return decided == (told.scale == 1)


class _ApartError(Exception):
    """Two wave_sets that can't be one."""


def join(wave_sets: list[WaveSet], masks: Masks, accesses: Accesses) -> list[WaveSet]:
    """Squads at one place, with the same memory ops under way, go on together."""
    joined: list[WaveSet] = []
    for wave_set in wave_sets:
        for place, other in enumerate(joined):
            if wave_set.at == other.at and wave_set.ended == other.ended and wave_set.barriers == other.barriers:
                try:
                    joined[place] = _both(other, wave_set, masks, accesses)
                except _ApartError:
                    continue
                break
        else:
            joined.append(wave_set)
    return joined


def _both(one: WaveSet, other: WaveSet, masks: Masks, accesses: Accesses) -> WaveSet:
    if one.ended:
        return _husk(one, other, masks)
    counts = len(one.waves), len(other.waves)
    rows = one.registers.keys() & other.registers.keys()  # one that only some have was never written by the others
    registers = {row: _value(one.registers[row], other.registers[row], counts, masks) for row in rows}
    vm = _flights(one.vm, other.vm, accesses)
    ds = _flights(one.ds, other.ds, accesses)
    if [each.identity for each in one.sm] != [each.identity for each in other.sm] or one.flat or other.flat:
        raise _ApartError
    both = WaveSet(
        waves=(*one.waves, *other.waves),
        at=one.at,
        registers=registers,
        exec=_mask(one.exec, other.exec, masks),
        vm=vm,
        ds=ds,
        sm=one.sm,
        pending=one.pending,
        barriers=one.barriers,
    )
    order = sorted(range(len(both.waves)), key=both.waves.__getitem__)
    return both if order == list(range(len(order))) else both.restrict(order, masks, accesses)


def _husk(one: WaveSet, other: WaveSet, masks: Masks) -> WaveSet:
    """Ended waves, of which only the number of barriers matters, and what they left under way."""
    if any((*one.vm, *other.vm, *one.ds, *other.ds, *one.flat, *other.flat)):
        raise _ApartError
    waves = tuple(sorted((*one.waves, *other.waves)))
    return WaveSet(
        waves=waves, at=one.at, registers={}, exec=masks.leaf((0,) * len(waves)), ended=True, barriers=one.barriers
    )


def _flights(one: tuple[InFlight, ...], other: tuple[InFlight, ...], accesses: Accesses) -> tuple[InFlight, ...]:
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
        elif a.only_counts or (a.number, a.other_numbers) == (b.number, b.other_numbers):
            both.append(a)
        else:  # loads to the same registers, by two copies of the code
            also = {a.number, *a.other_numbers, b.number, *b.other_numbers}
            first = min(also)
            both.append(
                a._replace(
                    number=first,
                    other_numbers=tuple(sorted(also - {first})),
                    near_wait=_agreed(a.near_wait, b.near_wait),
                )
            )
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
    return simplify(np.concatenate(parts))


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
        self, operations: Sequence[Operation], sliced: BackwardSlice, evaluator: Evaluator, memory: MemorySteps,
        judge: Judge, *, kernarg_row: int, waves: int, meter: Meter, recorder: Recorder | None = None,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self.operations, self.evaluator, self.memory, self.judge, self.meter = (
            operations,
            evaluator,
            memory,
            judge,
            meter,
        )
        self._evaluated, self._looping = sliced.evaluated, sliced.looping
        self._targets = find_call_targets(operations)
        self._places = {
            each.instruction.address: each.number
            for each in reversed(operations)
            if each.instruction.address is not None
        }
        self._heads = frozenset(
            target for number, ways in enumerate(sliced.successors) for target in ways if target <= number
        )
        self._joins = self._join_points()
        self._namer = Namer(evaluator, sliced.needed, sliced.for_addresses, kernarg_row)
        self._widener = Widener(evaluator, sliced.for_addresses)
        self._runs = self._quiet_runs()
        self._meets = find_interacting(operations, sliced.successors, flat=memory.flat_lds)
        self._branching = Branching(evaluator, memory.accesses, waves)
        self.graph = StateGraph()
        self._seen = SeenStates(evaluator, self._namer, sliced.for_addresses, self.graph)
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
            self._seen.close(product)
            self.paths += 1
            self._run(product)

    def _put(self, product: ProductState) -> None:
        """Leaves a state for later; those that are least far in the listing come first, so that paths meet."""
        self._pushed += 1
        far = sum(
            len(wave_set.waves) * (len(self.operations) if wave_set.ended else wave_set.at)
            for wave_set in product.wave_sets
        )
        heapq.heappush(self._open, (far, self._pushed, product))

    def _run(self, product: ProductState) -> None:
        while True:
            wave_set = next((each for each in product.wave_sets if not each.waiting and not each.ended), None)
            if wave_set is None:
                if not self._meet(product):
                    return
            elif not self._advance(product, wave_set) or (
                (wave_set.waiting or wave_set.ended)
                and product.forks
                and len(product.wave_sets) > 1
                and not self._checkpoint(product, ("arrived",))
            ):
                return

    def _meet(self, product: ProductState) -> bool:
        """All waves wait at a barrier or have ended; gives whether any goes on."""
        self.judge.check_races(product.wave_sets, product.epoch, product.known, self._search_on)
        waiting = [each for each in product.wave_sets if not each.ended]
        if not waiting:
            self.judge.check_barrier_counts(product.wave_sets)
            return False
        product.epoch += 1
        for wave_set in product.wave_sets:
            wave_set.covered = {}
        for wave_set in waiting:
            wave_set.waiting = False
            wave_set.barriers += 1
            wave_set.at += 1
        self.judge.record_barrier(waiting)
        if len(waiting) < len(product.wave_sets):  # of waves that have ended, only what is under way can still matter
            self.judge.check_barrier_counts(product.wave_sets)
            product.wave_sets = [
                each for each in product.wave_sets if not each.ended or each.vm or each.ds or each.flat
            ]
        product.wave_sets = join(product.wave_sets, self.evaluator.masks, self.memory.accesses)
        product.wave_sets.sort(key=lambda wave_set: wave_set.waves)
        return self._checkpoint(product, ("barrier",))

    def _advance(self, product: ProductState, wave_set: WaveSet) -> bool:  # noqa: C901, PLR0912
        """Steps a wave_set until it waits, ends or splits; False if the path is over."""
        operations, runs, heads = self.operations, self._runs, self._heads
        count = 0
        while True:
            at, self.evaluator.symbols.row_waves = wave_set.at, wave_set.waves
            if at >= len(operations):
                raise InconclusiveError("code runs past its last instruction")
            touches, end = runs[at]
            count += 1
            if not count % _STRETCH:  # straight code without end may not escape the budget
                self._spend(count, operations[at])
                count = 0
            if end >= 0:
                if touches & wave_set.pending:
                    self._look(wave_set, at, end, product)
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
                self._early(wave_set, operation, product)
            try:
                going = self._step(product, wave_set, operation)
            except ForkError as fork:
                if fork.parts and self._is_independent(product, len(wave_set.waves)):
                    self._spend(count, operation)
                    self._leave_alone(product, wave_set)
                    return False
                going = not fork.parts or len(wave_set.waves) == 1
                if going:
                    self._fork(product, wave_set, fork)
                else:
                    self._part(product, wave_set)
            if not going:
                self._spend(count, operation)
                return True

    def _spend(self, steps: int, operation: Operation) -> None:
        self.steps += steps
        self.meter.spend(steps)
        if over := self.meter.exceeded:
            raise InconclusiveError(f"the budget of {over} is used up", operation, ended_by=over)

    def _search_on(self, pairs: int) -> None:
        self.meter.spend(pairs=pairs)
        if over := self.meter.exceeded:
            message = f"the budget of {over} is used up by the search for pairs that race"
            raise InconclusiveError(message, ended_by=over)

    def _early(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        uses, writes = operation.reads | operation.writes, operation.writes
        if operation.data and not operation.flat and operation.kind in {OperationKind.LDS, OperationKind.VMEM}:
            uses = operation.reads | operation.writes & ~self.memory.find_refilled(wave_set, operation)
        if operation.indexed:
            meant = resolve_index(self.evaluator, wave_set, operation, product.known) or operation
            uses, writes = meant.reads | meant.writes, meant.writes
        if uses & wave_set.pending:
            self.judge.check_registers(wave_set, operation, uses, writes, product.known)

    def _look(self, wave_set: WaveSet, at: int, end: int, product: ProductState) -> None:
        for number in range(at, end):
            operation = self.operations[number]
            self._early(wave_set, operation, product)

    def _step(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:  # noqa: C901, PLR0912
        """One operation; False if another wave_set has to go on now."""
        kind = operation.kind
        if kind is OperationKind.BRANCH:
            return self._branching.branch(product, wave_set, operation)
        if kind is OperationKind.VALUE:
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
            self.memory.issue_lds(wave_set, operation, product)
        elif kind is OperationKind.VMEM:
            if operation.to_lds:
                self._resolve(wave_set, SCALAR + M0, product)
            elif operation.flat and operation.address:
                for row in operation.operands[0].rows:
                    self._resolve(wave_set, row, product)
            self.memory.issue_vector(wave_set, operation, product)
        elif kind is OperationKind.SMEM:
            self.evaluator.symbols.looping = self._looping[operation.number]
            self.memory.issue_scalar(wave_set, operation, product.known)
        elif kind is OperationKind.EXCHANGE:
            self.memory.issue_exchange(wave_set, operation, product)
        elif kind is OperationKind.BARRIER:
            wave_set.waiting = True
            return False
        elif kind is OperationKind.END:
            wave_set.ended = True
            self.judge.check_end(wave_set, operation, product.known)
            wave_set.finish(self.evaluator.masks)
            return False
        elif kind is OperationKind.CALL:
            self._call(wave_set, operation, product)
            return True
        elif kind is OperationKind.INDEX:
            set_index(self.evaluator, wave_set, operation, product.known)
        wave_set.at += 1
        return True

    def _resolve(self, wave_set: WaveSet, row: int, product: ProductState) -> None:
        """An address that a decision of the workgroup chooses needs that decision."""
        value = self.evaluator.read_row(wave_set, row, product.known)
        if isinstance(value, Linear) and value.base.op == "select":
            raise ForkError(value.base.args[0])  # type: ignore[arg-type]

    def _call(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        instruction = operation.instruction
        target = instruction.target
        if instruction.opcode != "s_call_b64":
            mask = self.evaluator.read_pair(wave_set, operation.operands[-1], product.known)
            if mask.leaf is None or len(set(mask.leaf)) != 1:
                raise InconclusiveError("where a jump by register goes isn't known", operation)
            target = self._places.get(mask.leaf[0] - CODE_BASE)
            if target not in self._targets:
                raise InconclusiveError("a jump by register goes to no function and no return", operation)
        if instruction.opcode != "s_setpc_b64" and instruction.follows is not None:
            place = CODE_BASE + instruction.follows
            self.evaluator.write_pair(
                wave_set, operation.operands[0].rows[0], self.evaluator.masks.leaf((place,) * len(wave_set.waves))
            )
        assert target is not None  # noqa: S101
        wave_set.at = target

    # Decisions.

    def _fork(self, product: ProductState, wave_set: WaveSet, fork: ForkError) -> None:
        """Takes one way here, and leaves the other for later."""
        product.forks += 1
        self._spend(0, self.operations[wave_set.at])
        where = self.operations[wave_set.at].instruction
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

    def _part(self, product: ProductState, wave_set: WaveSet) -> None:
        """Waves that may decide differently go on alone: what each comes to is found once, not in every row_waves."""
        place = product.wave_sets.index(wave_set)
        alone = [
            wave_set.restrict([row], self.evaluator.masks, self.memory.accesses) for row in range(len(wave_set.waves))
        ]
        product.wave_sets[place : place + 1] = alone

    # Checkpoints.

    def _is_independent(self, product: ProductState, waves: int = 1) -> bool:
        """Does no wave come to LDS or a barrier any more, so that none can matter to another?"""
        several = len(product.wave_sets) > 1 or waves > 1
        return several and not any(self._meets[each.at] for each in product.wave_sets if not each.ended)

    def _leave_alone(self, product: ProductState, parting: WaveSet | None = None) -> None:
        """Each wave_set goes on by itself, and each wave of one that parts."""
        self.judge.check_races(product.wave_sets, product.epoch, product.known, self._search_on)
        self.judge.check_barrier_counts(product.wave_sets)
        for wave_set in product.wave_sets:
            rows = range(len(wave_set.waves)) if wave_set is parting else ()
            parts = [wave_set.restrict([row], self.evaluator.masks, self.memory.accesses) for row in rows] or [wave_set]
            for each in parts if not wave_set.ended else ():
                alone = ProductState(
                    wave_sets=[each], known=product.known.copy(), epoch=product.epoch, forks=product.forks
                )
                self._namer.rename(alone)
                number, going = self._seen.arrive(alone, ("alone",), shape_of(alone))
                if self._recorder is not None:
                    self._recorder.record_checkpoint(alone, ("alone",), number)
                if going:
                    self._count(alone)
                    self._put(alone)

    def _count(self, product: ProductState) -> None:
        self.states += 1
        if self.states > self.meter.budget.states:
            at = next((self.operations[each.at] for each in product.wave_sets if not each.ended), None)
            raise InconclusiveError("the budget of states is used up", at, ended_by="states")

    def _checkpoint(self, product: ProductState, head: tuple[Hashable, ...]) -> bool:
        """Names and compares the state; False if it was met before, or is left for later."""
        if self._is_independent(product):
            self._leave_alone(product)
            return False
        product.marked = product.forks
        self.meter.spend(registers=sum(len(wave_set.registers) for wave_set in product.wave_sets))
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
        self._count(product)
        registers = tuple(dict(wave_set.registers) for wave_set in product.wave_sets)
        visit = Visit(shape=shape, registers=registers, known=product.known.copy(), forks=product.forks)
        product.history[place] = (*visits, visit)
        product.resumed = isinstance(head[0], int) or head[0] == "join"
        self._put(product)
        return False


def _told(condition: Symbol) -> str:
    """A condition in words."""
    return f"condition {condition.number} ({condition.op})"
