"""Faults in emitted kernels: takes four kernels and twenty kinds of fault, prints who notices each.

Run `python -m benchmarks.sabotage [--only TEXT]` from the repository's root.  A fault is a changed line of source, or
a changed field of the kernel descriptor.  The proof speaks of the machine code's own waits and barriers; a fault that
moves or exchanges data, waves or workgroups, or that tells the hardware something else, is wrong by its making.  The
interpreter runs trip counts 0 and 2 under adversarial and drawn interleavings, and in several workgroups, until one is
wrong.  The exit status is 1 if a fault is wrong and neither audit nor execution notices it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from rota.audit.audit import Audit, audit_gemm
from rota.audit.gemm_launch import SEVERAL, GemmProgram, Numbers, load_emitted
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.errors import IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.launch.interleaving import interleavings
from tests.audit import sabotage
from tests.emit.kernels import SMALL, SMALL_MI300X, Emitted, by_values, four_wave, ping_pong

KERNELS: dict[str, Callable[[], Emitted]] = {
    "ping-pong": ping_pong,
    "four-wave": four_wave,
    "bf16 128x128": lambda: by_values(SMALL),
    "bf16 128x128 mi300x": lambda: by_values(SMALL_MI300X),
}
_STAGE = 32768  # bytes, or half of it for the smaller tiles: in either case another stage or slice


DESCRIPTOR = (
    ("group_segment_fixed_size", 32768),
    ("kernarg_size", 16),
    ("next_free_sgpr", 8),
    ("accum_offset", 32),
    ("tg_split", 1),
    ("user_sgpr_count", 4),
    ("system_sgpr_workgroup_id_y", 0),
)


class Fault(NamedTuple):
    """A change to the source or to the assembly, and whether it is wrong whatever the waits are."""

    name: str
    change: Callable[[str], str]
    by_making: bool
    in_assembly: bool = False


def _nth(which: Callable[[str], bool], change: Callable[[str], str], nth: int = 0) -> Callable[[str], str]:
    return lambda source: sabotage.changed(source, which, change, nth)


FAULTS: tuple[Fault, ...] = (
    Fault("first vm wait weakened by 1", _nth(sabotage.is_vm_wait, sabotage.one_weaker), by_making=False),
    Fault("last vm wait weakened by 1", _nth(sabotage.is_vm_wait, sabotage.one_weaker, -1), by_making=False),
    Fault("vm wait removed", _nth(sabotage.is_vm_wait, sabotage.without, 1), by_making=False),
    Fault("lgkm wait weakened by 1", _nth(sabotage.is_lgkm_wait, sabotage.one_weaker), by_making=False),
    Fault("first barrier removed", _nth(sabotage.is_barrier, sabotage.without), by_making=False),
    Fault("last barrier removed", _nth(sabotage.is_barrier, sabotage.without, -1), by_making=False),
    Fault("load into another stage", _nth(sabotage.is_dma, sabotage.other_address(_STAGE)), by_making=True),
    Fault("read of another stage", _nth(sabotage.is_read, sabotage.other_address(_STAGE), 2), by_making=True),
    Fault("read of another part", _nth(sabotage.is_read, sabotage.other_address(2048), -1), by_making=True),
    Fault(
        "read moved over a barrier",
        lambda source: sabotage.moved_up(source, sabotage.is_read, sabotage.is_barrier),
        by_making=True,
    ),
    Fault("no s_nop before results are read", sabotage.read_too_early, by_making=True),
    Fault("workgroup ids exchanged", sabotage.exchanged_workgroups, by_making=True),
    Fault("every second wave stays behind", sabotage.other_group, by_making=True),
    *(
        Fault(
            f"descriptor: {field} {value}",
            partial(sabotage.told, field=field, value=value),
            by_making=True,
            in_assembly=True,
        )
        for field, value in DESCRIPTOR
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    options = parser.parse_args(arguments)
    print("| kernel | fault | proof on the machine code | audit | execution |")
    print("|" + " --- |" * 5)
    missed = total = 0
    for name in (name for name in KERNELS if options.only in name):
        compiled, geometry = emitted = KERNELS[name]()
        source = emit_gemm(compiled, geometry)
        for fault in FAULTS:
            code = _sabotaged(source, fault, compiled.machine.arch)
            if code is None:
                continue
            audit = audit_gemm(compiled, geometry, code)
            executed = _execution(emitted, code)
            wrong = fault.by_making or audit.certificate is None
            caught = not audit.clean or executed != "right"
            total += wrong
            missed += wrong and not caught
            print(f"| {name} | {fault.name} | {_proof(audit, fault)} | {_codes(audit)} | {executed} |", flush=True)
    print(f"\n{total} wrong ones, {missed} of them missed")
    return 1 if missed else 0


def _sabotaged(source: str, fault: Fault, arch: str) -> CodeObject | None:
    """The kernel with the fault, or None if it has no place for it."""
    toolchain = find_toolchain()
    if fault.in_assembly:
        return toolchain.assemble(fault.change(toolchain.compile(source, arch).assembly), arch)
    changed = fault.change(source)
    return None if changed == source else toolchain.compile(changed, arch)


def _proof(audit: Audit, fault: Fault) -> str:
    if audit.certificate is not None:
        return "wrong by its making" if fault.by_making else "still right"
    codes = sorted({finding.code for finding in audit.findings if not finding.code.startswith("I")})
    return ", ".join(codes) or "no order to prove"


def _codes(audit: Audit) -> str:
    return ", ".join(sorted({finding.code for finding in audit.findings})) or "exact"


def _execution(emitted: Emitted, code: CodeObject) -> str:
    """The first interleaving under which C is wrong, or the interpreter finds a fault."""
    compiled, geometry = emitted
    try:
        gemm = load_emitted(compiled, geometry, code)
    except IsaError as error:
        return f"{error.findings[0].code} (not launched)"
    return next(_wrong_runs(gemm), "right")


def _wrong_runs(gemm: GemmProgram) -> Iterator[str]:
    for trips in (2, 0):
        for order in interleavings(gemm.waves, 4):
            result = gemm.launch(trips, order)
            if not result.right:
                yield f"{result.findings[0].code} ({trips} trips, {order.label})"
    several = gemm.launch(0, grid=SEVERAL, numbers=Numbers.FULL)
    if not several.right:
        yield f"{several.findings[0].code} (0 trips, several workgroups)"


if __name__ == "__main__":
    sys.exit(main())
