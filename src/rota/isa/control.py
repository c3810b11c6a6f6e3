"""Control flow, waits and barriers: takes an instruction, gives a `Step` that says where the wave goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rota.isa.operand import EXEC, SCC_BIT, VCC, named, unknown
from rota.isa.step import AT_BARRIER, AT_END, Act, Step, make_step

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.isa.wave import Wave

_COUNTS = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_HINTS = frozenset({"s_setprio", "s_sleep", "s_inst_prefetch", "s_icache_inv", "s_code_end"})
_ASKED = {"scc": SCC_BIT, "vcc": named("vcc"), "exe": named("exec")}  # what a branch looks at
_CONDITIONS: dict[str, Callable[[Wave], bool]] = {
    "s_branch": lambda _: True,
    "s_cbranch_scc0": lambda wave: wave.scc == 0,
    "s_cbranch_scc1": lambda wave: wave.scc == 1,
    "s_cbranch_vccz": lambda wave: wave.s[VCC] | wave.s[VCC + 1] == 0,
    "s_cbranch_vccnz": lambda wave: wave.s[VCC] | wave.s[VCC + 1] != 0,
    "s_cbranch_execz": lambda wave: wave.s[EXEC] | wave.s[EXEC + 1] == 0,
    "s_cbranch_execnz": lambda wave: wave.s[EXEC] | wave.s[EXEC + 1] != 0,
}


def decode_control(instruction: Instruction) -> Step | None:
    """The step of a branch, wait, barrier, hint or end, or None."""
    opcode = instruction.opcode
    if opcode in _CONDITIONS:
        asked = tuple(operand for name, operand in _ASKED.items() if f"_{name}" in opcode)
        return make_step(instruction, _branch(_CONDITIONS[opcode], instruction), reads=asked)
    if opcode == "s_waitcnt":
        return make_step(instruction, _wait(instruction))
    if opcode == "s_nop":
        return make_step(instruction, lambda _: None, states=int(instruction.operands[0], 0) + 1)
    if opcode == "s_barrier":
        return make_step(instruction, lambda _: AT_BARRIER)
    if opcode == "s_endpgm":
        return make_step(instruction, lambda _: AT_END)
    return make_step(instruction, lambda _: None) if opcode in _HINTS else None


def _branch(condition: Callable[[Wave], bool], instruction: Instruction) -> Act:
    target = instruction.target
    return lambda wave: target if condition(wave) else None


def _wait(instruction: Instruction) -> Act:
    counts = {name: int(count) for name, count in _COUNTS.findall(instruction.text)}
    if not counts and instruction.operands != ("0",):
        raise unknown(instruction, "count")
    vm, lgkm = counts.get("vmcnt"), counts.get("lgkmcnt")
    if not counts:
        vm = lgkm = 0

    def act(wave: Wave) -> None:
        if vm is not None:
            wave.wait_vm(vm)
        if lgkm is not None:
            wave.wait_lgkm(lgkm)

    return act
