"""One instruction at a time: takes assembly text and register contents, gives the wave after it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from rota.isa.binary.kernel_facts import Descriptor, KernelFacts
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import LATEST
from rota.isa.launch.run import _run_wave
from rota.isa.memory.memories import Lds, Memory
from rota.isa.wave.wave import Faults, Wave
from rota.targets.cdna4 import CDNA4

LDS_BYTES = 4096
_ARCH = ContextVar("arch", default="gfx950")
DESCRIPTOR = Descriptor(
    lds_bytes=LDS_BYTES, private_bytes=0, kernarg_bytes=0, vgprs=512, sgprs=112, user_sgprs=0, accum_offset=256,
    tg_split=False,
)  # fmt: skip


def facts(arch: str = "gfx950", **changes: Any) -> KernelFacts:
    plain = {
        "name": "k", "arch": arch, "vgprs": 256, "agprs": 0, "sgprs": 100, "vgpr_spills": 0, "sgpr_spills": 0,
        "lds_bytes": LDS_BYTES, "private_bytes": 0, "kernarg_bytes": 0, "max_workgroup": 256, "arguments": (),
        "user_sgprs": (), "workgroup_ids": (False, False, False), "workitem_ids": 0,
    }  # fmt: skip
    return KernelFacts(descriptor=DESCRIPTOR, **{**plain, **changes})


def listing(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    return "k:\n" + "\n".join(line if line.endswith(":") else f"\t{line}" for line in lines) + "\n\ts_endpgm\n"


def loaded(text: str, arch: str = "gfx950") -> KernelProgram:
    return load_program(facts(arch), listing(text))


def written_lds(faults: Faults, size: int = LDS_BYTES) -> Lds:
    """LDS that counts as written, though it holds poison."""
    lds = Lds(size, faults)
    lds.order._known[:] = True
    return lds


def fresh(
    vectors: Mapping[int, Any] | None = None,
    scalars: Mapping[int, int] | None = None,
    buffers: tuple[np.ndarray, ...] = (),
    number: int = 0,
    lds: Lds | None = None,
) -> Wave:
    faults = Faults()
    memory = Memory(buffers, faults)
    wave = Wave(
        architecture=CDNA4,
        number=number,
        faults=faults,
        memory=memory,
        lds=lds or written_lds(faults),
        at_issue=LATEST.driver(0).at_issue(),
    )
    for row, value in (vectors or {}).items():
        wave.v[row] = np.asarray(value).view(np.uint32) if np.ndim(value) else np.uint32(value)
    for number_, value in (scalars or {}).items():
        wave.s[number_] = value
    wave.update_mask()
    return wave


@contextmanager
def running_on(arch: str) -> Iterator[None]:
    """Lines are executed on that machine, unless something else is said."""
    token = _ARCH.set(arch)
    try:
        yield
    finally:
        _ARCH.reset(token)


def execute(text: str, wave: Wave, arch: str | None = None) -> Wave:
    """Runs the lines to their end, with what is in flight left in flight."""
    program = loaded(text, arch or _ARCH.get())
    steps, wave.architecture = program.steps, program.architecture
    wave.pc = 0
    with np.errstate(all="ignore"):
        _run_wave(steps, wave, len(steps) - 1)
    return wave


def codes(wave: Wave) -> list[str]:
    return [finding.code for finding in wave.faults.findings()]
