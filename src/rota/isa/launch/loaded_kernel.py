"""A kernel that can be launched, and the way in for machine code.

Arrays are written in place, as on a GPU. The first order's results are kept; the others work on copies, and their
results must be the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.errors import Concern, Finding, IsaError, did_you_mean
from rota.isa.binary.hip_source import compile_hip
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.binary.toolchain import read_object
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import Interleaving, some_interleavings
from rota.isa.launch.kernarg import Pointer, Triple, Value, waves_of
from rota.isa.launch.orders import (
    SKEW,
    HostSpan,
    LaunchResult,
    OrderRuns,
    Region,
    is_array,
    place_of,
    regions_of,
    run_orders,
    span_of,
)
from rota.isa.launch.processes import Tell, processes_of
from rota.isa.launch.run import KernelOutcome, run_dispatch

Progress = Callable[[int, int], None]
"""Called with the workgroups that have ended and their total number, over all orders."""

MOST_INSTRUCTIONS = 5_000_000  # per wave: one that executes more is taken not to end, unless the caller says otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedKernel:
    """One kernel of a code object, decoded and ready to launch."""

    program: KernelProgram

    @property
    def facts(self) -> KernelFacts:
        """What the kernel demands of a launch: registers, memory and arguments."""
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
        """Runs the kernel under `orders` interleavings; with `check`, raises its findings as an error.

        `grid` counts workgroups, `block` work-items. An argument is an array or tensor (passed by address), None (the
        null pointer), a number or a NumPy scalar, or bytes (a struct by value); a pointer to LDS takes its size. Long
        launches share their workgroups and orders among `processes`, by default one per processor; the result is the
        same for any number of them.
        """
        shape, items = read_triple(grid, "grid"), read_triple(block, "block")
        held = HostArguments.of(self.facts, args)
        waves = waves_of(items, self.program.architecture.lanes.value)
        chosen = orders if not isinstance(orders, int) else some_interleavings(waves, max(orders, 1), seed)
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
        total = count * len(chosen)
        tell: Tell = (lambda _: None) if progress is None else lambda ended: progress(ended, total)
        for order, outcome in run_orders(dispatch, chosen, count, processes_of(processes), tell):
            if isinstance(outcome, IsaError) and {finding.code for finding in outcome.findings} == {"I107"}:
                raise outcome  # nothing ran
            runs.add(order.label, outcome)
        if runs.first is not None:  # only now: an interrupted launch leaves the arrays unchanged
            runs.add_findings((*self.program.findings, *held.write_back(runs.first)))
        result = runs.result()
        if check:
            result.raise_findings()
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class HostArguments:
    """The arguments of a launch: the memory that arrays lie in, as it is `before`, and what is packed for each one."""

    spans: dict[int, HostSpan]
    regions: tuple[Region, ...]
    before: list[NDArray[np.uint8]]
    values: list[Value]

    @classmethod
    def of(cls, facts: KernelFacts, args: Sequence[Any]) -> HostArguments:
        declared = [argument for argument in facts.arguments if not argument.hidden]
        structs = {number for number, each in enumerate(declared) if each.kind == "by_value" and each.size != 8}
        arrays = [number for number, each in enumerate(args) if is_array(each) and number not in structs]
        spans = {number: span_of(args[number], str(number)) for number in arrays}
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
        """Copies the results into the arrays; a write to a read-only array is a finding instead."""
        for number, (region, old, new) in enumerate(zip(self.regions, self.before, outcome.buffers, strict=True)):
            if region.writeable:
                region.octets[:] = new
            elif not np.array_equal(old, new):
                places = {key: place_of(span, self.regions) for key, span in self.spans.items()}
                mine = [key for key, place in places.items() if place is not None and place[0] == number]
                concerns = tuple(Concern(label=f"argument {each}", index=each) for each in mine)
                evidence = (("bytes", int((old != new).sum())),)
                yield Finding("I107", "the kernel writes to a read-only array", concerns=concerns, evidence=evidence)


def read_triple(sizes: int | Sequence[int], name: str) -> Triple:
    """One to three sizes, as three; raises I107 for others."""
    given = (sizes,) if isinstance(sizes, int | np.integer) else tuple(sizes)
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise IsaError.of("I107", f"{name} is {sizes!r:.60}, not one to three sizes greater than 0")
    x, y, z = (*map(int, given), 1, 1)[:3]
    return x, y, z


# A launch described by a mapping, such as {"args": [x, y, 100], "grid": 1, "block": 128, "expected": {1: 2 * x}}.
# `expected` has outputs by argument number, within `rtol` and `atol` (0 by default).

_KEYS = ("args", "grid", "block", "dynamic_lds", "expected", "rtol", "atol")


def launch_described(
    kernel: LoadedKernel, description: object, *, orders: int, seed: int = 0, progress: Progress | None = None
) -> LaunchResult:
    launch = check_description(description)
    result = kernel.launch(
        *launch["args"],
        grid=launch.get("grid", 1),
        block=launch["block"],
        dynamic_lds=launch.get("dynamic_lds", 0),
        orders=orders,
        seed=seed,
        check=False,
        progress=progress,
    )
    wrong = tuple(_compare_outputs(launch))
    seen = (*result.seen, *((result.orders[0],) for _ in wrong))
    return replace(result, findings=(*result.findings, *wrong), seen=seen)


def check_description(description: object) -> Mapping[str, Any]:
    """A launch as a function of the user describes it; raises I107 if something lacks."""
    if not isinstance(description, Mapping):
        raise _malformed(repr(description)[:60])
    if not {"args", "block"} <= description.keys():
        raise _malformed(f"{type(description).__name__} without args and block")
    for key in description:
        if key not in _KEYS:
            raise _malformed(f"a key {key!r:.40}", *did_you_mean(str(key), _KEYS))
    args = description["args"]
    for number in description.get("expected", {}):
        if not isinstance(number, int) or not 0 <= number < len(args) or not is_array(args[number]):
            raise _malformed(f"an expectation of argument {number!r:.40}, which is no array")
    return description


def _compare_outputs(launch: Mapping[str, Any]) -> Iterator[Finding]:
    for number, value in launch.get("expected", {}).items():
        got, want = (np.asarray(each).astype(np.float64) for each in (launch["args"][number], value))
        if got.shape != want.shape:
            raise _malformed(f"an expectation of shape {want.shape} for argument {number}, whose shape is {got.shape}")
        off = ~np.isclose(got, want, rtol=launch.get("rtol", 0.0), atol=launch.get("atol", 0.0), equal_nan=True)
        if off.any():
            where = tuple(int(each) for each in np.argwhere(off)[0])
            elements = ("elements", f"{int(off.sum())} of {off.size}, the first at {where}")
            evidence = (elements, ("got", f"{got[where]:.9g}"), ("expected", f"{want[where]:.9g}"))
            concerns = (Concern(label=f"argument {number}", index=number),)
            message = f"argument {number} differs from the expected values"
            yield Finding("I123", message, concerns=concerns, evidence=evidence)


def _malformed(why: str, *fixes: str) -> IsaError:
    message = "the description of a launch is malformed"
    form = 'give {"args": [...], "grid": ..., "block": ..., "expected": {number: array}}'
    return IsaError.of("I107", message, evidence=(("given", why),), fixes=(*fixes, form))


def load_kernel(
    source: str | PathLike[str] | bytes, name: str | None = None, *, arch: str | None = None
) -> LoadedKernel:
    """Loads a kernel from a code object, or from the one for `arch` in a bundle; `name` may be None if there is one.

    Raises I102 for an instruction that the interpreter lacks, before anything runs.
    """
    code = read_object(source, arch)
    instructions = code.instructions(name)
    # Only code that reads its own address can find what is loaded with it.
    image = code.image() if any(each.opcode == "s_getpc_b64" for each in instructions) else b""
    return LoadedKernel(program=load_program(code.kernel(name), instructions, image=image))


def load_source(path: Path, arch: str, name: str | None = None, *, compiler: str | None = None) -> LoadedKernel:
    return load_kernel(compile_hip(path, arch, compiler=compiler).hsaco, name)
