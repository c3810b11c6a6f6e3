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
from rota.isa.wave.operand import (
    EXEC,
    SCC_BIT,
    VCC,
    File,
    named_register,
    parse_operand,
    scalar_reader,
    scalar_writer,
    unknown,
)
from rota.isa.wave.wave import AT_BARRIER, AT_END, START, Step, Wave, make_step
from rota.targets.architecture import Architecture, WaitEncoding

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


_COUNTS = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_COUNTED = re.compile(r"(?:(?:vmcnt|lgkmcnt|expcnt)\(\d+\)(?:\s*[&,]?\s*|$))+")
_NOP_BITS = 0xF  # s_nop looks at the low bits of its number
# These only affect timing and traces.
_HINTS = frozenset({"s_setprio", "s_sleep", "s_icache_inv", "s_ttracedata", "s_incperflevel", "s_decperflevel"})
_ASKED = {"scc": SCC_BIT, "vcc": named_register("vcc"), "exe": named_register("exec")}  # by part of the opcode
_CONDITIONS: dict[str, Callable[[Wave], bool]] = {
    "s_branch": lambda _: True,
    "s_cbranch_scc0": lambda wave: wave.scc == 0,
    "s_cbranch_scc1": lambda wave: wave.scc == 1,
    "s_cbranch_vccz": lambda wave: wave.s[VCC] | wave.s[VCC + 1] == 0,
    "s_cbranch_vccnz": lambda wave: wave.s[VCC] | wave.s[VCC + 1] != 0,
    "s_cbranch_execz": lambda wave: wave.s[EXEC] | wave.s[EXEC + 1] == 0,
    "s_cbranch_execnz": lambda wave: wave.s[EXEC] | wave.s[EXEC + 1] != 0,
}
_CALLS = frozenset({"s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64"})
_MODE = re.compile(r"^hwreg\(HW_REG_MODE(?:,\s*(?P<offset>\d+),\s*(?P<size>\d+))?\)$")
_MODE_BITS = 10  # that the interpreter models: rounding, denormals, DX10_CLAMP and IEEE


def decode_control(instruction: Instruction, places: Mapping[int, int], architecture: Architecture) -> Step | None:
    opcode = instruction.opcode
    if opcode in _CONDITIONS:
        condition, target = _CONDITIONS[opcode], instruction.target
        if target is None:
            raise unknown(instruction, "target")
        return make_step(instruction, lambda wave: target if condition(wave) else None)
    if opcode in _CALLS:
        return _call(instruction, places)
    decoder = _DECODERS.get(opcode)
    return None if decoder is None else decoder(instruction, architecture)


def _call(instruction: Instruction, places: Mapping[int, int]) -> Step:
    operands = [parse_operand(text, instruction) for text in instruction.operands[:2]]
    gives = () if instruction.opcode == "s_setpc_b64" else operands[:1]
    takes = operands[-1:] if instruction.opcode in {"s_setpc_b64", "s_swappc_b64"} else ()
    if instruction.follows is None or any(each.file is not File.SCALAR or each.count != 2 for each in (*gives, *takes)):
        raise unknown(instruction, "address" if instruction.follows is None else "form")
    if instruction.opcode == "s_call_b64" and instruction.target is None:
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


def wait_counts(instruction: Instruction, architecture: Architecture) -> tuple[int | None, int | None]:
    """The vector memory and LDS ops that a wait leaves in flight; None for a counter it doesn't wait on."""
    written = instruction.text.partition(" ")[2].strip()
    if _COUNTED.fullmatch(written):
        counts = {name: int(count) for name, count in _COUNTS.findall(written)}
    elif architecture.wait_encoding is WaitEncoding.SPLIT_VMCNT and len(instruction.operands) == 1:
        bits = int(written, 0)
        counts = {"vmcnt": bits & 0xF | bits >> 10 & 0x30, "lgkmcnt": bits >> 8 & 0xF}
    else:
        raise unknown(instruction, "count")
    vm, lgkm = (
        None if (count := counts.get(name)) is None or count >= architecture.no_wait(name) else count
        for name in ("vmcnt", "lgkmcnt")
    )
    return vm, lgkm


def _wait(instruction: Instruction, architecture: Architecture) -> Step:
    vm, lgkm = wait_counts(instruction, architecture)

    def act(wave: Wave) -> None:
        if vm is not None:
            wave.wait_vm(vm)
        if lgkm is not None:
            wave.wait_lgkm(lgkm)

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
    """Accepts an interrupt only, which leaves the wave unchanged."""
    if instruction.operands != ("sendmsg(MSG_INTERRUPT)",):
        raise unknown(instruction, "message")
    return make_step(instruction, lambda _: None)


def _mode(instruction: Instruction, _: Architecture) -> Step:
    """Reads or sets a field of MODE within the bits that the interpreter obeys."""
    reads = instruction.opcode == "s_getreg_b32"
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


_DECODERS: dict[str, Callable[[Instruction, Architecture], Step]] = {
    "s_waitcnt": _wait,
    "s_nop": lambda instruction, _: make_step(
        instruction, lambda _: None, states=(int(instruction.operands[0], 0) & _NOP_BITS) + 1
    ),
    "s_barrier": lambda instruction, _: make_step(instruction, lambda _: AT_BARRIER),
    "s_endpgm": lambda instruction, _: make_step(instruction, lambda _: AT_END),
    "s_trap": _trap,
    "s_setvskip": _skip,
    "s_sendmsg": _message,
    **dict.fromkeys(("s_setreg_imm32_b32", "s_setreg_b32", "s_getreg_b32"), _mode),
    **dict.fromkeys(_HINTS, lambda instruction, _: make_step(instruction, lambda _: None)),
}
