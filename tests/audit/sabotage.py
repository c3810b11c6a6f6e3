"""Faults in emitted source: takes a kernel's text, gives it with one line changed, as a tired hand would."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from rota import CompiledSchedule, KernelGeometry
from rota.audit.audit import Audit, audit_gemm
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain

_WAIT = re.compile(r"(WAIT_\w+)\((\d+)\)")


@cache
def source_of(compiled: CompiledSchedule, geometry: KernelGeometry) -> str:
    return emit_gemm(compiled, geometry)


def audited(compiled: CompiledSchedule, geometry: KernelGeometry, source: str) -> Audit:
    return audit_gemm(compiled, geometry, find_toolchain().compile(source, compiled.machine.arch))


def loop_lines(source: str) -> range:
    """The lines of the loop's body."""
    lines = source.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip() == "// kernel")
    last = next(number for number, line in enumerate(lines) if number > first and line.strip().startswith("k += "))
    return range(first + 1, last)


def changed(source: str, which: Callable[[str], bool], change: Callable[[str], str], nth: int = 0) -> str:
    """The nth line of the loop for which `which` holds, changed."""
    lines = source.splitlines()
    numbers = [number for number in loop_lines(source) if which(lines[number])]
    number = numbers[nth % len(numbers)]
    lines[number] = change(lines[number])
    return "\n".join(lines)


def is_vm_wait(line: str) -> bool:
    return "WAIT_VM(" in line


def is_lgkm_wait(line: str) -> bool:
    return "WAIT_LGKM(" in line


def is_barrier(line: str) -> bool:
    return "BARRIER" in line


def is_read(line: str) -> bool:
    return "READ(" in line


def is_dma(line: str) -> bool:
    return "DMA(" in line


def loads_a(line: str) -> bool:
    return is_dma(line) and "a_global" in line


def is_mfma(line: str) -> bool:
    return "MFMA(" in line


def without(line: str) -> str:
    return "// " + line.strip()


def one_weaker(line: str) -> str:
    """One more memory op may stay in flight."""
    return _WAIT.sub(lambda match: f"{match[1]}({int(match[2]) + 1})", line)


def other_address(distance: int) -> Callable[[str], str]:
    """A constant LDS address that is `distance` (a power of 2) bytes away: the other stage's, or another part's."""

    def change(line: str) -> str:
        inner = line[line.index("(") + 1 : line.index(")  ")]
        parts = inner.split(", ")
        place = 2 if is_read(line) else 1
        parts[place] = str(int(parts[place]) ^ distance)
        return line.replace(inner, ", ".join(parts), 1)

    return change


def of_another_element(line: str) -> str:
    """The same registers, taken for fp16."""
    c, a, b = line[line.index("(") + 1 : line.index(")  ")].split(", ")
    return f'asm volatile("v_mfma_f32_16x16x16_f16 %0, %1, %2, %0" : "+v"({c}) : "v"({a}), "v"({b})); ROTA_FENCE'


def moved_up(source: str, which: Callable[[str], bool], over: Callable[[str], bool]) -> str:
    """The first line of the loop of one kind that follows one of another, moved before it."""
    lines = source.splitlines()
    numbers = loop_lines(source)
    behind = next(n for n in numbers if over(lines[n]) and any(which(lines[m]) for m in numbers if m > n))
    number = next(n for n in numbers if n > behind and which(lines[n]))
    lines.insert(behind, lines.pop(number))
    return "\n".join(lines)


def exchanged_workgroups(source: str) -> str:
    """Rows of workgroups are taken for columns, everywhere alike."""
    for row, column in (("workgroup_id_x", "workgroup_id_?"), ("workgroup_id_y", "workgroup_id_x")):
        source = source.replace(row, column)
    return source.replace("workgroup_id_?", "workgroup_id_y")


def other_group(source: str) -> str:
    """Every second wave stays behind, instead of the second half of them; as it is where none does."""
    return re.sub(r"wave_group = wave / \d+;", "wave_group = wave & 1;", source)


def told(assembly: str, field: str, value: int) -> str:
    """Assembly whose kernel descriptor has another value in one field; the notes stay as they are."""
    changed, count = re.subn(rf"(\.amdhsa_{field}) \d+", rf"\g<1> {value}", assembly)
    assert count == 1
    return changed


def read_too_early(source: str) -> str:
    """The last matrix instruction's result is read at once, without the slots that it takes to get there."""
    lines = source.splitlines()
    number = max(n for n, line in enumerate(lines) if is_mfma(line) and "#define" not in line)
    result = lines[number][lines[number].index("(") + 1 :].partition(",")[0]
    read = f'{{ float x = {result}[0]; asm volatile("v_mov_b32 %0, %0" : "+v"(x)); {result}[0] = x; }} ROTA_FENCE'
    return "\n".join([*lines[: number + 1], read, *lines[number + 1 :]])
