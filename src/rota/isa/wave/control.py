"""Control flow, waits and barriers.

Instructions that stop a wave for a debugger or a trap handler, or depend on where it happens to run, are not among
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.elf import CODE_BASE
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import SKIPPING, Instruction
from rota.isa.opcodes import IsaFlow, wait_counts
from rota.isa.registers import EXEC, VCC
from rota.isa.wave.meeting import WaveMeetings
from rota.isa.wave.operand import File, parse_operand, scalar_reader, scalar_writer, unknown
from rota.isa.wave.wave import AT_BARRIER, AT_END, AT_NAMED, START, Step, Wave, make_step
from rota.targets.architecture import Architecture

# Float modes. The interpreter rounds to nearest even, keeps or flushes denormals of 32 bits as MODE says, and keeps
# those of 16 and 64 bits. A difference that only rare values show is a warning.

_KEPT = 3
_ROUNDING = ("to the nearest even", "up", "down", "towards zero")


def check_float_mode(facts: KernelFacts) -> tuple[Finding, ...]:
    """An error if the kernel rounds in another mode, a warning if only denormals or overflow differ."""
    mode = facts.descriptor.float_mode
    if mode.round_32 or mode.round_64:
        evidence = (
            ("floats of 32 bits", _ROUNDING[mode.round_32]),
            ("floats of 16 and 64 bits", _ROUNDING[mode.round_64]),
            ("the interpreter rounds", _ROUNDING[0]),
        )
        message = f"kernel {facts.name} sets a rounding mode that the interpreter lacks"
        fix = "compile the kernel with rounding to nearest even"
        return (Finding("I132", message, evidence=evidence, fixes=(fix,)),)
    differs = []
    if mode.denormals_32 not in {0, _KEPT}:
        differs.append(("denormals of 32 bits", "flushed on one side only on the machine, on both here"))
    if mode.denormals_64 != _KEPT:
        differs.append(("denormals of 16 and 64 bits", "flushed to zero on the machine, kept here"))
    if mode.fp16_overflow:
        differs.append(("overflow of 16 bits", "gives the largest number on the machine, infinity here"))
    message = f"kernel {facts.name} sets a float mode in which rare values differ from the interpreter's"
    fixes = ("if such values matter, compile the kernel with denormals kept",)
    warning = Finding("I132", message, severity=Severity.WARNING, evidence=tuple(differs), fixes=fixes)
    return (warning,) if differs else ()


def is_supported_mode(bits: int) -> bool:
    return not bits & 0xF and bits >> 4 & 3 in {0, _KEPT} and bits >> 6 & 3 == _KEPT


_NOP_BITS = 0xF  # s_nop looks at the low bits of its number


def _always(_: Wave) -> bool:
    return True


_ASKED: dict[str, Callable[[Wave], bool]] = {
    "scc": lambda wave: wave.scc == 1,
    "vcc": lambda wave: wave.mask_at(VCC) != 0,
    "exec": lambda wave: wave.mask_at(EXEC) != 0,
}
_MODE = re.compile(r"^hwreg\(HW_REG_(?:WAVE_)?MODE(?:,\s*(?P<offset>\d+),\s*(?P<size>\d+))?\)$")
_MODE_BITS = 10  # that the interpreter models: rounding, denormals, DX10_CLAMP and IEEE


def decode_control(instruction: Instruction, places: Mapping[int, int], architecture: Architecture) -> Step | None:
    spec, target = instruction.spec, instruction.target
    if spec.flow is IsaFlow.JUMP or spec.condition is not None:
        if target is None:
            raise unknown(instruction, "target")
        ask, holds = (_always, True) if spec.condition is None else (_ASKED[spec.condition[0]], spec.condition.holds)
        return make_step(instruction, lambda wave: target if ask(wave) == holds else None)
    if spec.known and (spec.flow.is_call or spec.flow.is_indirect or spec.name == "s_getpc_b64"):
        return _call(instruction, places)
    if spec.flow is IsaFlow.WAIT:
        return _wait(instruction, architecture)
    if spec.flow in {IsaFlow.BARRIER, IsaFlow.SIGNAL, IsaFlow.JOIN}:
        return _barrier(instruction, architecture)
    if (decoder := _DECODERS.get(spec.name)) is not None:
        return decoder(instruction, architecture)
    return make_step(instruction, lambda _: None) if spec.is_hint else None


def _call(instruction: Instruction, places: Mapping[int, int]) -> Step:
    operands = [parse_operand(text, instruction) for text in instruction.operands[:2]]
    flow = instruction.spec.flow
    gives = () if flow is IsaFlow.INDIRECT else operands[:1]
    takes = operands[-1:] if flow.is_indirect else ()
    if instruction.follows is None or any(each.file is not File.SCALAR or each.count != 2 for each in (*gives, *takes)):
        raise unknown(instruction, "address" if instruction.follows is None else "form")
    if flow is IsaFlow.CALL and instruction.target is None:
        raise unknown(instruction, "target")
    return_address, target = CODE_BASE + instruction.follows, instruction.target
    put = [scalar_writer(each, wide=True) for each in gives]
    asked = [scalar_reader(each, wide=True) for each in takes]

    def act(wave: Wave) -> int | None:
        addresses = [read(wave) for read in asked]
        for write in put:
            write(wave, return_address)
        for address in addresses:
            if address - CODE_BASE not in places:
                message = f"{instruction.opcode} jumps to {address:#x}, where the kernel has no instruction"
                fixes = ("a function that only a pointer leads to has to be in the code object, with a symbol",)
                evidence, concerns = (("wave", wave.number),), (instruction.concern(),)
                raise IsaError.of("I131", message, concerns=concerns, evidence=evidence, fixes=fixes)
            return places[address - CODE_BASE]
        return target

    return make_step(instruction, act)


def _trap(instruction: Instruction, _: Architecture) -> Step:
    def act(wave: Wave) -> None:
        fixes = ("compilers emit traps for failed assertions and for unreachable code: find which one this is",)
        message = f"wave {wave.number} traps: {instruction.text}"
        raise IsaError.of("I131", message, concerns=(instruction.concern(),), fixes=fixes)

    return make_step(instruction, act)


def _wait(instruction: Instruction, architecture: Architecture) -> Step:
    try:
        counts = wait_counts(instruction.spec, instruction.text, architecture)
    except ValueError as error:
        if instruction.mnemonic != "s_wait_idle":
            raise unknown(instruction, "count") from error
        counts = {queue.counter: 0 for queue in architecture.queues}

    def act(wave: Wave) -> None:
        for counter, most in counts.items():
            wave.wait(counter, most)

    return make_step(instruction, act)


def _barrier(instruction: Instruction, architecture: Architecture) -> Step:
    """Arrives at a barrier, waits there, or both: that of all waves, -1, or a named one."""
    flow = instruction.spec.flow
    if architecture.split_barrier == (flow is IsaFlow.BARRIER):
        raise unknown(instruction, f"barrier on {architecture.arch}")
    if instruction.operands not in {(), ("-1",), ("0xffff",)}:
        return _signal_named(instruction) if flow is IsaFlow.SIGNAL else _wait_named(instruction)

    def act(wave: Wave) -> int | None:
        if flow is not IsaFlow.JOIN:
            wave.signals += 1
            if wave.meetings is not None:
                wave.meetings.signal_all(wave.number)
        return None if flow is IsaFlow.SIGNAL else AT_BARRIER

    return make_step(instruction, act)


# Named barriers: 1 to 16, for a part of the waves. A number in m0 has the count of members above it.

_NUMBER, _MEMBERS, _MOST_MEMBERS, _LAST_NAMED = 0x1F, 16, 0x7F, 16


def _named(instruction: Instruction) -> Callable[[Wave], tuple[int, int]]:
    """Reads which barrier an instruction names, and how many members it gives it."""
    operand = parse_operand(instruction.operands[0], instruction)
    if operand.file is File.LITERAL and not 0 < operand.literal <= _LAST_NAMED:
        raise unknown(instruction, f"barrier {operand.text}")
    word = scalar_reader(operand)
    return lambda wave: (word(wave) & _NUMBER, word(wave) >> _MEMBERS & _MOST_MEMBERS)


def meetings_of(wave: Wave, instruction: Instruction) -> WaveMeetings:
    """The barriers of a wave's workgroup, which a launch makes."""
    if wave.meetings is None:
        raise unknown(instruction, "barrier outside a launch")
    return wave.meetings


def _report_barrier(wave: Wave, instruction: Instruction, why: str) -> None:
    wave.faults.add("I102", instruction, f"{instruction.opcode}: {why}", ("wave", wave.number))


def _initialise(instruction: Instruction, _: Architecture) -> Step:
    named = _named(instruction)

    def act(wave: Wave) -> None:
        number, members = named(wave)
        if 0 < number <= _LAST_NAMED and members:
            meetings_of(wave, instruction).initialise(number, members)
        else:
            _report_barrier(wave, instruction, f"it gives barrier {number} {members} members")

    return make_step(instruction, act)


def _join(instruction: Instruction, _: Architecture) -> Step:
    named = _named(instruction)

    def act(wave: Wave) -> None:
        meetings, (number, _members) = meetings_of(wave, instruction), named(wave)
        meetings.joined[wave.number] = number
        meetings.awaited[wave.number] = number, meetings.phase_of(number)

    return make_step(instruction, act)


def _signal_named(instruction: Instruction) -> Step:
    named = _named(instruction)

    def act(wave: Wave) -> None:
        meetings, (number, members) = meetings_of(wave, instruction), named(wave)
        if meetings.joined[wave.number] == number:
            meetings.awaited[wave.number] = number, meetings.phase_of(number)
        if not meetings.signal(wave.number, number, members):
            _report_barrier(wave, instruction, f"nobody has set up barrier {number}")

    return make_step(instruction, act)


def _wait_named(instruction: Instruction) -> Step:
    """Waits at the barrier that the wave has joined, whichever it names."""
    if not 0 < int(instruction.operands[0], 0) <= _LAST_NAMED:
        raise unknown(instruction, f"barrier {instruction.operands[0]}")

    def act(wave: Wave) -> int | None:
        meetings = meetings_of(wave, instruction)
        if not meetings.joined[wave.number]:
            _report_barrier(wave, instruction, "the wave has joined no barrier")
            return None
        return AT_NAMED

    return make_step(instruction, act)


def _skip(instruction: Instruction, _: Architecture) -> Step:
    """Branches to the copy of the code without vector instructions, or back; see `rota.isa.disassembly`."""
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    word, place = (scalar_reader(operand) for operand in operands)
    wanted, target = int(SKIPPING not in instruction.modifiers), instruction.target
    if target is None:
        raise unknown(instruction, "other half")

    def act(wave: Wave) -> int | None:
        return target if word(wave) >> (place(wave) & 31) & 1 == wanted else None

    return make_step(instruction, act)


def _message(instruction: Instruction, _: Architecture) -> Step:
    """Accepts an interrupt, and that registers may be freed: both leave the wave unchanged."""
    if instruction.operands not in {("sendmsg(MSG_INTERRUPT)",), ("sendmsg(MSG_DEALLOC_VGPRS)",)}:
        raise unknown(instruction, "message")
    return make_step(instruction, lambda _: None)


def _mode(instruction: Instruction, _: Architecture) -> Step:
    """Reads or sets a field of MODE within the bits that the interpreter obeys."""
    reads = instruction.opcode == "s_getreg_b32"
    if (quiet := _quiet(instruction, reads=reads)) is not None:
        return quiet
    found = _MODE.match(instruction.operands[1 if reads else 0])
    if found is None:
        raise unknown(instruction, f"register {instruction.operands[1 if reads else 0]!r}")
    offset, size = int(found["offset"] or 0), int(found["size"] or 32)
    operand = parse_operand(instruction.operands[0 if reads else 1], instruction)
    among = (1 << size) - 1 << offset
    if offset + size > _MODE_BITS:
        raise unknown(instruction, "mode")
    if reads:
        put = scalar_writer(operand)
        return make_step(instruction, lambda wave: put(wave, (wave.mode & among) >> offset))
    if operand.file is File.LITERAL and not is_supported_mode(START & ~among | operand.literal << offset & among):
        raise unknown(instruction, "mode")
    take = scalar_reader(operand)

    def act(wave: Wave) -> None:
        mode = wave.mode & ~among | take(wave) << offset & among
        if not is_supported_mode(mode):
            message = f"wave {wave.number} sets a float mode that the interpreter lacks"
            evidence = (("bits 7:0 of MODE", f"{mode & 0xFF:#04x}"),)
            raise IsaError.of("I132", message, concerns=(instruction.concern(),), evidence=evidence)
        wave.mode = mode

    return make_step(instruction, act)


# Registers that no value depends on here: the bit of MODE that compilers set first in every kernel, the scheduling
# modes 0 and 2, and which cluster a workgroup is in, since there are none.
_QUIET = frozenset({
    ("hwreg(HW_REG_WAVE_MODE, 25, 1)", "1"),
    ("hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2)", "0"), ("hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2)", "2"),
})  # fmt: skip
_OF_CLUSTERS = "hwreg(HW_REG_IB_STS2, 6, 4)"


def _quiet(instruction: Instruction, *, reads: bool) -> Step | None:
    if not reads:
        return make_step(instruction, lambda _: None) if instruction.operands in _QUIET else None
    if instruction.operands[1] != _OF_CLUSTERS:
        return None
    put = scalar_writer(parse_operand(instruction.operands[0], instruction))
    return make_step(instruction, lambda wave: put(wave, 0))


_DECODERS: dict[str, Callable[[Instruction, Architecture], Step]] = {
    "s_barrier_init": _initialise,
    "s_barrier_join": _join,
    "s_nop": lambda instruction, _: make_step(
        instruction, lambda _: None, states=(int(instruction.operands[0], 0) & _NOP_BITS) + 1
    ),
    "s_endpgm": lambda instruction, _: make_step(instruction, lambda _: AT_END),
    "s_trap": _trap,
    "s_setvskip": _skip,
    "s_sendmsg": _message,
    **dict.fromkeys(("s_setreg_imm32_b32", "s_setreg_b32", "s_getreg_b32"), _mode),
}
