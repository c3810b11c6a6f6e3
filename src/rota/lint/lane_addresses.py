"""What the addresses of a wave's lanes cost: conflicts of LDS banks, and lines of global memory.

A bank conflict counts as many clocks as LDS needs for an instruction beside those without one. The proof says which
addresses the lanes of each wave give, on every path and trip that it follows.  The machine's `BankRule` says which
lanes are served together.  Each bank serves one word a clock, and lanes that want the same word share it.  What all
lanes of a wave add to their addresses moves them round the banks alike: it changes no conflict, so it needn't be known,
if it is a number of whole words.

Where the machine states no rule for a width, only its banks bound the clocks: the bank of which most words are wanted
serves them one after the other, whichever lanes come together.  Where data chooses the addresses, nothing is known.

Lines of global memory are counted where the addresses of a wave's lanes differ by known bytes.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rota.errors import RotaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.prove.footprint.accesses import KernelAccesses, read_accesses
from rota.prove.footprint.polynomial import Atom, Monomial, Polynomial, of_atom
from rota.prove.operation import Operation, OperationKind, UnknownOperationError
from rota.prove.state import LdsUse, WaveSet
from rota.prove.symbol import LANE, M32, Linear, Value, key_of
from rota.prove.widening import LaneAddresses, ProductState
from rota.targets.architecture import Architecture, BankRule


class Certainty(enum.Enum):
    """How much is known of the clocks that an instruction takes in LDS."""

    EXACT = "exact"
    AT_MOST = "at most: which lanes take part isn't known"
    NO_RULE = "no rule known for its width"
    UNALIGNED = "no rule known for addresses that aren't whole words"
    BY_DATA = "data chooses its addresses"
    UNREACHED = "the proof didn't reach it"

    @property
    def is_counted(self) -> bool:
        """True if clocks are known, or a bound of them."""
        return self in {Certainty.EXACT, Certainty.AT_MOST}


class BankClocks(NamedTuple):
    """What conflicts add for one wave: clocks, and the most words that lanes of one phase want of one bank."""

    extra: int
    ways: int


FREE = BankClocks(0, 1)


class BankBound(NamedTuple):
    """The fewest clocks of an access by its banks alone, and those that it would need with its words spread evenly."""

    clocks: int
    even: int


UNBOUND = BankBound(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsSite:
    """An LDS instruction and its conflicts.

    `free_clocks` are those that it takes without a conflict, one for each phase.  `worst` is what conflicts add in the
    worst wave and trip that the proof followed, `mean` the clocks that they add in the mean of waves.  Without a rule
    there is only the `bound` by the banks, of the worst wave and trip.
    """

    number: int
    instruction: Instruction
    verb: str
    width: int
    certainty: Certainty
    free_clocks: int = 0
    worst: BankClocks = FREE
    mean: float = 0.0
    bound: BankBound = UNBOUND

    @property
    def conflicts(self) -> bool:
        """True if lanes meet in a bank, or if one bank has more words to give than others."""
        return self.worst.extra > 0 or self.bound.clocks > self.bound.even


class _Seen(NamedTuple):
    """What one wave did at a site: conflicts of the lanes that may take part, and of those that surely do."""

    wave: int
    most: BankClocks
    least: BankClocks


class BankRecorder:
    """A `rota.prove.widening.Recorder` of the conflicts of each LDS instruction."""

    def __init__(self, operations: Sequence[Operation], architecture: Architecture) -> None:
        self._architecture, self._operations = architecture, operations
        self._word = architecture.register_bytes.value
        self._rules = {each.number: find_rule(each, architecture) for each in operations if accesses_lds(each)}
        self._known: set[Hashable] = set()
        self._counted: dict[Hashable, BankClocks] = {}
        self._seen: defaultdict[int, set[_Seen]] = defaultdict(set)
        self._bounds: dict[int, BankBound] = {}
        self._banks = max((each.banks.value for each in architecture.bank_rules), default=0)
        self._unknown: dict[int, Certainty] = {}

    def record_checkpoint(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        """Nothing to note."""

    def record_access(
        self, _: ProductState, wave_set: WaveSet, access: LdsUse, lanes: LaneAddresses | None = None
    ) -> None:
        if access.number not in self._rules or lanes is None:
            return
        key = (access.number, wave_set.waves, key_of(lanes.address), lanes.possible, lanes.certain)
        if key in self._known:
            return
        self._known.add(key)
        operation, waves = self._operations[access.number], wave_set.waves
        rows = find_rows(lanes.address, self._word, len(waves), self._architecture.lanes.value)
        rule = self._rules[access.number]
        if rows is None:
            self._unknown[access.number] = Certainty.BY_DATA
        elif rule is not None:
            self._count(rule, operation, waves, rows, lanes)
        elif self._banks:
            for row, certain in zip(rows, lanes.certain, strict=True):
                found = bound_clocks(self._banks, self._word, operation.extents, row, certain)
                self._bounds[access.number] = max(self._bounds.get(access.number, UNBOUND), found)

    def _count(
        self, rule: BankRule, operation: Operation, waves: tuple[int, ...], rows: Iterator[list[int]],
        lanes: LaneAddresses,
    ) -> None:  # fmt: skip
        near, number = operation.extents[0][0], operation.number
        for wave, row, possible, certain in zip(waves, rows, lanes.possible, lanes.certain, strict=True):
            places = [(each + near) & M32 for each in row]
            if any(each % self._word for lane, each in enumerate(places) if possible >> lane & 1):
                self._unknown.setdefault(number, Certainty.UNALIGNED)
                continue
            if not possible:  # this wave passes it without a lane
                continue
            most = self._count_wave(rule, places, possible)
            least = most if possible == certain else self._count_wave(rule, places, certain)
            self._seen[number].add(_Seen(wave, most, least))

    def _count_wave(self, rule: BankRule, places: list[int], active: int) -> BankClocks:
        key = (rule.read_bytes, rule.writes, active, tuple((each - places[0]) & M32 for each in places))
        found = self._counted.get(key)
        if found is None:
            found = self._counted[key] = count_conflicts(rule, self._word, places, active)
        return found

    def list_sites(self) -> tuple[LdsSite, ...]:
        """All instructions that access LDS, in the order of the listing, as far as the proof went."""
        return tuple(self._describe(each) for each in self._operations if accesses_lds(each))

    def list_extras(self, number: int) -> dict[int, frozenset[int]]:
        """By wave, the clocks that conflicts were seen to add to an instruction."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for each in self._seen.get(number, set()):
            found[each.wave].add(each.most.extra)
        return {wave: frozenset(extras) for wave, extras in found.items()}

    def _describe(self, operation: Operation) -> LdsSite:
        rule, seen = self._rules[operation.number], self._seen.get(operation.number, set())
        width = sum(size for _, size in operation.extents)
        free = 0 if rule is None else len(rule.phases)
        certainty = self._unknown.get(operation.number)
        if certainty is None and rule is None:
            certainty = Certainty.NO_RULE
        elif certainty is None:
            is_sure = all(each.most == each.least for each in seen)
            certainty = Certainty.UNREACHED if not seen else Certainty.EXACT if is_sure else Certainty.AT_MOST
        worst, mean = FREE, 0.0
        if certainty.is_counted:
            worst = max(each.most for each in seen)
            by_wave: defaultdict[int, list[int]] = defaultdict(list)
            for each in seen:
                by_wave[each.wave].append(each.most.extra)
            mean = sum(sum(some) / len(some) for some in by_wave.values()) / len(by_wave)
        return LdsSite(
            number=operation.number, instruction=operation.instruction, verb=operation.verb, width=width,
            certainty=certainty, free_clocks=free, worst=worst, mean=mean,
            bound=self._bounds.get(operation.number, UNBOUND) if certainty is Certainty.NO_RULE else UNBOUND,
        )  # fmt: skip


def accesses_lds(operation: Operation) -> bool:
    """True for an LDS instruction with an address; exchanges of lanes have none, loads to LDS write in lane order."""
    return operation.kind is OperationKind.LDS and bool(operation.extents)


def find_rule(operation: Operation, architecture: Architecture) -> BankRule | None:
    """How LDS serves an instruction; None where the machine doesn't state it, as of transposed or paired accesses."""
    access = operation.access
    if access is None or access.transposed or len(operation.extents) > 1 or operation.verb not in {"read", "write"}:
        return None
    return architecture.find_bank_rule(operation.extents[0][1], writes=operation.verb == "write")


def find_rows(address: Value, word: int, waves: int, lanes: int) -> Iterator[list[int]] | None:
    """The address of each lane, up to whole words that all lanes of a wave add; None if lanes differ by data."""
    offset: Value = address
    if isinstance(address, Linear):
        if address.base.spread == LANE or not _is_whole(address, word):
            return None
        offset = address.offset
    rows: list[list[int]] = np.broadcast_to(np.asarray(offset, np.int64), (waves, lanes)).tolist()
    return iter(rows)


def _is_whole(address: Linear, word: int) -> bool:
    """True if the unknown part is a multiple of a word."""
    low = address.base.bits & -address.base.bits or 1
    return low * (address.scale & -address.scale) % word == 0


def count_conflicts(rule: BankRule, word: int, places: Sequence[int], active: int) -> BankClocks:
    """What conflicts add to one wave's access at these places, of the active lanes."""
    extra, ways = 0, 1
    reach = range(0, rule.read_bytes, word)
    for phase in rule.phases:
        most = rule.count_turns((places[lane] + more) // word for lane in phase if active >> lane & 1 for more in reach)
        extra, ways = extra + most - 1, max(ways, most)
    return BankClocks(extra, ways)


def bound_clocks(
    banks: int, word: int, extents: Sequence[tuple[int, int]], places: Sequence[int], active: int
) -> BankBound:
    """The fewest clocks of an access by its banks alone: each serves one word a clock, whatever is served together."""
    words = {
        each
        for lane, place in enumerate(places)
        if active >> lane & 1
        for offset, size in extents
        for each in range((place + offset) // word, (place + offset + size - 1) // word + 1)
    }
    most = max(Counter(each % banks for each in words).values(), default=0)
    return BankBound(most, -(-len(words) // banks))


LINE_BYTES = 64  # what is counted as one line here: caches of these machines have lines of at least as many
_SCATTERED, _FEW = 2, 4  # times the lines that would hold the bytes; lines that are no matter
_Lane = dict[Monomial, int]


class TouchedLines(NamedTuple):
    """The lines of global memory that the lanes of a wave touch with one access, and the fewest that hold its bytes."""

    operation: Operation
    lines: int
    fewest: int

    @property
    def are_scattered(self) -> bool:
        return self.lines > _FEW and self.lines >= _SCATTERED * self.fewest


def find_lines(
    facts: KernelFacts, instructions: Sequence[Instruction], architecture: Architecture
) -> tuple[TouchedLines, ...]:
    """Of each access whose lanes' addresses differ by known bytes, the lines, as long as no sum wraps.

    Lanes whose addresses differ by an unknown number, such as a row's length, are taken to be on different lines.
    """
    if facts.workitem_ids:  # how lanes count in two dimensions, the block says
        return ()
    try:
        kernel = read_accesses(facts, instructions, architecture)
    except (RotaError, UnknownOperationError):
        return ()
    found, by_lane = [], _ByLane(kernel)
    for each in kernel.footprints:
        whole = each.base + each.offset
        if each.operation.kind is not OperationKind.VMEM or not whole.by_lane or not each.size:
            continue
        at = [by_lane.evaluate(whole, lane) for lane in range(architecture.lanes.value)]
        places = [value for value in at if value is not None]
        if len(places) == len(at):
            found.append(_count_lines(each.operation, each.size, places))
    return tuple(found)


def _count_lines(operation: Operation, size: int, places: Sequence[_Lane]) -> TouchedLines:
    lines, octets = set[object](), set[object]()
    for value in places:
        start = value.pop((), 0)
        apart = frozenset(value.items())
        octets |= {(apart, start + more) for more in range(size)}
        lines |= {(apart, (start + more) // LINE_BYTES) for more in range(size)}
    return TouchedLines(operation, len(lines), -(-len(octets) // LINE_BYTES))


@dataclass(frozen=True, slots=True)
class _ByLane:
    """Values of a kernel as a lane has them: products of what all lanes share, with their factors."""

    kernel: KernelAccesses
    starts: dict[Atom, Polynomial | None] = field(default_factory=dict)

    def evaluate(self, value: Polynomial, lane: int) -> _Lane | None:
        """None if what a lane adds to it isn't known."""
        total: _Lane = {}
        for factors, factor in value.terms:
            product: _Lane = {(): factor}
            for atom in factors:
                part = self._evaluate_atom(atom, lane)
                if part is None:
                    return None
                product = _multiply(product, part)
            for key, number in product.items():
                total[key] = total.get(key, 0) + number
        return {key: number for key, number in total.items() if number or not key}

    def _evaluate_atom(self, atom: Atom, lane: int) -> _Lane | None:
        if not atom.by_lane:
            return {(atom,): 1}
        if atom.op == "item":
            return {(): lane}
        if atom.op in {"carried", "wide carried"}:
            return self._evaluate_carried(atom, lane)
        inner = atom.args[0] if atom.args else None
        found = self.evaluate(inner, lane) if isinstance(inner, Polynomial) and atom.op in _FOLLOWED else None
        return found if found is None or atom.op in _KEPT else _divide(atom, found)

    def _evaluate_carried(self, atom: Atom, lane: int) -> _Lane | None:
        """What a loop carries is what it began with, and what each round adds; that must be the same in all lanes."""
        if atom not in self.starts:
            self.starts[atom] = None  # until it is known, for loops inside of loops
            self.starts[atom] = self._find_start(atom)
        start = self.starts[atom]
        found = None if start is None else self.evaluate(start, lane)
        return None if found is None else {**found, (atom,): 1}

    def _find_start(self, atom: Atom) -> Polynomial | None:
        flow, words = self.kernel.flow, self.kernel.words
        if atom.op == "carried":
            arms = [words.value(each) if each.part else each.whole for each in flow.arms_of(atom)]
        else:
            low, high = (flow.arms_of(each) for each in atom.args if isinstance(each, Atom))
            arms = [words.join(*each) for each in zip(low, high, strict=False)] if len(low) == len(high) else []
        own = of_atom(atom)
        return arms[0] if arms and not any((each - own).by_lane for each in arms[1:]) else None


def _multiply(one: _Lane, other: _Lane) -> _Lane:
    product: _Lane = {}
    for left, a in one.items():
        for right, b in other.items():
            key = tuple(sorted((*left, *right), key=lambda atom: atom.number))
            product[key] = product.get(key, 0) + a * b
    return product


_KEPT = frozenset({"narrow", "signed"})
_FOLLOWED = _KEPT | {"remainder", "quotient"}


def _divide(atom: Atom, inner: _Lane) -> _Lane | None:
    """A quotient or a remainder of a sum; None unless the divisor divides all that isn't known."""
    by, own = atom.args[1], inner.get((), 0)
    shared = {key: number for key, number in inner.items() if key}
    if not isinstance(by, int) or any(number % by for number in shared.values()):
        return None
    if atom.op == "remainder":
        return {(): own % by}
    return {**{key: number // by for key, number in shared.items()}, (): own // by}
