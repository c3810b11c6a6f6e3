"""The smallest loop that an audit can read: takes lines of assembly, gives the audit of them against the schedule."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from rota.audit.audit import Audit, audit_skeleton
from rota.compiled.proved import repaired
from rota.emit.planning import with_register_waits
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Descriptor, KernelFacts
from rota.program.entry import Entry
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, Read, Value
from rota.values.compile_loop import compile_loop, unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.loop import Loop
from rota.values.unroll import Placement

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
DATA = {
    "load_A": "buffer_load_dwordx4 v1, s[0:3], s4 offen lds",
    "read_a": "ds_read_b128 v[4:7], v2",
    "mma_c": "v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[4:7], v[8:11]",
    "put": "global_store_dwordx4 v[2:3], v[4:7], off",
}


@cache
def tiny_loop() -> CompiledLoop:
    """One load, two reads that are one op, one product a K-tile."""
    loop = Loop("tiny", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.fragment("a", "A", registers=8, instructions=2)
    loop.accumulator("c", registers=4)
    loop.mma("c", "a", instruction="v_mfma_f32_16x16x32_bf16")
    return with_register_waits(compile_loop(loop.build()))


@cache
def storing_loop() -> CompiledLoop:
    """The same, and every K-tile's fragment is written to memory."""
    spec = tiny_loop().loop
    put = LoopOp(name="put", kind=OpKind.GLOBAL_STORE, reads=(Read(value="a"),), writes=("out",))
    out = Value(name="out", home=Home.MEMORY, size=1)
    more = replace(spec, values=(*spec.values, out), ops=(*spec.ops, put))
    placement = Placement(interval=4, starts=(0, 1, 2, 3), copies=())
    return with_register_waits(repaired(unroll_bare(more, placement)))


def tiny_phases(loop: CompiledLoop | None = None) -> dict[Phase, list[str]]:
    """The machine code that is the schedule."""
    program = (loop or tiny_loop()).lowered
    return {phase: [line for entry in program.phase(phase) for line in _lines(entry)] for phase in Phase}


def _lines(entry: Entry) -> list[str]:
    op, effect = entry.op, entry.effect
    if op.kind is OpKind.WAIT:
        return [f"s_waitcnt {effect.counter}({effect.wait_value})"]
    return ["s_barrier"] if op.is_framework else [DATA[op.name]] * max(effect.tokens, 1)


def tiny_audit(phases: dict[Phase, list[str]], loop: CompiledLoop | None = None, **facts: int) -> Audit:
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
    return audit_skeleton(loop or tiny_loop(), code)


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
