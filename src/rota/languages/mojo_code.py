"""A Mojo kernel as machine code: takes an emitted schedule, gives the code object, its audit, and Mojo's own table."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.errors import Finding, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.languages.language_code import LanguageCode
from rota.languages.mojo_gemm import emit_mojo
from rota.languages.mojo_table import TableRow
from rota.languages.mojo_vocabulary import NO_OFFSET, emit_mojo_table
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import OpRole, ResourceKind
from rota.program.phase import Phase

_TARGET = re.compile(r"\b\S+-amd-amdhsa-(?:unknown)?-(gfx\w+)")  # LLVM has several ways to spell it


def compile_mojo(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, edit: Callable[[str], str] = str
) -> LanguageCode:
    """The schedule as Mojo, compiled by the Mojo that is installed; `edit` changes the source before."""
    plan = gemm_plan(compiled, geometry)
    source = edit(emit_mojo(compiled, geometry))
    arch = plan.tile.machine.arch
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"{plan.symbol}.mojo"
        path.write_text(source, encoding="utf-8")
        _run("build", "--emit", "asm", "--target-accelerator", arch, str(path), "-o", str(folder / "host.s"))
        code = read_assembly(folder, arch)
    return LanguageCode(compiled=compiled, geometry=geometry, source=source, code=code)


def read_assembly(folder: Path, arch: str) -> CodeObject:
    """The kernel in the assembly that `mojo build --emit asm --target-accelerator` puts beside the host's."""
    found = sorted(folder.glob("*.amdgcn"))
    if len(found) != 1:
        raise ToolchainError(
            Finding(
                code="T103",
                message=f"{folder} holds the assembly of {len(found)} kernels of Mojo; expected one",
                fixes=(f"mojo build --emit asm --target-accelerator {arch} kernel.mojo -o folder/host.s",),
            )
        )
    text = _TARGET.sub(r"amdgcn-amd-amdhsa--\1", found[0].read_text(encoding="utf-8"))
    return find_toolchain().assemble(text, arch)


def tables_by_mojo(compiled: CompiledSchedule, geometry: KernelGeometry) -> Mapping[Phase, tuple[TableRow, ...]]:
    """The tables as Mojo itself reads them: compiled for the host, run, and printed."""
    with TemporaryDirectory() as name:
        path = Path(name) / "table.mojo"
        path.write_text(emit_mojo_table(compiled, geometry), encoding="utf-8")
        printed = _run("run", str(path))
    rows = [_row(line.split()) for line in printed.splitlines()]
    return {phase: tuple(row for row in rows if row.phase == phase.name) for phase in Phase}


def _row(words: list[str]) -> TableRow:
    numbers = [int(word) for word in words]
    tag, stage, subtile, k_offset, vm_cost, lgkm_cost, wait_value, resource = numbers[:8]
    latency, role, channel, vgpr_def, vgpr_kill, time_slot, phase, is_prefetch = numbers[8:]
    return TableRow(
        tag=tag,
        stage=stage,
        subtile=subtile,
        k_offset=None if k_offset == NO_OFFSET else k_offset,
        vm_cost=vm_cost,
        lgkm_cost=lgkm_cost,
        wait_value=wait_value,
        resource=list(ResourceKind)[resource].name,
        latency=latency,
        role=list(OpRole)[role].name,
        channel=channel,
        vgpr_def=vgpr_def,
        vgpr_kill=vgpr_kill,
        time_slot=time_slot,
        phase=list(Phase)[phase].name,
        is_prefetch=bool(is_prefetch),
    )


def _run(*arguments: str) -> str:
    beside = Path(sys.executable).parent / "mojo"
    mojo = str(beside) if beside.exists() else shutil.which("mojo")
    if mojo is None:
        raise ToolchainError(Finding(code="T301", message="Mojo is not installed", fixes=("pip install mojo max",)))
    done = subprocess.run([mojo, *arguments], capture_output=True, text=True, check=False)  # noqa: S603  # our own
    if done.returncode:
        raise ToolchainError(
            Finding(
                code="T102",
                message="Mojo refused the kernel",
                evidence=(("said", " ".join(done.stderr.strip().splitlines()[-3:])[-400:]),),
            )
        )
    return done.stdout
