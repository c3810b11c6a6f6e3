"""A Gluon kernel as machine code: takes an emitted schedule, gives the code object, its audit, and a launch of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rota.audit.audit import Audit, audit_gemm
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_binding import InterleavedBinding
from rota.isa.binary.code_object import CodeObject
from rota.languages.gluon_additions import additions
from rota.languages.gluon_gemm import emit_gluon, gluon_plan, gluon_signature
from rota.pipeline.geometry import KernelGeometry
from rota.triton import CompiledKernel, compile_kernel

if TYPE_CHECKING:
    from rota.audit.gemm_launch import GemmProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class GluonCode:
    """What Triton made of a schedule."""

    compiled: CompiledSchedule
    geometry: KernelGeometry
    source: str
    made: CompiledKernel

    @property
    def code(self) -> CodeObject:
        """The code object."""
        return self.made.code

    def audit(self) -> Audit:
        """Order, waits, barriers and operands against the schedule and the additions that were announced."""
        return audit_gemm(
            self.compiled,
            self.geometry,
            self.made.code,
            bound=InterleavedBinding,
            additions=additions(gluon_plan(self.compiled, self.geometry)),
            dynamic_lds=self.made.dynamic_lds,
        )

    def program(self) -> GemmProgram:
        """Ready to be run on numbers."""
        from rota.audit.execution import load_emitted

        return load_emitted(self.compiled, self.geometry, self.made.code, dynamic_lds=self.made.dynamic_lds)


def compile_gluon(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, edit: Callable[[str], str] = str
) -> GluonCode:
    """The schedule as Gluon, compiled by the Triton that is installed; `edit` changes the source before."""
    plan = gluon_plan(compiled, geometry)
    source = edit(emit_gluon(compiled, geometry))
    signature = {name: f"{kind}:16" for name, kind in gluon_signature(plan).items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{plan.symbol}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(plan.symbol, path)
        assert spec is not None  # noqa: S101  # the file is there
        assert spec.loader is not None  # noqa: S101
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = getattr(module, plan.symbol)
        arch = plan.tile.machine.arch
        made = compile_kernel(kernel, signature=signature, device=arch, num_warps=plan.tile.waves)
    return GluonCode(compiled=compiled, geometry=geometry, source=source, made=made)
