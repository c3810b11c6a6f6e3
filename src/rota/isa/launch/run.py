"""Runs a kernel: takes a program, arguments, a grid and an interleaving, gives the buffers and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Finding, IsaError, Severity
from rota.isa.decoded import KernelProgram
from rota.isa.hazards.hazard import keep_distance
from rota.isa.launch.buffer_names import with_buffers
from rota.isa.launch.dispatch import PACKET_BYTES, Dispatch, build_packet, first_instruction
from rota.isa.launch.fit import checked_sizes
from rota.isa.launch.interleaving import LATEST, Driver, Interleaving
from rota.isa.launch.kernarg import Pointer, Triple, Value, build_kernarg, service_at
from rota.isa.launch.spin import revisited
from rota.isa.launch.time_limit import heed_time
from rota.isa.launch.wave_group import WaveGroup, run_workgroups
from rota.isa.memory.global_memory import Memory
from rota.isa.memory.lds import Lds
from rota.isa.memory.private import Private
from rota.isa.native.workgroups import ENDLESS, run_clean
from rota.isa.wave.mode import INDEXED
from rota.isa.wave.step import AT_BARRIER, Step
from rota.isa.wave.wave import Faults, Wave

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction

_KERNARG_UNIT = 64  # scalar loads may read past the last argument, to the end of its cache line
_PAGE = 4096
_STACK = 16384  # bytes for each lane of a kernel that doesn't know how deep its calls go
MOST_INSTRUCTIONS = 300_000  # of one wave: hundreds of K-tiles, and half a minute at most if it doesn't end
_EXPLAINED = 50_000  # instructions in which it shows why a wave doesn't end of which the core knows that it doesn't


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOutcome:
    """The array arguments after the run, in their order, the faults, and how many instructions all waves executed.

    `notes` are what is legal and yet worth a look, such as waves that meet at different barriers.
    """

    buffers: tuple[NDArray[Any], ...]
    findings: tuple[Finding, ...]
    instructions: int
    notes: tuple[Finding, ...] = ()


def run_kernel(
    program: KernelProgram,
    *,
    args: Sequence[NDArray[Any] | Value],
    grid: Triple = (1, 1, 1),
    block: Triple,
    dynamic_lds: int = 0,
    interleaving: Interleaving = LATEST,
) -> KernelOutcome:
    """Runs every workgroup of the grid; the given arrays stay as they are.

    A workgroup gets the LDS that the kernel descriptor names, and `dynamic_lds` bytes more.
    """
    arrays = [argument for argument in args if isinstance(argument, np.ndarray)]
    numbers = iter(range(len(arrays)))
    values = [Pointer(buffer=next(numbers)) if isinstance(each, np.ndarray) else each for each in args]
    return run_dispatch(
        program,
        buffers=arrays,
        values=values,
        grid=grid,
        block=block,
        dynamic_lds=dynamic_lds,
        interleaving=interleaving,
    )


def run_dispatch(
    program: KernelProgram,
    *,
    buffers: Sequence[NDArray[Any]],
    values: Sequence[Value],
    grid: Triple,
    block: Triple,
    dynamic_lds: int = 0,
    skews: Sequence[int] = (),
    interleaving: Interleaving = LATEST,
    most: int | None = None,
    ended: Callable[[int], None] = lambda _: None,
    processes: int = 1,
) -> KernelOutcome:
    """Runs a launch whose values point into buffers.

    `most` are the instructions of one wave after which it is taken not to end; `ended` is told how many workgroups have
    ended.  Long work of the native core is shared by so many `processes`.
    """
    sizes = checked_sizes(program, values, grid, block, dynamic_lds)
    faults = Faults()
    facts = program.facts
    kernarg = np.zeros(-(-facts.kernarg_bytes // _KERNARG_UNIT) * _KERNARG_UNIT, np.uint8)
    image = [np.frombuffer(program.image, np.uint8)] if program.image else []  # the first buffer lies at CODE_BASE
    own = [*image, *buffers, kernarg, np.zeros(PACKET_BYTES, np.uint8)]
    memory = Memory(own, faults, [*(0 for _ in image), *skews])
    segment = build_kernarg(facts, values, lambda to: memory.address(len(image) + to.buffer) + to.offset, sizes)
    dispatch = Dispatch(
        facts=facts,
        sizes=sizes,
        kernarg=segment,
        kernarg_at=memory.address(len(own) - 2),
        packet_at=memory.address(len(own) - 1),
        entry=first_instruction(facts, [step.instruction for step in program.steps]),
    )
    memory.fill(len(own) - 2, segment)
    memory.fill(len(own) - 1, build_packet(facts, sizes, dispatch.kernarg_at))
    limit = MOST_INSTRUCTIONS if most is None else most
    places = interleaving.arranged(_workgroups(sizes.grid))

    def make(place: tuple[int, Triple], *, native: bool = False) -> WaveGroup:
        driver = interleaving.driver(place[0])
        return _workgroup(program, dispatch, place, memory=memory, faults=faults, driver=driver, native=native)

    furthest = 0

    def progress(done: int) -> None:
        """A second run doesn't tell again what the first one told."""
        nonlocal furthest
        if done > furthest:
            furthest = done
            ended(done)

    executed = run_clean(
        program,
        places=places,
        make=partial(make, native=True),
        memory=memory,
        interleaving=interleaving,
        most=limit,
        ended=progress,
        processes=processes,
    )
    given_up = limit
    if executed == ENDLESS:
        executed, limit = None, min(limit, _EXPLAINED)
    if executed is None:
        faults.clear()
        with np.errstate(all="ignore"), _with_what_was_found(faults, len(image)):
            executed = run_workgroups(
                places,
                make,
                lambda wave, turns: _run_wave(program.steps, wave, turns, limit, program.endless, told=given_up),
                memory,
                progress,
            )
        memory.order.finish()
    found = _explained(faults, len(image))
    return KernelOutcome(
        buffers=memory.contents()[len(image) : -2],
        findings=(*program.findings, *(each for each in found if each.severity is not Severity.NOTE)),
        instructions=executed,
        notes=tuple(each for each in found if each.severity is Severity.NOTE),
    )


def _workgroups(grid: Triple) -> list[tuple[int, Triple]]:
    """Numbered in the order in which the machine starts them: x fastest."""
    return [(number, (x, y, z)) for number, (z, y, x) in enumerate(product(*(range(size) for size in reversed(grid))))]


def _workgroup(
    program: KernelProgram,
    dispatch: Dispatch,
    place: tuple[int, Triple],
    *,
    memory: Memory,
    faults: Faults,
    driver: Driver,
    native: bool,
) -> WaveGroup:
    number, workgroup = place
    facts, sizes = program.facts, dispatch.sizes
    room = sizes.fixed_lds + sizes.dynamic_lds
    lds = Lds(0 if native else room, faults, dispatch.waves)  # the core has its own
    lds.size = room
    waves = []
    for index in range(dispatch.waves):
        wave = Wave(
            architecture=program.architecture,
            number=index,
            faults=faults,
            memory=memory,
            lds=lds,
            at_issue=driver.at_issue(),
            workgroup=workgroup,
            private=Private(facts.descriptor.private_bytes + (_STACK if facts.dynamic_stack else 0)),
        )
        dispatch.start(wave, workgroup)
        waves.append(wave)
    return WaveGroup(number=number, waves=waves, driver=driver, steps=program.steps, faults=faults)


@contextmanager
def _with_what_was_found(faults: Faults, before: int) -> Iterator[None]:
    """Faults that came before the one that ended the run are told as well."""
    try:
        yield
    except IsaError as error:
        raise IsaError(*error.findings, *_explained(faults, before)) from error


def _explained(faults: Faults, before: int) -> list[Finding]:
    """Findings in the caller's words: buffers are counted without those that lie `before` the caller's."""
    return [_counted(_with_service(finding), before) for finding in faults.findings()]


def _counted(finding: Finding, before: int) -> Finding:
    return with_buffers(finding, lambda number: f"buffer {number - before}" if number >= before else "the code object")


def _with_service(finding: Finding) -> Finding:
    """Says which of the addresses that are nobody's was used: of a runtime's service, or near null."""
    evidence = dict(finding.evidence)
    if finding.code != "I105" or not str(evidence.get("address")).startswith("0x"):
        return finding
    address = int(str(evidence["address"]), 16)
    if (service := service_at(address)) is not None:
        where = f"in {service.replace('_', ' ')}, a service of a runtime that rota doesn't have"
    elif address < _PAGE:
        where = "the null pointer, or near it"
    else:
        return finding
    return replace(finding, evidence=tuple((evidence | {"where": where}).items()))


def _run_wave(
    steps: tuple[Step, ...],
    wave: Wave,
    turns: int | None,
    most: int = MOST_INSTRUCTIONS,
    endless: frozenset[int] = frozenset(),
    *,
    told: int | None = None,
) -> None:
    """Executes up to `turns` instructions, or as many as a wave can before it has to wait for others.

    From the places in `endless` no way leads to an end.  `told` is what to say instead of `most`, where the core has
    executed more.
    """
    pc = wave.pc
    budget = most - wave.executed
    left = budget if turns is None else min(turns, budget)
    start = left
    while left:
        step = steps[pc]
        if wave.mode & INDEXED and step.indexed is not None:
            step = step.indexed(wave)
        left -= 1
        if wave.busy and not wave.busy.keys().isdisjoint(step.touches):
            wave.too_early(step.instruction, min(row for row in step.touches if row in wave.busy))
        keep_distance(wave, step)
        to = step.act(wave)
        wave.now += step.states
        if to is None:
            pc += 1
            continue
        back, pc = pc, to if to >= 0 else pc + 1
        if to < 0:
            wave.waiting, wave.ended = to == AT_BARRIER, to != AT_BARRIER
            wave.epoch += to == AT_BARRIER
            break
        if to <= back and _repeats(wave, pc, steps[pc].instruction, endless):
            wave.spinning = True
            break
    wave.executed += start - left
    wave.pc = pc
    if wave.ended:
        wave.land_all()
    elif wave.executed >= most:
        fix = "take a smaller problem, or allow more instructions if the kernel is that long"
        raise _endless(wave, steps[pc].instruction, f"executed {told or most} instructions and hasn't ended", fix)


def _repeats(wave: Wave, pc: int, instruction: Instruction, endless: frozenset[int]) -> bool:
    """A wave goes back to `pc`: was it there in this very state?"""
    if pc in endless:
        raise _endless(wave, instruction, "came to a loop that no way leads out of")
    heed_time(wave.number, instruction)
    return revisited(wave, pc)


def _endless(wave: Wave, instruction: Instruction, why: str, *fixes: str) -> IsaError:
    return IsaError(
        Finding(code="I108", message=f"wave {wave.number} {why}", concerns=(instruction.concern(),), fixes=fixes)
    )
