"""A kernel that can be launched: takes arguments, a grid and a block, gives what went wrong under many orders.

Arrays are written in place, as on a GPU.  The first order's results are kept; the others work on copies, and what they
compute must be the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Concern, Finding, IsaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.launch.dispatch import waves_of
from rota.isa.launch.forked import processes_of
from rota.isa.launch.host_memory import SKEW, HostSpan, Region, is_array, place_of, regions_of, span_of
from rota.isa.launch.interleaving import Interleaving, some_interleavings
from rota.isa.launch.kernarg import Pointer, Triple, Value
from rota.isa.launch.order_runs import LaunchResult, OrderRuns
from rota.isa.launch.outcomes import outcomes
from rota.isa.launch.run import KernelOutcome, run_dispatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.decoded import KernelProgram

Progress = Callable[[int, int], None]
"""Told how many workgroups have ended, and of how many, all orders together."""

MOST_INSTRUCTIONS = 5_000_000
"""Of one wave: what takes longer is taken not to end, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedKernel:
    """One kernel of a code object, decoded."""

    program: KernelProgram

    @property
    def facts(self) -> KernelFacts:
        """What the kernel demands of a launch."""
        return self.program.facts

    @property
    def name(self) -> str:
        """Its name in the code object."""
        return self.facts.name

    def launch(
        self,
        *args: Any,  # arrays, tensors, numbers, bytes
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int],
        dynamic_lds: int = 0,
        orders: int | Sequence[Interleaving] = 20,
        seed: int = 0,
        check: bool = True,
        progress: Progress | None = None,
        most_instructions: int = MOST_INSTRUCTIONS,
        processes: int | None = None,
    ) -> LaunchResult:
        """Runs the kernel under `orders` interleavings; with `check`, findings are raised as an error.

        `grid` counts workgroups, `block` work-items.  An argument is an array or tensor (passed by address), None (the
        null pointer), a number or a NumPy scalar, or bytes (a struct by value); a pointer to LDS takes its size.
        Workgroups and orders of long launches are shared by so many `processes`, by default one for each processor; the
        result is the same with any number of them.
        """
        shape, items = _triple(grid, "grid"), _triple(block, "block")
        held = _Held.of(self.facts, args)
        chosen = orders if not isinstance(orders, int) else some_interleavings(waves_of(items), max(orders, 1), seed)
        runs = OrderRuns(program=self.program, spans=held.spans, regions=held.regions)
        count = shape[0] * shape[1] * shape[2]
        dispatch = partial(
            run_dispatch,
            self.program,
            buffers=held.before,
            values=held.values,
            grid=shape,
            block=items,
            dynamic_lds=dynamic_lds,
            skews=[region.low % SKEW for region in held.regions],
            most=most_instructions,
        )
        told = _told(progress, count * len(chosen))
        for order, outcome in outcomes(dispatch, chosen, count, processes_of(processes), told):
            if isinstance(outcome, IsaError):
                if {finding.code for finding in outcome.findings} == {"I107"}:
                    raise outcome  # nothing ran
                runs.broke(order.label, outcome)
            else:
                runs.add(order.label, outcome)
        if runs.first is not None:  # only now: whoever interrupts a launch finds arrays as they were
            for finding in (*self.program.findings, *held.write_back(runs.first)):
                runs.add_finding(finding)
        result = runs.result()
        if check:
            result.raise_findings()
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A launch's arguments: the arrays by number, the regions they lie in and what these held, and values to pack."""

    spans: dict[int, HostSpan]
    regions: tuple[Region, ...]
    before: list[NDArray[np.uint8]]
    values: list[Value]

    @classmethod
    def of(cls, facts: KernelFacts, args: Sequence[Any]) -> _Held:
        declared = [argument for argument in facts.arguments if not argument.hidden]
        structs = {
            number for number, argument in enumerate(declared) if argument.kind == "by_value" and argument.size != 8
        }
        spans = {
            number: span_of(each, str(number))
            for number, each in enumerate(args)
            if is_array(each) and number not in structs
        }
        regions = regions_of([*spans.values()])
        values: list[Value] = []
        for number, each in enumerate(args):
            if number in spans:
                place = place_of(spans[number], regions)
                values.append(None if place is None else Pointer(buffer=place[0], offset=place[1]))
            else:
                values.append(np.asarray(each).tobytes() if is_array(each) else each)
        return cls(spans=spans, regions=regions, before=[region.octets.copy() for region in regions], values=values)

    def write_back(self, outcome: KernelOutcome) -> Iterator[Finding]:
        """Gives the arrays what the kernel wrote; one that may not be written stays, and that is a finding."""
        for number, (region, old, new) in enumerate(zip(self.regions, self.before, outcome.buffers, strict=True)):
            if region.writeable:
                region.octets[:] = new
            elif not np.array_equal(old, new):
                mine = [
                    key for key, span in self.spans.items() if (place_of(span, self.regions) or (None,))[0] == number
                ]
                yield Finding(
                    code="I107",
                    message="the kernel writes to an array that is read-only",
                    concerns=tuple(Concern(label=f"argument {each}", index=each) for each in mine),
                    evidence=(("bytes", int((old != new).sum())),),
                )


def _told(progress: Progress | None, whole: int) -> Callable[[int], None]:
    return (lambda _: None) if progress is None else lambda ended: progress(ended, whole)


def _triple(sizes: int | Sequence[int], name: str) -> Triple:
    """One to three sizes; those that are left out are 1."""
    given = (sizes,) if isinstance(sizes, int | np.integer) else tuple(sizes)
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise IsaError(
            Finding(
                code="I107",
                message=f"{name} is {sizes!r:.60}, not one to three sizes greater than 0",
            )
        )
    x, y, z = (*map(int, given), 1, 1)[:3]
    return x, y, z
