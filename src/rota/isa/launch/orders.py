"""One launch under many orders: each finding once, and where results depend on the order.

The other orders are compared with the first, byte by byte.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.errors import Concern, Finding, IsaError, Severity, several
from rota.isa.decoded import KernelProgram
from rota.isa.launch.interleaving import Interleaving
from rota.isa.launch.processes import MIN_FORK_SECONDS, Tell, run_forked
from rota.isa.launch.run import KernelOutcome, rename_buffers
from rota.isa.opcodes import MemSpace, MemVerb, Opcode
from rota.isa.races import cause_of, number_stretches, summarise_races

# Arguments. A kernel sees memory, not arrays: two arguments that overlap are one region, a view reaches from its first
# byte to its last, and an address keeps its place within 256 bytes, because compilers specialise kernels on it. NumPy
# arrays of any dtype, objects with the buffer or array protocol, and CPU tensors of torch (which is never imported) are
# accepted.

SKEW = 256  # addresses on the device and on the host are equal modulo this


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpan:
    """One array: its first element, its bytes, whether they may be written, and how to show them."""

    start: int  # address of the first element
    low: int
    high: int
    writeable: bool
    owner: Any  # keeps the memory alive
    numbers: NDArray[Any] | None  # the array, if NumPy has a name for its type


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Memory that one array, or several overlapping ones, lie in."""

    low: int
    octets: NDArray[np.uint8]
    writeable: bool


def is_array(value: object) -> bool:
    """True if a kernel gets it by address; numbers, NumPy scalars and plain bytes go by value."""
    if isinstance(value, bool | int | float | complex | bytes | str | np.generic) or value is None:
        return False
    if isinstance(value, np.ndarray) or _is_tensor(value) or hasattr(value, "__array_interface__"):
        return True
    try:
        memoryview(value)  # type: ignore[arg-type]  # asked, not known
    except TypeError:
        return False
    return True


def span_of(value: Any, name: str) -> HostSpan:  # noqa: ANN401  # an array of anyone's
    if _is_tensor(value):
        return _tensor_span(value, name)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.hasobject:
        raise _refuse(name, f"an array of {array.dtype}, which no kernel can read")
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)
    numbers = array if array.dtype.kind in "biufc" or array.dtype.name.startswith(("bfloat", "float")) else None
    return HostSpan(
        start=array.ctypes.data, low=low, high=high, writeable=array.flags.writeable, owner=array, numbers=numbers
    )


def regions_of(spans: Sequence[HostSpan]) -> tuple[Region, ...]:
    """Joins spans that overlap; keeps the order in which they are given."""
    found: list[tuple[int, int, bool]] = []
    for span in sorted(spans, key=lambda span: (span.low, span.high)):
        if span.low == span.high:
            continue
        if found and span.low < found[-1][1]:
            low, high, writeable = found[-1]
            found[-1] = low, max(high, span.high), writeable and span.writeable
        else:
            found.append((span.low, span.high, span.writeable))
    first = {low: min(number for number, span in enumerate(spans) if low <= span.low < high) for low, high, _ in found}
    found.sort(key=lambda each: first[each[0]])
    regions = []
    for low, high, writeable in found:  # views of the memory itself; the spans keep its owners alive
        octets = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
        regions.append(Region(low=low, octets=octets, writeable=writeable))
    return tuple(regions)


def place_of(span: HostSpan, regions: Sequence[Region]) -> tuple[int, int] | None:
    """The region of a span's first element and the offset inside; None for an empty array."""
    if span.low == span.high:
        return None
    for number, region in enumerate(regions):
        if region.low <= span.start < region.low + len(region.octets):
            return number, span.start - region.low
    raise AssertionError("every span lies in a region")


def _is_tensor(value: object) -> bool:
    return all(hasattr(value, name) for name in ("data_ptr", "element_size", "stride", "shape", "device"))


def _tensor_span(tensor: Any, name: str) -> HostSpan:  # noqa: ANN401  # a tensor of torch, which isn't imported
    where = getattr(tensor.device, "type", str(tensor.device))
    if where != "cpu":
        raise _refuse(name, f"a tensor on device {where!r}; kernels run on the CPU here")
    start, size = tensor.data_ptr(), tensor.element_size()
    reach = sum((length - 1) * step for length, step in zip(tensor.shape, tensor.stride(), strict=True))
    high = start + (reach + 1) * size if 0 not in tensor.shape else start  # strides of tensors are never negative
    try:
        numbers: NDArray[Any] | None = tensor.detach().numpy()
    except (AttributeError, TypeError, RuntimeError):  # a type that NumPy has no name for, such as bfloat16
        numbers = None
    return HostSpan(start=start, low=start, high=high, writeable=True, owner=tensor, numbers=numbers)


def _refuse(name: str, why: str) -> IsaError:
    message = f"argument {name} can't be passed to a kernel"
    fixes = ("pass a NumPy array, a CPU tensor, or anything with the buffer protocol",)
    return IsaError.of("I107", message, evidence=(("given", why),), fixes=fixes)


# Running the orders. The first runs alone; if it took long, processes share the others or, if those are few, their
# workgroups. The results are the same in any case.

Ran = KernelOutcome | IsaError  # an error is what stopped an order before its end


def run_orders(
    dispatch: Callable[..., KernelOutcome], orders: Sequence[Interleaving], count: int, processes: int, tell: Tell
) -> Iterator[tuple[Interleaving, Ran]]:
    """Each order with its outcome, up to the first that didn't end; `tell` gets the workgroups ended in all orders."""
    began = perf_counter()
    first = _run_order(dispatch, orders[0], processes, tell)
    yield orders[0], first
    if isinstance(first, IsaError):
        return
    rest = orders[1:]
    ready: list[Ran | None] = [None] * len(rest)
    if processes > 1 and len(rest) >= processes and perf_counter() - began > MIN_FORK_SECONDS / 2:
        work = [partial(_run_in_child, dispatch, order, first) for order in rest]
        ready = run_forked(work, processes, lambda done: tell(count + done))
    for number, (order, found) in enumerate(zip(rest, ready, strict=True), 1):
        if found is None:  # no other process ran it, or it was killed
            found = _run_order(dispatch, order, processes, lambda ended: tell(number * count + ended))  # noqa: B023, PLW2901
        if isinstance(found, KernelOutcome) and not found.buffers:
            found = replace(found, buffers=first.buffers)  # noqa: PLW2901
        yield order, found
        if isinstance(found, IsaError):
            return


def _run_order(dispatch: Callable[..., KernelOutcome], order: Interleaving, processes: int, tell: Tell) -> Ran:
    try:
        return dispatch(interleaving=order, processes=processes, ended=tell)
    except IsaError as error:
        return error


def _run_in_child(
    dispatch: Callable[..., KernelOutcome], order: Interleaving, first: KernelOutcome, tell: Tell
) -> Ran:  # pragma: no cover  # in another process
    """Leaves out buffers that equal the first order's, because sending them may be expensive."""
    found = _run_order(dispatch, order, 1, tell)
    if isinstance(found, IsaError):
        return IsaError(*found.findings)  # without the frames it came through
    same = all(np.array_equal(a, b) for a, b in zip(found.buffers, first.buffers, strict=True))
    return replace(found, buffers=()) if same else found


_SUMS = frozenset({"add_f32", "add_f64", "pk_add_f16", "pk_add_bf16"})
_MOST_LABELS = 3
_SEEN, _HERE, _NOT_HERE = "seen", "in this order: ", "not in this order: "  # as a race says of the order it is found in


@dataclass(slots=True, kw_only=True)
class _Seen:
    finding: Finding
    labels: list[str]
    met: int = 0  # orders in which it did harm


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """The findings of a launch under several orders.

    Each finding says in its evidence how many orders showed it; `seen` has the labels of those orders for each finding.
    `notes` are legal but worth a look.
    """

    findings: tuple[Finding, ...]
    seen: tuple[tuple[str, ...], ...]
    notes: tuple[Finding, ...]
    orders: tuple[str, ...]
    instructions: int

    @property
    def ok(self) -> bool:
        """True if no order showed an error."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def raise_findings(self) -> None:
        """Raises `IsaError` with the errors, if there are any."""
        if not self.ok:
            raise IsaError(*(finding for finding in self.findings if finding.severity is Severity.ERROR))

    def __str__(self) -> str:
        ran = f"{several(len(self.orders), 'order')}, {several(self.instructions, 'instruction')}"
        return "\n\n".join([f"{ran}, {several(len(self.findings), 'finding')}", *map(str, self.findings)])


@dataclass(slots=True, kw_only=True)
class OrderRuns:
    program: KernelProgram
    spans: Mapping[int, HostSpan]
    regions: Sequence[Region]
    orders: list[str] = field(default_factory=list)
    instructions: int = 0
    first: KernelOutcome | None = None  # what the others are compared with
    _seen: dict[tuple[Any, ...], _Seen] = field(default_factory=dict)

    def add(self, label: str, outcome: Ran) -> None:
        self.orders.append(label)
        if isinstance(outcome, IsaError):
            self._note(label, outcome.findings)
            return
        self.instructions += outcome.instructions
        self._note(label, (*outcome.findings, *outcome.notes))
        if self.first is None:
            self.first = outcome
        else:
            self._note(label, self._compare(self.first.buffers, outcome.buffers))

    def add_findings(self, findings: Sequence[Finding]) -> None:
        self._note(self.orders[0], findings)

    def result(self) -> LaunchResult:
        ranks = [*Severity]
        seen = sorted(self._merge_causes(), key=lambda each: ranks.index(each.finding.severity))
        findings = [each for each in seen if each.finding.severity is not Severity.NOTE]
        return LaunchResult(
            findings=tuple(map(self._count_orders, findings)),
            seen=tuple(tuple(each.labels) for each in findings),
            notes=tuple(self._count_orders(each) for each in seen if each.finding.severity is Severity.NOTE),
            orders=tuple(self.orders),
            instructions=self.instructions,
        )

    def _merge_causes(self) -> list[_Seen]:
        """Merges races with one cause into the first that did harm, with the number of the others."""
        if len(self._seen) < 2:  # as in every clean launch
            return [*self._seen.values()]
        stretch = number_stretches([step.instruction for step in self.program.steps])
        groups: dict[Hashable, list[_Seen]] = {}
        for number, each in enumerate(self._seen.values()):
            cause = cause_of(each.finding, stretch)
            groups.setdefault(number if cause is None else cause, []).append(each)
        merged = []
        for alike in groups.values():
            shown = next((each for each in alike if each.met), alike[0])
            if len(alike) > 1:
                labels = dict.fromkeys(label for each in alike for label in each.labels)
                more = ("more like it", summarise_races([each.finding for each in alike]))
                finding = replace(shown.finding, evidence=(*shown.finding.evidence, more))
                shown = _Seen(finding=finding, labels=[*labels], met=shown.met)
            merged.append(shown)
        return merged

    def _note(self, label: str, findings: Sequence[Finding]) -> None:
        for found in findings:
            finding = rename_buffers(found, self._buffer)
            ends = tuple(concern.index for concern in finding.concerns)
            key = (finding.code, ends or finding.message)
            seen = self._seen.setdefault(key, _Seen(finding=finding, labels=[]))
            if label not in seen.labels:
                seen.labels.append(label)
                if str(dict(finding.evidence).get(_SEEN, "")).startswith(_HERE):
                    seen.finding = finding if not seen.met else seen.finding
                    seen.met += 1

    def _buffer(self, number: int) -> str:
        if number >= len(self.regions):
            return ("the kernarg segment", "the dispatch packet")[min(number - len(self.regions), 1)]
        region = self.regions[number]
        inside = [key for key, span in self.spans.items() if region.low <= span.start < region.low + len(region.octets)]
        return "argument " + " and ".join(f"{key} ({self._name(key)})" for key in inside)

    def _count_orders(self, seen: _Seen) -> Finding:
        names = "; ".join(seen.labels[:_MOST_LABELS]) + ("; ..." if len(seen.labels) > _MOST_LABELS else "")
        shown = "all" if len(seen.labels) == len(self.orders) else f"{len(seen.labels)} of {len(self.orders)}: {names}"
        harm = f"in {seen.met or 'none'} of {several(len(self.orders), 'order')}: "
        evidence = dict(seen.finding.evidence)
        if _SEEN in evidence:
            evidence[_SEEN] = harm + str(evidence[_SEEN]).removeprefix(_HERE).removeprefix(_NOT_HERE)
        return replace(seen.finding, evidence=(*evidence.items(), ("orders", shown)))

    def _compare(self, first: Sequence[NDArray[Any]], now: Sequence[NDArray[Any]]) -> list[Finding]:
        if all(np.array_equal(a, b) for a, b in zip(first, now, strict=True)):
            return []
        severity, why = weight_of([step.instruction.spec for step in self.program.steps])
        found = []
        for number, span in self.spans.items():
            if (place := place_of(span, self.regions)) is None:
                continue
            a, b = (_view_argument(span, buffers[place[0]], self.regions[place[0]].low) for buffers in (first, now))
            differ = a.view(np.uint8).reshape(*a.shape, -1) != b.view(np.uint8).reshape(*b.shape, -1)
            elements = differ.any(axis=-1)
            if not elements.any():
                continue
            where = tuple(int(each) for each in np.argwhere(elements)[0])
            message = f"the contents of argument {number} depend on the order of waves"
            concerns = (Concern(label=self._name(number), index=number, role="argument"),)
            evidence = (
                ("elements", f"{int(elements.sum())} of {elements.size}, the first at {where}"),
                *((("largest difference", _largest_difference(a, b)),) if span.numbers is not None else ()),
                *((("because", why),) if why else ()),
            )
            found.append(Finding("I122", message, severity=severity, concerns=concerns, evidence=evidence))
        return found

    def _name(self, number: int) -> str:
        declared = [argument for argument in self.program.facts.arguments if not argument.hidden]
        return declared[number].name if number < len(declared) else f"arg{number}"


def weight_of(opcodes: Sequence[Opcode]) -> tuple[Severity, str]:
    """How bad differing outputs are: float sums depend on their order, and so may the order of tickets."""
    atomics = [each.access for each in opcodes if each.access is not None and each.access.verb is MemVerb.ATOMIC]
    if any(each.atomic in _SUMS for each in atomics):
        return Severity.NOTE, "atomic sums of floats are rounded in the order of their arrival"
    if any(each.returns or each.space is not MemSpace.LDS for each in atomics):
        return Severity.WARNING, "the kernel has atomics, and its outputs may depend on their order"
    return Severity.ERROR, ""


def _view_argument(span: HostSpan, octets: NDArray[Any], low: int) -> NDArray[Any]:
    """An argument in a copy of its region, contiguous; plain bytes if NumPy lacks its type."""
    if span.numbers is None:
        return octets[span.low - low : span.high - low].copy()
    array = span.numbers
    view: NDArray[Any] = np.ndarray(array.shape, array.dtype, octets.data, span.start - low, array.strides)
    return np.ascontiguousarray(np.atleast_1d(view))


def _largest_difference(a: NDArray[Any], b: NDArray[Any]) -> str:
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(kind), b.astype(kind)
    if (np.isnan(a) != np.isnan(b)).any():
        return "some are numbers in one order only"
    return f"{float(np.nanmax(np.abs(a - b), initial=0.0)):.3g}"
