"""The audit and a launch of a schedule that another compiler built."""

from __future__ import annotations

from dataclasses import dataclass

from rota.audit.audit import Audit, audit_gemm
from rota.audit.gemm_launch import GemmProgram, load_emitted
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.isa.binary.code_object import CodeObject
from rota.pipeline.geometry import KernelGeometry


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCode:
    """What a language's compiler made of a schedule, of which it may add nothing."""

    compiled: CompiledSchedule
    geometry: KernelGeometry
    source: str
    code: CodeObject

    def audit(self) -> Audit:
        """Order, waits, barriers and operands against the schedule."""
        return audit_gemm(self.compiled, self.geometry, self.code)

    def program(self) -> GemmProgram:
        """Ready to be run on numbers."""
        return load_emitted(self.compiled, self.geometry, self.code)
