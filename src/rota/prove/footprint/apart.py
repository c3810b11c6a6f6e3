"""Whether two workgroups access the same bytes, one of them writing.

Each pair of accesses of one pointer is asked about, with the numbers of another workgroup beside those of this one:
arguments are the same, workgroup numbers differ in some axis, and all else is any.  Where an address is a product of an
argument and a row, the rows of the two may be the same, or one is the larger: each case is asked about by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement, product
from types import MappingProxyType

from rota.errors import Finding, IsaError, Severity
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.footprint.accesses import Footprint, KernelAccesses, list_cases
from rota.prove.footprint.known_sums import MADE, PRIME, Contract, KnownSums, in_range, inequalities_of, rebuild
from rota.prove.footprint.polynomial import Atom, Monomial, Polynomial, number, of_atom, substitute

_SHARED = frozenset({"argument", "word of arguments", "launch", "kernarg", "stated"})  # by all workgroups
NOTHING_SAME: Mapping[str, str] = MappingProxyType({})
_MOST_PAIRS = 2000
_MOST_ROWS = 2  # products of arguments, of which each makes three cases


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBytes:
    """Two accesses, of which it isn't shown that different workgroups access different bytes."""

    one: Footprint
    other: Footprint


def find_overlaps(
    kernel: KernelAccesses, contract: Contract, same: Mapping[str, str] = NOTHING_SAME
) -> tuple[SharedBytes, ...]:
    """Pairs of accesses that may be of one pointer, one of them a write, and aren't shown to be apart.

    Pointers of different arguments lead to separate memory, but those that are the `same` as another one.
    """
    judge = _Judge(kernel, contract)
    accesses = [judge.of_one_pointer(each, same) for each in kernel.footprints if not each.is_argument]
    found = []
    for one, other in combinations_with_replacement(accesses, 2):
        separate = one.pointer != other.pointer and all(map(judge.is_argument, (one.pointer, other.pointer)))
        harmless = separate or {one.verb, other.verb} in ({"read"}, {"atomic"})
        if not harmless and not judge.are_apart(one, other):
            found.append(SharedBytes(one=one, other=other))
    return tuple(found)


class _Judge:
    def __init__(self, kernel: KernelAccesses, contract: Contract) -> None:
        self._words, self._contract = kernel.words, contract
        self._primed: dict[Atom, Polynomial] = {}
        self._axes = [each for each in kernel.words.atoms.every() if each.op == "workgroup" and each.text[-1] != PRIME]
        self._known: dict[object, bool] = {}
        self._live: dict[Footprint, list[Footprint]] = {}

    def is_argument(self, pointer: str) -> bool:
        """True for a pointer that the caller gives: two of them lead to separate memory."""
        return self._words.atoms.find("argument", (pointer,)) is not None

    def of_one_pointer(self, access: Footprint, same: Mapping[str, str]) -> Footprint:
        """The access, counted from the pointer that its own is the same as."""
        find = self._words.atoms.find
        pointers = {find("argument", (one,)): find("argument", (other,)) for one, other in same.items()}
        base = substitute(access.base, lambda atom: of_atom(pointers.get(atom) or atom))
        return replace(access, base=base, pointer=same.get(access.pointer, access.pointer))

    def are_apart(self, one: Footprint, other: Footprint) -> bool:
        key = (one.base, one.offset, one.active, one.known, other.base, other.offset, other.active, other.known,
               one.size, other.size)  # fmt: skip
        if key not in self._known:
            if len(self._known) == _MOST_PAIRS:
                message = f"more than {_MOST_PAIRS:,} pairs of accesses would have to be kept apart"
                raise IsaError.of("I402", message, fixes=("ask without --apart",))
            cases = list(product(self._list_live(one), self._list_live(other)))
            self._known[key] = bool(self._axes) and all(
                self._apart_if(*case, axis, sign) for case in cases for axis in self._axes for sign in (1, -1)
            )
        return self._known[key]

    def _apart_if(self, one: Footprint, other: Footprint, axis: Atom, sign: int) -> bool:
        """True if they are apart where the other workgroup is beyond this one, or before it, in an axis."""
        beyond = (self._prime(of_atom(axis)) - of_atom(axis)).times(sign) - number(1)
        mine, others = one.active.parts | one.known, other.active.parts | other.known
        known = chain(self._contract.relations, *(inequalities_of(each, others) for each in others))
        primed = map(self._prime, known)
        facts = KnownSums(self._words, self._contract, mine, (beyond, *primed))
        here = facts.resolve(one.base + one.offset)
        there = facts.resolve(self._prime(other.base + other.offset))
        rows = list(_rows_of(there - here))[:_MOST_ROWS]
        for signs in product((-1, 0, 1), repeat=len(rows)):
            case = facts.with_facts(tuple(_cases(rows, signs)))
            away = there - here
            if not (
                case.is_never_negative(away - number(one.size))
                or case.is_never_negative(number(0) - away - number(other.size))
                or case.is_never_negative(number(-1))  # it doesn't happen
            ):
                return False
        return True

    def _list_live(self, access: Footprint) -> list[Footprint]:
        """The cases of an access, but for those in which its buffer's range drops it."""
        if access not in self._live:
            self._live[access] = [each for each in list_cases(access, self._words) if not self._is_dropped(each)]
        return self._live[access]

    def _is_dropped(self, access: Footprint) -> bool:
        facts = KnownSums(self._words, self._contract, access.active.parts | access.known)
        kept = in_range(access, lambda room: facts.is_never_negative(facts.resolve(room)))
        return bool(kept) and facts.with_facts(kept).is_never_negative(number(-1))

    def _prime(self, whole: Polynomial) -> Polynomial:
        """The number that the other workgroup has."""
        return substitute(whole, self._prime_atom)

    def _prime_atom(self, atom: Atom) -> Polynomial:
        if atom.op in _SHARED:
            return of_atom(atom)
        if atom not in self._primed:
            is_made = atom.op in MADE
            self._primed[atom] = rebuild(self._words, atom, self._prime) if is_made else self._prime_leaf(atom)
        return self._primed[atom]

    def _prime_leaf(self, atom: Atom) -> Polynomial:
        op = atom.op if atom.op in {"workgroup", "item"} else f"{atom.op}{PRIME}"
        return self._words.atoms.make(op, (*atom.args, PRIME), atom.text + PRIME, atom.bounds, by_lane=atom.by_lane)


def _rows_of(away: Polynomial) -> Iterator[Polynomial]:
    """What arguments are multiplied with in the distance of two addresses."""
    found: dict[Monomial, dict[Monomial, int]] = {}
    for factors, factor in away.terms:
        strides = tuple(each for each in factors if each.op in _SHARED)
        if strides:
            row = tuple(each for each in factors if each.op not in _SHARED)
            found.setdefault(strides, {})[row] = factor
    for terms in found.values():
        scale = min(map(abs, terms.values()))
        if () not in terms and all(factor % scale == 0 for factor in terms.values()):
            yield Polynomial(tuple((row, factor // scale) for row, factor in terms.items()))


def _cases(rows: Sequence[Polynomial], signs: Sequence[int]) -> Iterator[Polynomial]:
    for row, sign in zip(rows, signs, strict=True):
        if sign:
            yield row.times(sign) - number(1)
        else:
            yield row
            yield row.times(-1)


def report_overlap(each: SharedBytes) -> Finding:
    verbs = f"{each.one.verb} and {each.other.verb}" if each.one.verb != each.other.verb else f"both {each.one.verb}"
    return Finding(
        "I503",
        f"nothing that is known keeps the bytes of {each.one.pointer} apart that two workgroups {verbs}",
        concerns=(
            each.one.operation.instruction.concern(),
            each.other.operation.instruction.concern(role="the other one"),
        ),
        evidence=(
            (LEVEL, EvidenceLevel.UNDECIDED.value),
            (UNDECIDED, "whether two workgroups reach the same address"),
            ("address", each.one.formula),
            ("other address", each.other.formula),
        ),
        fixes=("state ranges of what the addresses are made of: --range n=0..65536",),
        severity=Severity.WARNING,
    )
