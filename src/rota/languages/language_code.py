"""A schedule that another compiler built: how that compiler is run, its audit and a launch."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rota.audit.audit import Audit, audit_gemm
from rota.audit.gemm_launch import GemmProgram, load_emitted
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import Addition
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import Binder
from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.pipeline.geometry import KernelGeometry


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCode:
    """What a language's compiler made of a schedule, of which it may add nothing but the `additions`.

    `bound` deals rows out to waves as the language does, and `dynamic_lds` is what a launch asks for.
    """

    compiled: CompiledSchedule
    geometry: KernelGeometry
    source: str
    code: CodeObject
    bound: Binder = GemmBinding
    additions: tuple[Addition, ...] = ()
    dynamic_lds: int = 0

    def audit(self) -> Audit:
        """Order, waits, barriers and operands against the schedule and the additions that were announced."""
        return audit_gemm(
            self.compiled,
            self.geometry,
            self.code,
            bound=self.bound,
            additions=self.additions,
            dynamic_lds=self.dynamic_lds,
        )

    def program(self) -> GemmProgram:
        """Ready to be run on numbers."""
        return load_emitted(self.compiled, self.geometry, self.code, dynamic_lds=self.dynamic_lds)


def run_compiler(language: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """What the compiler prints; T102 if it refuses."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603  # our own
    if done.returncode:
        raise ToolchainError.of(
            "T102",
            f"{language} refused the kernel",
            evidence=(("said", " ".join(done.stderr.strip().splitlines()[-3:])[-400:]),),
        )
    return done.stdout
