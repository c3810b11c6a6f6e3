"""Every kernel of the corpus, launched: takes its file, gives what was computed and found beside what is due."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rota import load_kernel
from rota.errors import Finding, RotaError
from tests.isa.corpus.hip_cases import hip_problem, race_problem
from tests.isa.corpus.problem import Problem
from tests.isa.corpus.triton_cases import triton_problem

FOLDER = "kernels/compiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A finding that must come: its code, between which instructions, to the letter, and why."""

    code: str
    ends: tuple[str, ...]
    why: str

    def met_by(self, findings: tuple[Finding, ...]) -> bool:
        """Is there a finding of that code with just these ends?"""
        return any(
            finding.code == self.code and sorted(concern.label for concern in finding.concerns) == sorted(self.ends)
            for finding in findings
        )


_HIP = "one of the small kernels with a fault"
_WORD = ("ds_write_b32 v1, v0", "ds_read_b32 v0, v0")
_HALF = ("ds_write_b16 v1, v0", "ds_read_u16 v1, v1")
_STORE = "global_store_dword v0, v1, s[0:1]"
DUE = {
    "races/barrier_only_nowait": Due(code="I109", ends=_WORD, why=_HIP),
    "races/divergent_barrier": Due(code="I109", ends=_WORD, why=_HIP),
    "races/global_raw_nosync": Due(
        code="I302",
        ends=("global_store_dword v2, v0, s[0:1]", "global_load_dword v0, v[0:1], off offset:1020"),
        why=_HIP,
    ),
    "races/global_ww_workgroups": Due(code="I303", ends=(_STORE, _STORE), why=_HIP),
    "races/oob_global": Due(code="I105", ends=("global_store_dword v1, v0, s[0:1] offset:32",), why=_HIP),
    "races/oob_lds": Due(code="I105", ends=("ds_read_b32 v0, v1 offset:256",), why=_HIP),
    "races/raw_nosync": Due(code="I109", ends=_WORD, why=_HIP),
    "races/reduce_missing_last": Due(
        code="I109", ends=("ds_write_b32 v1, v2", "ds_read2st64_b32 v[2:3], v1 offset1:1"), why=_HIP
    ),
    "races/same_value_war": Due(
        code="I109",
        ends=("ds_write_b32 v0, v1", "ds_read_b32 v2, v2"),
        why="a read outstanding at a barrier: a finding of policy",
    ),
    "races/u16_barrier_only_nowait": Due(code="I109", ends=_HALF, why=_HIP),
    "races/u16_raw_nosync": Due(code="I109", ends=_HALF, why=_HIP),
    "races/u8_raw_nosync": Due(code="I109", ends=("ds_write_b8 v0, v0", "ds_read_u8 v1, v1"), why=_HIP),
    "races/uninit_lds": Due(code="I301", ends=("ds_read_b32 v0, v0",), why=_HIP),
    "races/war_nosync": Due(code="I109", ends=_WORD, why=_HIP),
    "races/waw": Due(code="I109", ends=("ds_write_b32 v1, v0", "ds_write_b32 v1, v0"), why=_HIP),
    "triton-3.8.0/pp_on": Due(
        code="I109",
        ends=("ds_write2st64_b32 v41, v100, v104 offset1:32", "ds_read2_b32 v[180:181], v68 offset0:32 offset1:48"),
        why="triton-lang/triton issue 11696",
    ),
    "g_mm_wrongwait": Due(
        code="I109",
        ends=("ds_read_b128 v[106:109], v92 offset:40960", "buffer_load_dwordx4 v2, s[0:3], 0 offen lds"),
        why="wait_group(2) where 1 is needed",
    ),
    "m_256_256_128_8_2_fp8e4nv": Due(
        code="I109",
        ends=("buffer_load_dwordx4 v18, s[20:23], 0 offen lds", "ds_read_b64_tr_b8 a[24:25], v16 offset:16896"),
        why="reads outstanding at a barrier behind which a DMA overwrites their bytes",
    ),
}
"""Known-bad kernels, without their architecture.

`races/global_raw_barrier_nowait` is not among them: its source has no wait before the barrier, but its accesses are
volatile, and clang waits after each of those.
"""
TOO_LARGE = frozenset({"m_256_256_64_8_3_bf16.gfx950", "t_matmul_bf16_s3_async1.gfx942"})
"""Compiled, yet for more LDS than the device has: the launch is refused (I107)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One code object of the corpus."""

    path: Path
    name: str  # without .hsaco, within the corpus

    @property
    def due(self) -> Due | None:
        """The finding that it must have, if it is known-bad."""
        plain = self.name.rsplit(".", 1)[0]
        return DUE.get(plain) or (
            DUE.get(self.path.name.split(".")[0]) if plain.startswith("triton-3.8.0/m_") else None
        )

    @property
    def refused(self) -> bool:
        """Does it need more LDS than its device has?"""
        return self.path.name.removesuffix(".hsaco") in TOO_LARGE

    def problem(self) -> Problem:
        """Its launch: the same numbers every time."""
        stem, arch = self.path.name.removesuffix(".hsaco").rsplit(".", 1)
        rng = np.random.default_rng(zlib.crc32(stem.encode()))
        if self.name.startswith("races/"):
            return race_problem(stem)
        if stem.startswith("h_"):
            return hip_problem(stem, rng)
        told = json.loads(self.path.with_suffix(".json").read_text())
        return triton_problem(stem, arch, rng, warps=told["num_warps"], shared=told["shared"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a launch; `off` is at most 1 if the outputs are right, None if nothing was executed."""

    case: Case
    off: float | None
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()
    instructions: int = 0
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Were the outputs of the first order right?"""
        return self.off is not None and self.off <= 1

    @property
    def as_due(self) -> bool:
        """Is it what is known of the kernel: right and clean, or flagged, or refused?"""
        if self.case.refused:
            return {finding.code for finding in self.findings} == {"I107"}
        if self.case.due is not None:
            return self.off is not None and self.case.due.met_by(self.findings)
        return self.right and not self.findings


def cases(folder: Path, pattern: str = "") -> Iterator[Case]:
    """The code objects under a folder whose names have the pattern in them."""
    for path in sorted(folder.rglob("*.hsaco")):
        name = str(path.relative_to(folder)).removesuffix(".hsaco")
        if re.search(pattern, name):
            yield Case(path=path, name=name)


def judged(case: Case, orders: int) -> Verdict:
    """Loads, launches and compares."""
    start = time.perf_counter()
    problem = case.problem()
    try:
        result = load_kernel(case.path).launch(
            *problem.args,
            grid=problem.grid,
            block=problem.block,
            dynamic_lds=problem.dynamic_lds,
            orders=orders,
            check=False,
        )
    except RotaError as error:
        return Verdict(case=case, off=None, findings=error.findings, seconds=time.perf_counter() - start)
    return Verdict(
        case=case,
        off=problem.off(),
        findings=result.findings,
        notes=result.notes,
        instructions=result.instructions,
        seconds=time.perf_counter() - start,
    )
