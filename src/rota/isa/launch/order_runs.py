"""One launch under many orders: takes their outcomes, gives each finding once, and where results depend on the order.

The outcome of the first order is the one that the others are compared with, byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Concern, Finding, IsaError, Severity, several
from rota.isa.launch.buffer_names import with_buffers
from rota.isa.launch.host_memory import HostSpan, Region, place_of
from rota.isa.races.alike import cause_of, more_like_it, stretches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.decoded import KernelProgram
    from rota.isa.launch.run import KernelOutcome

_SUMS = re.compile(r"^(?:ds|(?:buffer|global|flat)_atomic)_(?:pk_)?add_(?:rtn_)?b?f\d+")
_TICKETS = re.compile(r"^ds_\w+_rtn_|_atomic_")
_MOST_LABELS = 3
_SEEN, _HERE, _NOT_HERE = "seen", "in this order: ", "not in this order: "  # as a race says of the order it is found in


@dataclass(slots=True, kw_only=True)
class _Seen:
    finding: Finding
    labels: list[str]
    met: int = 0  # orders in which it did harm, not only could have


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """What a launch under several orders showed.

    Each finding says in its evidence in how many orders it was seen; `seen` has the labels of those orders, for each
    finding in turn.  `notes` are legal and yet worth a look.
    """

    findings: tuple[Finding, ...]
    seen: tuple[tuple[str, ...], ...]
    notes: tuple[Finding, ...]
    orders: tuple[str, ...]
    instructions: int

    @property
    def ok(self) -> bool:
        """Was nothing wrong in any order?"""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def raise_findings(self) -> None:
        """Raises what was wrong, if anything was."""
        if not self.ok:
            raise IsaError(*(finding for finding in self.findings if finding.severity is Severity.ERROR))

    def __str__(self) -> str:
        ran = f"{several(len(self.orders), 'order')}, {several(self.instructions, 'instruction')}"
        return "\n\n".join([f"{ran}, {several(len(self.findings), 'finding')}", *map(str, self.findings)])


@dataclass(slots=True, kw_only=True)
class OrderRuns:
    """What was seen so far."""

    program: KernelProgram
    spans: Mapping[int, HostSpan]
    regions: Sequence[Region]
    orders: list[str] = field(default_factory=list)
    instructions: int = 0
    first: KernelOutcome | None = None  # what the others are compared with
    _seen: dict[tuple[Any, ...], _Seen] = field(default_factory=dict)

    def add(self, label: str, outcome: KernelOutcome) -> None:
        """One more order, with what it found and what it computed."""
        self.orders.append(label)
        self.instructions += outcome.instructions
        self._note(label, (*outcome.findings, *outcome.notes))
        if self.first is None:
            self.first = outcome
        else:
            self._note(label, self._differences(self.first.buffers, outcome.buffers))

    def broke(self, label: str, error: IsaError) -> None:
        """One more order, which didn't come to its end."""
        self.orders.append(label)
        self._note(label, error.findings)

    def add_finding(self, finding: Finding) -> None:
        """What was found about the launch itself."""
        self._note(self.orders[0], (finding,))

    def result(self) -> LaunchResult:
        """All of it: errors first, each with the orders that showed it."""
        ranks = [*Severity]
        seen = sorted(self._grouped(), key=lambda each: ranks.index(each.finding.severity))
        told = [each for each in seen if each.finding.severity is not Severity.NOTE]
        return LaunchResult(
            findings=tuple(map(self._counted, told)),
            seen=tuple(tuple(each.labels) for each in told),
            notes=tuple(self._counted(each) for each in seen if each.finding.severity is Severity.NOTE),
            orders=tuple(self.orders),
            instructions=self.instructions,
        )

    def _grouped(self) -> list[_Seen]:
        """Races that are alike are one: the first of those that did harm, with the number of the others."""
        if len(self._seen) < 2:  # which every clean launch comes to
            return [*self._seen.values()]
        stretch = stretches([step.instruction for step in self.program.steps])
        groups: dict[Hashable, list[_Seen]] = {}
        for number, each in enumerate(self._seen.values()):
            cause = cause_of(each.finding, stretch)
            groups.setdefault(number if cause is None else cause, []).append(each)
        return [alike[0] if len(alike) == 1 else _one(alike) for alike in groups.values()]

    def _note(self, label: str, findings: Sequence[Finding]) -> None:
        for finding in map(self._with_arguments, findings):
            ends = tuple(concern.index for concern in finding.concerns)
            key = (finding.code, ends or finding.message)
            seen = self._seen.setdefault(key, _Seen(finding=finding, labels=[]))
            if label not in seen.labels:
                seen.labels.append(label)
                if str(dict(finding.evidence).get(_SEEN, "")).startswith(_HERE):
                    seen.finding = finding if not seen.met else seen.finding
                    seen.met += 1

    def _with_arguments(self, finding: Finding) -> Finding:
        """Names arguments instead of buffers, which are what they lie in."""
        return with_buffers(finding, self._buffer)

    def _buffer(self, number: int) -> str:
        if number >= len(self.regions):
            return ("the kernarg segment", "the dispatch packet")[min(number - len(self.regions), 1)]
        region = self.regions[number]
        inside = [key for key, span in self.spans.items() if region.low <= span.start < region.low + len(region.octets)]
        return "argument " + " and ".join(f"{key} ({self._name(key)})" for key in inside)

    def _counted(self, seen: _Seen) -> Finding:
        names = "; ".join(seen.labels[:_MOST_LABELS]) + ("; ..." if len(seen.labels) > _MOST_LABELS else "")
        shown = "all" if len(seen.labels) == len(self.orders) else f"{len(seen.labels)} of {len(self.orders)}: {names}"
        harm = f"in {seen.met or 'none'} of {several(len(self.orders), 'order')}: "
        told = dict(seen.finding.evidence)
        if _SEEN in told:
            told[_SEEN] = harm + str(told[_SEEN]).removeprefix(_HERE).removeprefix(_NOT_HERE)
        return replace(seen.finding, evidence=(*told.items(), ("orders", shown)))

    def _differences(self, first: Sequence[NDArray[Any]], now: Sequence[NDArray[Any]]) -> list[Finding]:
        if all(np.array_equal(a, b) for a, b in zip(first, now, strict=True)):
            return []
        return [
            finding for number, span in self.spans.items() for finding in self._difference(number, span, first, now)
        ]

    def _difference(
        self, number: int, span: HostSpan, first: Sequence[NDArray[Any]], now: Sequence[NDArray[Any]]
    ) -> Iterator[Finding]:
        place = place_of(span, self.regions)
        if place is None:
            return
        a, b = (_shown(span, buffers[place[0]], self.regions[place[0]].low) for buffers in (first, now))
        differ = a.view(np.uint8).reshape(*a.shape, -1) != b.view(np.uint8).reshape(*b.shape, -1)
        elements = differ.any(axis=-1)
        if not elements.any():
            return
        where = tuple(int(each) for each in np.argwhere(elements)[0])
        severity, why = weight_of([step.instruction.opcode for step in self.program.steps])
        yield Finding(
            code="I122",
            message=f"argument {number} differs from order to order",
            severity=severity,
            concerns=(Concern(label=self._name(number), index=number, role="argument"),),
            evidence=(
                ("elements", f"{int(elements.sum())} of {elements.size}, the first at {where}"),
                *((("largest difference", _largest(a, b)),) if span.numbers is not None else ()),
                *((("because", why),) if why else ()),
            ),
        )

    def _name(self, number: int) -> str:
        declared = [argument for argument in self.program.facts.arguments if not argument.hidden]
        return declared[number].name if number < len(declared) else f"arg{number}"


def _one(alike: Sequence[_Seen]) -> _Seen:
    shown = next((each for each in alike if each.met), alike[0])
    labels = dict.fromkeys(label for each in alike for label in each.labels)
    more = ("more like it", more_like_it([each.finding for each in alike]))
    finding = replace(shown.finding, evidence=(*shown.finding.evidence, more))
    return _Seen(finding=finding, labels=[*labels], met=shown.met)


def weight_of(opcodes: Sequence[str]) -> tuple[Severity, str]:
    """How bad it is that outputs differ: sums of floats depend on their order, and so may who draws which ticket."""
    if any(map(_SUMS.search, opcodes)):
        return Severity.NOTE, "atomic sums of floats are rounded in the order in which they come"
    if any(map(_TICKETS.search, opcodes)):
        return Severity.WARNING, "the kernel has atomics, whose order it may well pass on"
    return Severity.ERROR, ""


def _shown(span: HostSpan, octets: NDArray[Any], low: int) -> NDArray[Any]:
    """An argument as it lies in a copy of its region, contiguous; plain bytes if NumPy has no name for its type."""
    if span.numbers is None:
        return octets[span.low - low : span.high - low].copy()
    array = span.numbers
    view: NDArray[Any] = np.ndarray(array.shape, array.dtype, octets.data, span.start - low, array.strides)
    return np.ascontiguousarray(np.atleast_1d(view))


def _largest(a: NDArray[Any], b: NDArray[Any]) -> str:
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    one, other = a.astype(kind), b.astype(kind)
    if (np.isnan(one) != np.isnan(other)).any():
        return "some are numbers in one order only"
    return f"{float(np.nanmax(np.abs(one - other), initial=0.0)):.3g}"
