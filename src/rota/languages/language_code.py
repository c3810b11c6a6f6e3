"""What languages other than HIP share: how their kernels are printed, and what their compilers make of a schedule.

A compiler is run, what it made is audited, and launched on numbers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rota.audit.audit import Audit, audit_gemm
from rota.audit.gemm_launch import GemmProgram, load_emitted
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import Binder, GemmPlan, Statement
from rota.emit.gemm.gemm_tile import Factor
from rota.emit.text import Addition, Template, remark
from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase


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


_FAR_APART = 100  # the column of comments
_SHIFT = "({} >> {})"
_SHARED = Template("rota.languages", "plain.txt")


def log2(number: int) -> int:
    return number.bit_length() - 1


class PlainKernel:
    """Prints a plan by the template of a language; where one has no layouts of its own, it says all addresses."""

    template: ClassVar[Template]

    def __init__(self, plan: GemmPlan) -> None:
        self.plan = plan
        self.tile, self.binding, self.program = plan.tile, plan.binding, plan.program

    @property
    def kept(self) -> str:
        """Where C is kept, as a constraint of inline assembly."""
        return "a" if self.tile.accumulates_in_agprs else "v"

    def contract(self, name: str) -> Iterator[str]:
        """What a caller must keep, and what the schedule rests on."""
        geometry, (free, plain) = self.tile.geometry, self.plan.conflicts
        certificate = self.plan.compiled.certificate
        proved = str(certificate).splitlines()[0] if certificate else "not proved."
        words = {"free": free, "plain": plain, "rows": max(geometry.BM, geometry.BN), "proved": proved}
        return map(remark, _SHARED.lines("contract", name=name, plan=self.plan, tile=self.tile, **words))

    def phase(self, phase: Phase) -> Iterator[str]:
        """The statements of a phase, a line or more each, with what a comment says."""
        indent = "        " if phase is Phase.KERNEL else "    "
        yield f"{indent}# {phase.value.lower()}"
        for statement in self.plan.statements[phase]:
            for text in self.write(statement, phase):
                yield f"{indent}{text}".ljust(_FAR_APART) + "  " + remark(statement.what)

    def write(self, statement: Statement, phase: Phase) -> Iterator[str]:
        raise NotImplementedError

    def lane_words(self) -> dict[str, object]:
        """What a template says of threads, lanes, rows and addresses."""
        tile, across, roles = self.tile, self.tile.across(Factor.B), len(self.program.roles)
        declare = self.template.lines("group", bits=log2(tile.waves // roles)) if roles > 1 else ()
        return {
            "threads": tile.waves * tile.lanes,
            "per_simd": -(-tile.waves // tile.simds),
            "lane_mask": tile.lanes - 1,
            "lane_bits": log2(tile.lanes),
            "across_mask": across - 1,
            "across_bits": log2(across),
            "side_mask": tile.side - 1,
            "side_bits": log2(tile.side),
            "depth_bits": log2(tile.geometry.BK),
            "wave_bytes": tile.lanes * tile.dma_bytes,
            "trip": self.program.tiles_per_trip * tile.row_bytes,
            "a_rows": self.binding.wave_rows(Factor.A),
            "b_rows": self.binding.wave_rows(Factor.B),
            "kept": self.kept,
            "group": declare,
            "resources": self._resources(),
            "fetches": self._fetches(),
            "places": self._places(),
        }

    def _resources(self) -> Iterator[str]:
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            words = {"name": operand.value, "pointer": operand.name, "where": where, "rows": self.tile.rows(operand)}
            yield from self.template.lines("resource", **words)

    def _fetches(self) -> Iterator[str]:
        tile, layout = self.tile, self.plan.layout
        lanes, each = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        words = {"lane_bits": log2(lanes), "lane_mask": lanes - 1, "chunk_bits": log2(each)}
        yield from self.template.lines("chunk", patterns=self.plan.patterns, **words)
        within = f" + (thread & {each - 1}) * {tile.dma_bytes}" if each > 1 else ""
        for pattern in range(self.plan.patterns):
            first = pattern * tile.dma_rows
            chunk = layout.exchange("chunk", f"(row + {first})" if first else "row", _SHIFT)
            words = {"pattern": pattern, "first": first}
            yield from self.template.lines("fetch", layout=layout, chunk=chunk, within=within, **words)

    def _places(self) -> Iterator[str]:
        tile, layout, start = self.tile, self.plan.layout, 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            name, rows = operand.value, self.binding.wave_rows(operand)
            yield from self.template.lines("row", name=name, where=where, rows=rows, pieces=self.plan.pieces)
            for piece in range(self.plan.pieces):
                group = f"(lane_group + {piece * tile.lane_groups})"
                chunk = layout.exchange(group, f"{name}_row", _SHIFT)
                words = {"name": name, "piece": piece, "start": start, "group": group, "chunk": chunk}
                yield from self.template.lines("place", tile=tile, layout=layout, **words)
            start += self.binding.buffer_bytes(operand)
