"""Follows what registers hold along the control flow of a kernel, for one lane of any wave.

One pass in reverse postorder. Where ways meet that hold different words, the word is a choice; what a loop changes is
carried, an unknown word whose arms are what the ways into the loop hold. A vector instruction writes the lanes that are
active: for a lane that reads under other conditions, the register is a choice between the new word and the old one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.registers import EXEC, NAMED, SCALAR, VCC
from rota.prove.footprint.polynomial import Atom, Bounds, Polynomial, bounds_of_bits, number
from rota.prove.footprint.words import (
    ANY_WORD,
    FALSE,
    TRUE,
    WORD,
    Held,
    HeldWord,
    Predicate,
    PredicateHalf,
    Words,
    both,
    constant,
    implies,
    negated,
)
from rota.prove.operation import EXEC_BITS, Operation, OperationKind
from rota.prove.slicing import FlowBlock, narrows_exec, split_blocks

EXEC_ROW, VCC_ROW = SCALAR + EXEC, SCALAR + VCC
_POINTER, _LONG = bounds_of_bits(48), bounds_of_bits(64)
_MOST_IN_AXIS = 1023  # of a work item's number
_SMALL = {size: bounds_of_bits(8 * size) for size in (1, 2, 4)}


@dataclass(slots=True)
class State:
    """What registers hold, by row; of scalar words that a vector register keeps, by row and lane."""

    held: dict[int, Held] = field(default_factory=dict)
    lanes: dict[tuple[int, int], HeldWord] = field(default_factory=dict)
    exec: Predicate = TRUE

    def copy(self) -> State:
        return State(dict(self.held), dict(self.lanes), self.exec)


@dataclass(frozen=True, slots=True)
class CarriedWord:
    """A register that a loop changes: by its row, in the loop that begins with `first`.

    `arms` are what it holds at the beginning, and then on each way back that differs.
    """

    first: int
    row: int
    arms: list[HeldWord]


class KernelFlow:
    """A kernel's blocks, and the state before each: made by `follow`."""

    def __init__(self, operations: Sequence[Operation], successors: Sequence[Sequence[int]]) -> None:
        self.operations = operations
        self.blocks = split_blocks(successors)
        self._widening: set[int] | None = None
        self._starts = [each.first for each in self.blocks]
        self.of = {each.first: place for place, each in enumerate(self.blocks)}
        self.carried: dict[Atom, CarriedWord] = {}
        # Of a loop, by its first operation: which lanes go through it, and what holds on each way back.
        self.headers: dict[int, Predicate] = {}
        self.latches: dict[int, frozenset[Predicate]] = {}
        self.widens: set[int] = set()  # blocks to which a loop comes back with lanes that had left it
        self.known: dict[int, frozenset[Predicate]] = {}  # what holds on every way to a block, by its number
        self.tests: dict[int, Predicate] = {}  # what a block's last instruction branches on, if it is SCC

    def order(self) -> list[int]:
        """Blocks in reverse postorder."""
        seen, found, work = {0}, [], [(0, iter(self.blocks[0].successors))]
        while work:
            at, rest = work[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                found.append(at)
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(self.blocks[following].successors)))
        return found[::-1]

    def arms_of(self, atom: Atom) -> list[HeldWord]:
        """The words that a choice is between, or that lead into a loop and back."""
        if atom.op == "carried":
            return self.carried[atom].arms if atom in self.carried else []
        return [each for each in atom.args[1:] if isinstance(each, HeldWord)]

    def learn(self, at: int) -> None:
        """Find what holds on every way into a block; a loop's way back adds nothing, since its words are others."""
        ways = [self.known[each] | self.taken(each, at) for each in self.blocks[at].predecessors if each in self.known]
        self.known[at] = frozenset.intersection(*ways) if ways else frozenset()

    def known_at(self, number: int) -> frozenset[Predicate]:
        """What holds on every way to an operation."""
        return self.known[bisect_right(self._starts, number) - 1]

    def taken(self, way: int, at: int) -> frozenset[Predicate]:
        """What a branch says if it leads from one block to another."""
        block, test = self.blocks[way], self.tests.get(way)
        operation = self.operations[block.last]
        condition = operation.spec.condition
        if test is None or condition is None or len(block.successors) < 2:
            return frozenset()
        holds = condition.holds == (operation.instruction.target == self.blocks[at].first)
        return (test if holds else negated(test)).parts

    def may_widen(self, at: int) -> bool:
        """True if lanes may become active again in a block, or after it."""
        if self._widening is None:
            self._widening = {
                place for place, block in enumerate(self.blocks)
                if any(each.writes & EXEC_BITS and not narrows_exec(each) for each in self.operations_of(block))
            }  # fmt: skip
            work = list(self._widening)
            while work:
                for each in self.blocks[work.pop()].predecessors:
                    if each not in self._widening:
                        self._widening.add(each)
                        work.append(each)
        return at in self._widening

    def operations_of(self, block: FlowBlock) -> Sequence[Operation]:
        return self.operations[block.first : block.last + 1]

    def loop_of(self, header: int, latches: Sequence[int]) -> set[int]:
        """The blocks from which the latches are reached without the header."""
        found, work = {header}, list(latches)
        while work:
            each = work.pop()
            if each not in found:
                found.add(each)
                work += self.blocks[each].predecessors
        return found


class LaunchWords:
    """What registers hold when a wave begins, and what the kernel's arguments are called."""

    def __init__(self, words: Words, facts: KernelFacts, *, ids_in_traps: bool) -> None:
        self._words, self._facts = words, facts
        self.kernarg = words.atoms.make("kernarg", (), "arguments", _POINTER)
        self._ids_in_traps = ids_in_traps

    def state(self) -> State:
        facts, held, at = self._facts, dict[int, Held](), SCALAR
        for name, size in facts.user_sgprs:
            for word in range(size):
                held[at + word] = self._user(name, word)
            at += size
        for axis, wanted in zip("xyz", facts.workgroup_ids, strict=True):
            if wanted:
                held[at] = HeldWord(self.workgroup(axis))
                at += 1
        if self._ids_in_traps:
            held[SCALAR + NAMED["ttmp9"][0]] = HeldWord(self.workgroup("x"))
            y, z = (self.workgroup(axis, Bounds(0, 0xFFFF)) for axis in "yz")
            held[SCALAR + NAMED["ttmp7"][0]] = HeldWord(y + z.times(1 << 16))
        items = [self.item(axis) for axis in "xyz"[: facts.workitem_ids + 1]]
        held[0] = HeldWord(sum((each.times(1 << 10 * place) for place, each in enumerate(items)), number(0)))
        return State(held)

    def _user(self, name: str, word: int) -> HeldWord:
        if name == "kernarg_segment_ptr":
            return HeldWord(self.kernarg, word)
        if name == "kernarg_preload":
            return self.argument(4 * (self._facts.descriptor.preload_offset + word))
        if name == "dispatch_ptr":
            return HeldWord(self._words.atoms.make("packet", (), "packet", _POINTER), word)
        return self._words.unknown(f"{name}+{word}", by_lane=False)

    def workgroup(self, axis: str, bounds: Bounds = ANY_WORD) -> Polynomial:
        return self._words.atoms.make("workgroup", (axis,), f"group_{axis}", bounds)

    def item(self, axis: str) -> Polynomial:
        required, most = self._facts.required_workgroup, self._facts.max_workgroup
        size = required["xyz".index(axis)] if required and all(required) else most
        high = min(max(size - 1, 0), _MOST_IN_AXIS)
        return self._words.atoms.make("item", (axis,), f"item_{axis}", Bounds(0, high), by_lane=True)

    def argument(self, offset: int) -> HeldWord:
        """The word of the arguments at an offset."""
        for each in self._facts.arguments:
            if each.offset <= offset < each.offset + each.size:
                part, rest = divmod(offset - each.offset, 4)
                if not rest and each.size == 8:
                    return HeldWord(self._named(each, _POINTER if "buffer" in each.kind else _LONG), part)
                if not rest and each.size in _SMALL:
                    return self._small(offset)
        return HeldWord(self._words.atoms.make("word of arguments", (offset,), f"args[{offset:#x}]", ANY_WORD))

    def _small(self, offset: int) -> HeldWord:
        total = number(0)
        for each in self._facts.arguments:
            if offset <= each.offset < offset + 4 and each.size in _SMALL:
                total = total + self._named(each, _SMALL[each.size]).times(1 << 8 * (each.offset - offset))
        return HeldWord(total)

    def _named(self, argument: Argument, bounds: Bounds) -> Polynomial:
        """An argument; a hidden one describes the launch."""
        op, name = ("launch", argument.kind) if argument.kind.startswith("hidden") else ("argument", argument.name)
        return self._words.atoms.make(op, (name,), name, bounds)


class BlockEntries:
    """Makes the state at the beginning of a block of those at the ends of the ways into it."""

    def __init__(self, words: Words, flow: KernelFlow) -> None:
        self._words, self._flow = words, flow
        self._entered: dict[int, frozenset[int]] = {}

    def enter(self, at: int, ends: Mapping[int, State]) -> State:
        block = self._flow.blocks[at]
        known = [each for each in block.predecessors if each in ends]
        late = [each for each in block.predecessors if each not in ends]
        state = self._merge(at, [(each, self._end_of(each, at, ends[each])) for each in known])
        if late:
            self._entered[at] = frozenset(known)
            self._carry(at, state, self._flow.loop_of(at, late))
        return state

    def _end_of(self, way: int, at: int, end: State) -> State:
        """What holds at the end of a way; no lane is active if a branch says so."""
        return State(end.held, end.lanes, FALSE) if self._skips(way, at) else end

    def _merge(self, at: int, ways: list[tuple[int, State]]) -> State:
        _, first = ways[0]
        state = first.copy()
        if len(ways) == 1:
            return state
        rows = set(first.held).union(*(other.held for _, other in ways[1:]))
        for row in rows:
            held = [each.held.get(row) for _, each in ways]
            if any(each != held[0] for each in held[1:]):
                state.held[row] = self._choose(at, row, held, [each.exec == FALSE for _, each in ways])
        state.lanes = {
            key: word for key, word in first.lanes.items() if all(each.lanes.get(key) == word for _, each in ways)
        }
        if any(each.exec != first.exec for _, each in ways):
            state.exec = self._meet_masks(at, ways)
        return state

    def _meet_masks(self, at: int, ways: list[tuple[int, State]]) -> Predicate:
        """EXEC where ways meet; a way that is taken without active lanes adds none."""
        active = [each.exec for _, each in ways if each.exec != FALSE]
        if active and all(each == active[0] for each in active):
            return active[0]
        return Predicate("met", (at, "exec"))

    def _skips(self, way: int, at: int) -> bool:
        """True if a way is taken only if no lane is active."""
        block = self._flow.blocks[way]
        operation = self._flow.operations[block.last]
        condition = operation.spec.condition
        if operation.kind is not OperationKind.BRANCH or condition is None or condition.register != "exec":
            return False
        taken = operation.instruction.target == self._flow.blocks[at].first
        return len(block.successors) > 1 and taken != condition.holds

    def _choose(self, at: int, row: int, held: list[Held | None], skips: list[bool]) -> Held:
        if any(isinstance(each, (PredicateHalf, Predicate)) for each in held):
            which = next((each.which for each in held if isinstance(each, PredicateHalf)), None)
            condition = Predicate("met", (at, row - (which or 0)))
            return condition if which is None else PredicateHalf(condition, which)
        found = [as_word(each, self._words, row) for each in held]
        alone = row < SCALAR and not self._flow.may_widen(at)  # no lane of a way without any is active again
        kept = [
            each
            for each, skip in zip(found, skips, strict=True)
            if not (skip and (alone or any(_falls_back(other, each) for other in found)))
        ] or found
        if all(each.same(kept[0]) for each in kept):
            return kept[0]
        return self._words.choose(("block", at), tuple(kept), at=self._flow.blocks[at].first)

    def _carry(self, at: int, state: State, loop: set[int]) -> None:
        flow, written = self._flow, 0
        for each in loop:
            block = flow.blocks[each]
            for operation in flow.operations_of(block):
                written |= operation.writes | operation.data
        first = flow.blocks[at].first
        for row in [each for each in state.held if written >> each & 1]:
            held = state.held[row]
            if isinstance(held, PredicateHalf):
                state.held[row] = PredicateHalf(Predicate("carried", (at, row - held.which)), held.which)
            elif isinstance(held, Predicate):
                state.held[row] = Predicate("carried", (at, row))
            else:
                by_lane = row < SCALAR or held.whole.by_lane
                text = f"loop_{first}[{row}]"
                made = self._words.atoms.make("carried", (first, row), text, ANY_WORD, by_lane=by_lane)
                arms = [_seen_at(row, held, state.exec)]
                flow.carried.update({each: CarriedWord(first, row, arms) for each in made.atoms()})
                state.held[row] = HeldWord(made)
        if written >> EXEC_ROW & 1:
            carried = Predicate("carried", (at, "exec"))
            state.exec = carried if at in flow.widens else both(state.exec, carried)
        flow.headers[first] = state.exec
        state.lanes = {key: word for key, word in state.lanes.items() if not written >> key[0] & 1}

    def close(self, ends: Mapping[int, State]) -> None:
        """Add what the ways back into each loop hold, and say whose lanes don't become fewer, as was assumed."""
        flow = self._flow
        for at, entered in self._entered.items():
            block = flow.blocks[at]
            back = [each for each in block.predecessors if each in ends and each not in entered]
            for each in (each for each in flow.carried.values() if each.first == block.first):
                each.arms.extend(self._list_arms(each.row, [ends[way] for way in back]))
            if not all(implies(ends[way].exec, flow.headers[block.first]) for way in back):
                flow.widens.add(at)
            known = [flow.known[way] | flow.taken(way, at) | ends[way].exec.parts for way in back]
            flow.latches[block.first] = frozenset.intersection(*known) if known else frozenset()

    def _list_arms(self, row: int, ends: Sequence[State]) -> list[HeldWord]:
        """What each way back holds in a register; a mask is an unknown word."""
        found: list[HeldWord] = []
        for each in ends:
            held = _seen_at(row, as_word(each.held.get(row), self._words, row), each.exec)
            if not any(held.same(other) for other in found):
                found.append(held)
        return found


def _seen_at(row: int, held: HeldWord, active: Predicate) -> HeldWord:
    """A word as the lanes see it that go into a loop, or back."""
    return see(held, active) if row < SCALAR else held


def _falls_back(word: HeldWord, old: HeldWord) -> bool:
    """True if a word is a choice whose other arm is the old one: what a skipped region would have changed."""
    atom = word.whole.atom
    return atom is not None and atom.op == "select" and any(
        isinstance(each, HeldWord) and each.same(old) for each in atom.args[2:]
    )  # fmt: skip


def see(word: HeldWord, active: Predicate) -> HeldWord:
    """The word as lanes see it that are active: of a choice by a condition of theirs, the arm that it says."""
    while (atom := word.whole.atom) is not None and atom.op == "select" and isinstance(atom.args[0], Predicate):
        chosen = atom.args[1:]
        if implies(active, atom.args[0]):
            arm = chosen[0]
        elif implies(active, negated(atom.args[0])):
            arm = chosen[1]
        else:
            break
        if not isinstance(arm, HeldWord):
            break
        word = arm
    return word


def as_word(held: Held | None, words: Words, row: int) -> HeldWord:
    if isinstance(held, HeldWord):
        return held
    if isinstance(held, PredicateHalf):
        if held.condition in (TRUE, FALSE):
            return constant(WORD - 1 if held.condition == TRUE else 0)
        return words.unknown(f"mask {held.condition.number}", "mask", held.condition, held.which, by_lane=False)
    text = f"start of row {row}" if held is None else f"flag {held.number}"
    return words.unknown(text, "start", row, held)
