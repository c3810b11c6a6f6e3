"""How many lines of global memory the lanes of a wave touch with one access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.errors import RotaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.prove.footprint.accesses import KernelAccesses, read_accesses
from rota.prove.footprint.polynomial import Atom, Monomial, Polynomial, of_atom
from rota.prove.operation import Operation, OperationKind, UnknownOperationError
from rota.targets.architecture import Architecture

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
