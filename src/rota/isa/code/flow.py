"""Where a kernel goes: takes a listing and the place where it starts, gives every place that it can come to.

A branch says where it goes; a call or return goes where a register says, which is followed as far as
`rota.isa.code.addresses` goes.  What can't be followed is named, and may then go to any function of the code object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rota.errors import Concern, Finding, IsaError
from rota.isa.code.addresses import State, behind, joined, jump_targets
from rota.isa.code.code_listing import CodeLine, CodeListing

_MOST_VISITS = 16  # of a place, on average: what real code needs is 1 to 4
_FREE_VISITS = 10_000
ENDS = frozenset({"s_endpgm", "s_endpgm_saved"})
"""Opcodes behind which a wave is over."""
_INDIRECT = frozenset({"s_setpc_b64", "s_swappc_b64"})
_NO_WAY_ON = ENDS | _INDIRECT | {"s_branch", "s_call_b64", "s_trap"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFlow:
    """The places that can be come to, the jumps that are not understood, and where the code shows nothing.

    `missing` are pairs of a place and where it leads: no instruction stands there.
    """

    places: frozenset[int]
    unresolved: tuple[int, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()


def derive_flow(listing: CodeListing, entry: int, functions: Iterable[int] = ()) -> CodeFlow:
    """Everything that can be come to from `entry`; `functions` are where a jump may go that isn't understood."""
    walk = _Walk(listing.lines)
    walk.start(entry)
    if walk.unresolved:
        for function in sorted(functions):
            walk.start(function)
    return CodeFlow(
        places=frozenset(place for place in walk.states if place in listing.lines),
        unresolved=tuple(sorted(walk.unresolved)),
        missing=tuple(sorted(walk.missing)),
    )


def falls_through(opcode: str) -> bool:
    """Can the next thing be what stands behind it?  A call comes back there by a jump of its own."""
    return opcode not in _NO_WAY_ON


def _endless_search(lines: Mapping[int, CodeLine], place: int) -> IsaError:
    line = lines.get(place)
    near = () if line is None else (Concern(label=line.text, index=line.number, role="line of the listing"),)
    return IsaError(
        Finding(
            code="I131",
            message="where its jumps lead is not found within the time allowed for it",
            concerns=near,
            evidence=(("instructions", len(lines)), ("visits", _FREE_VISITS + _MOST_VISITS * len(lines))),
        )
    )


class _Walk:
    """What the registers may hold at each place, until nothing new is found."""

    def __init__(self, lines: Mapping[int, CodeLine]) -> None:
        self._lines = lines
        self._plain = not any(line.opcode in _INDIRECT for line in lines.values())  # then no register matters
        self._returns: set[int] = set()
        self.states: dict[int, State] = {}
        self.missing: set[tuple[int, int]] = set()
        self.unresolved: set[int] = set()
        self._left = _FREE_VISITS + _MOST_VISITS * len(lines)

    def start(self, place: int) -> None:
        """Goes on from a place of which nothing is known, and from behind calls whose return isn't understood."""
        self._go({place: {}})
        while late := sorted(self._returns - self.states.keys()):
            self._go({late[0]: {}})

    def _go(self, work: dict[int, State]) -> None:
        while work:
            place, state = work.popitem()
            self._left -= 1
            if self._left < 0:
                raise _endless_search(self._lines, place)
            known = self.states.get(place)
            now = state if known is None else joined(known, state)
            if now == known:
                continue
            self.states[place] = now
            line = self._lines.get(place)
            if line is None:
                continue
            after = {} if self._plain else behind(line, now)
            for to in self._successors(line, place, now):
                if to not in self._lines:
                    self.missing.add((place, to))
                else:
                    work[to] = joined(work[to], after) if to in work else after

    def _successors(self, line: CodeLine, place: int, state: State) -> list[int]:
        opcode = line.opcode
        if opcode in {"s_swappc_b64", "s_call_b64"}:
            self._returns.add(line.follows)
        if opcode in _INDIRECT:
            targets = jump_targets(line, state)
            (self.unresolved.add if targets is None else self.unresolved.discard)(place)
            return sorted(targets or ())
        jumps = [] if line.target is None else [line.target]
        return [*jumps, line.follows] if falls_through(opcode) else jumps
