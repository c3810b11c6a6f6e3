"""What the ops of a body declared in tiles stand for: takes a program and a `TileShape`, gives it with its work.

Ops of one kind share the work of a K-tile evenly, so the workgroup's tile, its waves and its MFMA are enough.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection
from dataclasses import dataclass, replace

from rota.check import check_types
from rota.errors import DeclarationError, Finding
from rota.pipeline.geometry import WAVE_GRIDS, KernelGeometry, check_waves
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import CHANNEL_A, CHANNEL_B
from rota.program.entry import Entry, Work
from rota.program.kinds import OpRole
from rota.program.lowered import LoweredProgram, Role
from rota.program.phase import Phase
from rota.targets.device import device_of
from rota.targets.mfma import element_bytes_named, shape_named

_MOVING = (OpRole.GLOBAL_LOAD, OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)
_WIDEST = 16  # bytes that one lane moves with one instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShape:
    """What a tile-granular body leaves open: the workgroup's tile, its waves (4 as 2x2, 8 as 2x4), the MFMA."""

    geometry: KernelGeometry
    waves: int
    instruction: str

    def __post_init__(self) -> None:
        check_types(self, {"geometry": KernelGeometry, "instruction": str})
        check_waves(self, self.waves)

    @property
    def wave_tile(self) -> tuple[int, int]:
        """Rows and columns that one wave computes."""
        down, across = WAVE_GRIDS[self.waves]
        return self.geometry.BM // down, self.geometry.BN // across

    def fill(self, program: LoweredProgram) -> LoweredProgram:
        """The program with the work of its ops, and with its waves shared out among its roles.

        Ops that say their work themselves keep it; if all do, so does the program keep its waves.
        """
        return with_work(program, self)


def with_work(program: LoweredProgram, shape: TileShape) -> LoweredProgram:
    """The program with the work that follows from the shape wherever an op doesn't say its own."""
    if all(entry.op.work is not None for entry in program.entries):
        return program
    sharing = _Sharing(program, shape)
    phases = {phase: [sharing.entry(entry) for entry in program.phase(phase)] for phase in Phase}
    roles = tuple(
        Role(role.name, (shape.waves + number) // len(program.roles), role.does)
        for number, role in zip(reversed(range(len(program.roles))), program.roles, strict=True)
    )
    return replace(program.with_phases(phases), waves=shape.waves, roles=roles)


class _Sharing:
    """Each kind of op (role and operand) moves or computes one K-tile's worth per tile, in equal parts.

    Where a role knows one operand only, it stands for both.
    """

    def __init__(self, program: LoweredProgram, shape: TileShape) -> None:
        geometry = shape.geometry
        self.shape = shape
        self.tiles = program.tiles_per_trip
        declared = [_declared(program, entry) for entry in program.kernel if entry.op.work is None]
        self.kinds = Tally((op.role, op.channel) for op in declared)
        rows, columns = shape.wave_tile
        self.mfmas = (rows // geometry.MMA_M) * (columns // geometry.MMA_N) * (geometry.BK // geometry.MMA_K)
        computes = sum(count for (role, _), count in self.kinds.items() if role is OpRole.COMPUTE)
        _check_fit(shape, self.kinds, even=computes == 0 or self.mfmas * self.tiles % computes == 0)
        self.program = program
        self.device = device_of(program.machine)

    def entry(self, entry: Entry) -> Entry:
        """The entry with its work."""
        if entry.op.work is not None:
            return entry
        work = self.work(_declared(self.program, entry), entry.effect.tokens)
        return replace(entry, op=replace(entry.op, work=work))

    def work(self, op: OpDesc, tokens: int) -> Work:
        """What one wave issues for an op."""
        shape, geometry = self.shape, self.shape.geometry
        parts = self.kinds[op.role, op.channel] / self.tiles
        if op.role is OpRole.COMPUTE:
            return Work(round(self.mfmas / parts), 0, shape.instruction)
        if op.role not in _MOVING:
            return Work(max(self.device.rates.slots(op.latency), 1))
        fragment = op.role is OpRole.FRAGMENT_LOAD
        rows, columns = shape.wave_tile if fragment else (geometry.BM, geometry.BN)
        extent = rows + columns if _alone(op.role, self.kinds) else {CHANNEL_A: rows, CHANNEL_B: columns}[op.channel]
        own = round(extent * geometry.BK * geometry.elem_bytes / parts / (1 if fragment else shape.waves))
        # A cost of one token says "not counted", so that waits drain; then the widest instruction is meant.
        count = tokens if tokens > 1 else max(own // (_WIDEST * self.device.lanes.value), 1)
        return Work(count, own // count)


def _declared(program: LoweredProgram, entry: Entry) -> OpDesc:
    if isinstance(entry.op.declared, OpDesc):
        return entry.op.declared
    raise DeclarationError(
        Finding(
            code="D109",
            message=f"{program.name}: {entry.op} wasn't declared in tiles, and doesn't say what a wave issues for it",
            concerns=(entry.concern(),),
        )
    )


def _alone(role: OpRole, kinds: Collection[tuple[OpRole, int]]) -> bool:
    """Has the role one operand only?"""
    return sum(other is role for other, _ in kinds) == 1


def _check_fit(shape: TileShape, kinds: Collection[tuple[OpRole, int]], *, even: bool) -> None:
    """Do whole instructions follow from the shape?"""
    geometry, name = shape.geometry, shape.instruction
    rows, columns = shape.wave_tile
    down, across = WAVE_GRIDS[shape.waves]
    sides = geometry.MMA_M, geometry.MMA_N, geometry.MMA_K
    named = shape_named(name)
    rules = {
        f"MMA_M, MMA_N and MMA_K, {'x'.join(map(str, sides))}, are those of {name}": named in (None, sides),
        f"elem_bytes, {geometry.elem_bytes}, is the size of {name}'s operands": named is None
        or geometry.elem_bytes == element_bytes_named(name),
        "packed is 1: fp4 is declared by values alone": geometry.packed == 1,
        f"{shape.waves} waves, {down}x{across}, share BM x BN in whole MFMAs": (rows * down, columns * across)
        == (geometry.BM, geometry.BN)
        and rows % geometry.MMA_M == columns % geometry.MMA_N == 0,
        "BK is a multiple of MMA_K": geometry.BK % geometry.MMA_K == 0,
        "compute ops share the MFMAs evenly": even,
        "what ops move belongs to A or B": all(
            channel in (CHANNEL_A, CHANNEL_B) or _alone(role, kinds) for role, channel in kinds if role in _MOVING
        ),
    }
    broken = tuple(rule for rule, holds in rules.items() if not holds)
    if broken:
        raise DeclarationError(
            Finding(
                code="D109",
                message="the instructions of a body declared in tiles don't follow from its geometry",
                evidence=tuple(("broken", rule) for rule in broken),
            )
        )
