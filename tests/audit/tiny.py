"""The smallest loop that an audit can read: takes lines of assembly, gives the audit of them against the schedule."""

from __future__ import annotations

from functools import cache
from typing import Any

from rota import CompiledSchedule
from rota.audit.audit import Audit, audit_skeleton
from rota.audit.code_object import CodeObject
from rota.compiler.loop import compile_loop
from rota.declare.loop import Loop
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.emit.register_waits import with_register_waits
from rota.program.loop import Step, steps_of
from rota.simulate.isa.kernel import Descriptor, KernelFacts

_FACTS: dict[str, Any] = {
    "name": "tiny",
    "arch": "gfx950",
    "vgprs": 16,
    "agprs": 0,
    "sgprs": 16,
    "vgpr_spills": 0,
    "sgpr_spills": 0,
    "lds_bytes": 1024,
    "private_bytes": 0,
    "kernarg_bytes": 0,
    "max_workgroup": 256,
    "arguments": (),
    "user_sgprs": (),
    "workgroup_ids": (True, False, False),
    "workitem_ids": 0,
}
_WAITS = {FrameworkTag.WAIT_VM: "vmcnt", FrameworkTag.WAIT_LGKM: "lgkmcnt"}
_DATA = {
    "load_A": "buffer_load_dwordx4 v1, s[0:3], s4 offen lds",
    "read_a": "ds_read_b128 v[4:7], v2",
    "mma_c": "v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[4:7], v[8:11]",
}


@cache
def tiny_loop() -> CompiledSchedule:
    """One load, two reads that are one op, one product a K-tile."""
    loop = Loop("tiny", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.fragment("a", "A", registers=8, instructions=2)
    loop.accumulator("c", registers=4)
    loop.mma("c", "a", instruction="v_mfma_f32_16x16x32_bf16")
    return with_register_waits(compile_loop(loop.build()))


def tiny_phases() -> dict[Phase, list[str]]:
    """The machine code that is the schedule."""
    steps = steps_of(tiny_loop())
    return {phase: [line for step in steps.phase(phase) for line in _lines(step)] for phase in Phase}


def _lines(step: Step) -> list[str]:
    op = step.entry.op
    if op.tag in _WAITS:
        return [f"s_waitcnt {_WAITS[FrameworkTag(op.tag)]}({op.wait_value})"]
    return ["s_barrier"] if op.is_framework else [_DATA[op.label]] * max(step.effect.tokens, 1)


def tiny_audit(phases: dict[Phase, list[str]], **facts: int) -> Audit:
    """The audit of a kernel with these lines."""
    lines = ["tiny:", *phases[Phase.PROLOGUE], ".LBB0_1:", *phases[Phase.KERNEL], "s_cbranch_scc1 .LBB0_1"]
    text = "\n".join([*lines, *phases[Phase.EPILOGUE], "s_endpgm", ""])
    code = CodeObject(
        arch="gfx950",
        toolchain="by hand",
        hsaco=b"",
        assembly=text,
        disassembly=text,
        kernels=(_told({**_FACTS, **facts}),),
    )
    return audit_skeleton(tiny_loop(), code)


def _told(facts: dict[str, Any]) -> KernelFacts:
    """Facts with the descriptor that belongs to them."""
    same = {name: facts[name] for name in ("lds_bytes", "private_bytes", "kernarg_bytes", "vgprs", "sgprs")}
    return KernelFacts(**facts, descriptor=Descriptor(**same, user_sgprs=0, accum_offset=16, tg_split=False))


def behind_a_branch(lines: list[str], text: str) -> list[str]:
    """The lines, where a branch may skip the first that has this text."""
    number = next(number for number, line in enumerate(lines) if text in line)
    return [*lines[:number], "s_cbranch_scc0 .LBB0_7", lines[number], ".LBB0_7:", *lines[number + 1 :]]


def codes(audit: Audit) -> set[str]:
    return {finding.code for finding in audit.findings}
