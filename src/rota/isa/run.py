"""Runs a kernel: takes a program, arguments, a grid and an interleaving, gives the buffers and what went wrong."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Concern, Finding, IsaError
from rota.isa.decoded import KernelProgram
from rota.isa.hazard import keep_distance
from rota.isa.interleaving import LATEST, Driver, Interleaving
from rota.isa.kernel_facts import LANES, KernelFacts
from rota.isa.lds import Lds
from rota.isa.memory import Memory
from rota.isa.operand import EXEC
from rota.isa.private import Private
from rota.isa.step import AT_BARRIER, Step
from rota.isa.vector import lane_bits
from rota.isa.wave import Faults, Wave
from rota.targets.architecture import Architecture

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KERNARG_UNIT = 64  # scalar loads may read past the last argument, to the end of its cache line
MOST_INSTRUCTIONS = 300_000  # of one wave: hundreds of K-tiles, and half a minute at most if it doesn't end


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOutcome:
    """The array arguments after the run, in their order, the faults, and how many instructions all waves executed."""

    buffers: tuple[NDArray[Any], ...]
    findings: tuple[Finding, ...]
    instructions: int


Triple = tuple[int, int, int]


def run_kernel(
    program: KernelProgram,
    *,
    args: Sequence[NDArray[Any] | int | float],
    grid: Triple = (1, 1, 1),
    block: Triple,
    dynamic_lds: int = 0,
    interleaving: Interleaving = LATEST,
) -> KernelOutcome:
    """Runs every workgroup of the grid, one after the other; the given arrays stay as they are.

    A workgroup gets the LDS that the kernel descriptor names, and `dynamic_lds` bytes more.
    """
    facts = program.facts
    lds_bytes = facts.descriptor.lds_bytes + dynamic_lds
    _check_launch(facts, program.architecture, len(args), block, lds_bytes)
    faults = Faults()
    arrays = [argument for argument in args if isinstance(argument, np.ndarray)]
    kernarg = np.zeros(-(-facts.kernarg_bytes // _KERNARG_UNIT) * _KERNARG_UNIT, np.uint8)
    image = [np.frombuffer(program.image, np.uint8)] if program.image else []  # the first buffer lies at CODE_BASE
    memory = Memory([*image, *arrays, kernarg], faults)
    packed = _kernarg(facts, args, memory, grid, block, buffers=len(image))
    pointer = memory.address(len(image) + len(arrays))
    memory.fill(len(image) + len(arrays), packed)
    executed, count = 0, -(-block[0] * block[1] * block[2] // LANES)
    with np.errstate(all="ignore"):
        for number, (z, y, x) in enumerate(product(*(range(size) for size in reversed(grid)))):
            driver = interleaving.driver(number)
            lds = Lds(lds_bytes, faults, count)
            waves = [
                _wave(program, index, (x, y, z), block, pointer, memory=memory, lds=lds, faults=faults, driver=driver)
                for index in range(count)
            ]
            _run_workgroup(program.steps, waves, driver)
            memory.order.close((x, y, z))
            executed += sum(wave.executed for wave in waves)
    memory.order.finish()
    return KernelOutcome(buffers=memory.contents()[len(image) : -1], findings=faults.findings(), instructions=executed)


def _check_launch(facts: KernelFacts, machine: Architecture, given: int, block: Triple, lds_bytes: int) -> None:
    declared = sum(not argument.hidden for argument in facts.arguments)
    if declared != given or block[0] * block[1] * block[2] > facts.max_workgroup or lds_bytes > machine.lds_bytes.value:
        raise IsaError(
            Finding(
                code="I107",
                message=f"the launch doesn't fit kernel {facts.name}",
                evidence=(
                    ("arguments", f"{given} given, {declared} declared"),
                    ("workgroup", f"{block} work-items, at most {facts.max_workgroup} in all"),
                    ("LDS", f"{lds_bytes} bytes; {machine.arch} has {machine.lds_bytes.value}"),
                ),
            )
        )


def _kernarg(
    facts: KernelFacts,
    args: Sequence[NDArray[Any] | int | float],
    memory: Memory,
    grid: Triple,
    block: Triple,
    *,
    buffers: int,
) -> bytes:
    """The kernarg segment: addresses of arrays, numbers as they are, and the sizes that hidden arguments ask for."""
    explicit = [argument for argument in facts.arguments if not argument.hidden]
    segment = bytearray(facts.kernarg_bytes)
    for argument, value in zip(explicit, args, strict=True):
        if isinstance(value, np.ndarray):
            value, buffers = memory.address(buffers), buffers + 1  # noqa: PLW2901  # passed by address
        segment[argument.offset : argument.offset + argument.size] = _packed(value, argument.size)
    sizes = {f"hidden_block_count_{axis}": count for axis, count in zip("xyz", grid, strict=True)}
    sizes |= {f"hidden_group_size_{axis}": size for axis, size in zip("xyz", block, strict=True)}
    for argument in facts.arguments:
        if argument.kind in sizes:
            segment[argument.offset : argument.offset + argument.size] = _packed(sizes[argument.kind], argument.size)
    return bytes(segment)


def _packed(number: int | float, size: int) -> bytes:  # noqa: PYI041  # they are packed differently
    if isinstance(number, int):
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return struct.pack("<f" if size == 4 else "<d", number)


def _wave(
    program: KernelProgram,
    number: int,
    workgroup: Triple,
    block: Triple,
    kernarg: int,
    *,
    memory: Memory,
    lds: Lds,
    faults: Faults,
    driver: Driver,
) -> Wave:
    """A wave as the hardware starts it: user SGPRs, workgroup ids, work-item ids packed into v0 (gfx90a and later)."""
    facts = program.facts
    wave = Wave(
        architecture=program.architecture,
        number=number,
        faults=faults,
        memory=memory,
        lds=lds,
        at_issue=driver.at_issue(),
        workgroup=workgroup,
        private=Private(facts.descriptor.private_bytes),
    )
    at = 0
    for name, size in facts.user_sgprs:
        if name == "kernarg_segment_ptr":
            wave.s[at : at + 2] = [kernarg & 0xFFFF_FFFF, kernarg >> 32]
        if name == "kernarg_preload":
            first = kernarg + 4 * facts.descriptor.preload_offset
            wave.s[at : at + size] = memory.scalar_words(first, size, program.steps[0].instruction)
        at += size
    for wanted, value in zip(facts.workgroup_ids, workgroup, strict=True):
        if wanted:
            wave.s[at] = value
            at += 1
    item = number * LANES + np.arange(LANES)
    x, y, z = item % block[0], item // block[0] % block[1], item // (block[0] * block[1])
    ids = (x, y, z)[: facts.workitem_ids + 1]
    wave.v[0] = sum((part << (10 * place) for place, part in enumerate(ids)), np.zeros(LANES, np.int64))
    if (number + 1) * LANES > block[0] * block[1] * block[2]:
        bits = lane_bits(z < block[2])
        wave.s[EXEC], wave.s[EXEC + 1] = bits & 0xFFFF_FFFF, bits >> 32
        wave.take_exec()
    return wave


def _run_workgroup(steps: tuple[Step, ...], waves: list[Wave], driver: Driver) -> None:
    while runnable := _runnable(waves):
        number, turns = driver.turn(runnable)
        wave = waves[number]
        for pending in (*wave.vm, *wave.ds):
            if driver.between():
                wave.land(pending)
        _run_wave(steps, wave, turns)


def _runnable(waves: list[Wave]) -> list[int]:
    """The waves that can go on; a barrier opens when every wave that hasn't ended has arrived."""
    alive = [wave for wave in waves if not wave.ended]
    if all(wave.waiting for wave in alive):
        for wave in alive:
            wave.waiting = False
    return [wave.number for wave in alive if not wave.waiting]


def _run_wave(steps: tuple[Step, ...], wave: Wave, turns: int | None) -> None:
    """Executes up to `turns` instructions, or as many as a wave can before it has to wait for others."""
    pc = wave.pc
    budget = MOST_INSTRUCTIONS - wave.executed
    left = budget if turns is None else min(turns, budget)
    start = left
    while left:
        step = steps[pc]
        left -= 1
        if wave.busy and not wave.busy.keys().isdisjoint(step.touches):
            _too_early(wave, step)
        keep_distance(wave, step)
        to = step.act(wave)
        wave.now += step.states
        if to is None:
            pc += 1
        elif to >= 0:
            pc = to
        else:
            pc += 1
            wave.waiting, wave.ended = to == AT_BARRIER, to != AT_BARRIER
            wave.epoch += to == AT_BARRIER
            break
    wave.executed += start - left
    wave.pc = pc
    if wave.ended:
        for pending in (*wave.vm, *wave.ds, *wave.flat):
            wave.land(pending)
    elif wave.executed >= MOST_INSTRUCTIONS:
        raise IsaError(
            Finding(
                code="I108",
                message=f"wave {wave.number} executed {MOST_INSTRUCTIONS} instructions and hasn't ended",
                concerns=(Concern(label=steps[pc].instruction.text, index=steps[pc].instruction.line),),
            )
        )


def _too_early(wave: Wave, step: Step) -> None:
    """An instruction uses a register of a memory op that no wait has covered."""
    row = min(row for row in step.touches if row in wave.busy)
    under_way = wave.busy[row].instruction
    name = f"v{row}" if row < 256 else f"a{row - 256}" if row < 512 else f"s{row - 512}"
    wave.faults.add(
        "I103",
        step.instruction,
        f"{step.instruction.opcode} uses {name} while {under_way.opcode} still holds it",
        ("under way", f"{under_way.text} (line {under_way.line})"),
        ("wave", wave.number),
    )
