"""The kernel's shape in elements, and what its ops are in instructions."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection
from dataclasses import dataclass, replace

from rota.check import bad_field, check_ints, check_types
from rota.errors import DeclarationError
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, OpDesc
from rota.printing import Pasted
from rota.program.entry import Entry, Work
from rota.program.kinds import OpRole, Phase
from rota.program.lowered import LoweredProgram, Role
from rota.program.machine import LANES
from rota.targets.cdna import element_bytes_named, shape_named
from rota.targets.device import device_of

_WIDEST = 16  # bytes that one lane moves with one instruction: ds_read_b128, and a DMA of CDNA4
_SCALE_WIDTH = 4  # bytes of scales that one lane moves with one instruction
SCALED_BLOCK = 32
"""Elements of K that share a scale (OCP microscaling formats)."""
FLOAT_BLOCK = 128
"""Elements of K that share a scale in fp32."""
WAVE_GRIDS = {4: (2, 2), 8: (2, 4)}
"""How the waves of a workgroup share its tile, down and across."""


def check_waves(owner: object, waves: int) -> None:
    """So many waves have a grid."""
    if waves not in WAVE_GRIDS:
        raise bad_field(owner, "waves", waves, " or ".join(f"{n} ({a}x{b})" for n, (a, b) in WAVE_GRIDS.items()))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KernelGeometry(Pasted):
    """Workgroup tile (BM x BN x BK), MMA instruction shape, element size and counter costs per load.

    The upper-case names are the usual ones of kernel authors.  A cost of 0 tokens means "not counted": waits
    that would be derived from it become full drains, which is the safe reading.  None leaves a fragment's cost to the
    kernel, which knows how many waves share the tile.  `packed` elements share the `elem_bytes`: two of fp4 a byte.
    """

    BM: int = 256
    BN: int = 256
    BK: int = 64
    MMA_M: int = 16
    MMA_N: int = 16
    MMA_K: int = 32
    elem_bytes: int = 2
    simd_width: int = 8
    is_fp8: bool = False
    vm_per_load_a: int = 4
    vm_per_load_b: int = 4
    lgkm_per_load_a: int | None = None
    lgkm_per_load_b: int | None = None
    packed: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("BM", "BN", "BK", "MMA_M", "MMA_N", "MMA_K", "elem_bytes", "simd_width", "packed"), least=1)
        check_ints(self, ("vm_per_load_a", "vm_per_load_b"))
        stated = [name for name in ("lgkm_per_load_a", "lgkm_per_load_b") if getattr(self, name) is not None]
        check_ints(self, stated)
        check_types(self, {"is_fp8": bool})

    @property
    def line_bytes(self) -> int:
        """One row of a K-tile."""
        return self.BK * self.elem_bytes // self.packed

    @property
    def scale_line(self) -> int:
        """Bytes of scales of one row of a K-tile, one for each block of it."""
        return self.BK // SCALED_BLOCK

    def scale_loads(self, rows: int, waves: int) -> int:
        """Instructions with which each wave loads its share of the scales of this many rows, four bytes a lane."""
        return _whole(rows * self.scale_line, _SCALE_WIDTH * LANES * waves)

    def fragment_reads(self, waves: int, m_mmas: int = 2, n_mmas: int = 2) -> tuple[int, int]:
        """Instructions with which one wave reads its fragment of A, and of B: what each costs on lgkmcnt."""
        check_waves(self, waves)
        down, across = WAVE_GRIDS[waves]
        operand = (
            self.MMA_M * self.MMA_K * self.elem_bytes // self.packed // LANES
        )  # bytes that a lane gives to one instruction
        width = min(_WIDEST, max(operand, 1)) * LANES
        line = self.line_bytes
        return _whole(self.BM // (down * m_mmas) * line, width), _whole(self.BN // (across * n_mmas) * line, width)

    def dma_loads(self, waves: int, m_mmas: int = 2, n_mmas: int = 2) -> tuple[int, int]:
        """Instructions with which one wave loads its part of a tile of A, and of B: what each costs on vmcnt."""
        check_waves(self, waves)
        width = _WIDEST * LANES * waves
        line = self.line_bytes
        return _whole(self.BM // m_mmas * line, width), _whole(self.BN // n_mmas * line, width)


def _whole(size: int, width: int) -> int:
    """Instructions of `width` bytes that move `size` bytes."""
    return max(-(-size // width), 1)


# What the ops of a body declared in tiles represent.
#
# Ops of one kind share the work of a K-tile evenly, so the workgroup's tile, its waves and its MFMA are enough.

_MOVING = (OpRole.GLOBAL_LOAD, OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)


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

    Where a role knows one operand only, it represents both.
    """

    def __init__(self, program: LoweredProgram, shape: TileShape) -> None:
        geometry = shape.geometry
        self.shape = shape
        self.tiles = program.tiles_per_trip
        declared = [_find_declared(program, entry) for entry in program.kernel if entry.op.work is None]
        self.kinds = Tally((op.role, op.channel) for op in declared)
        rows, columns = shape.wave_tile
        self.mfmas = (rows // geometry.MMA_M) * (columns // geometry.MMA_N) * (geometry.BK // geometry.MMA_K)
        computes = sum(count for (role, _), count in self.kinds.items() if role is OpRole.COMPUTE)
        _check_fit(shape, self.kinds, even=computes == 0 or self.mfmas * self.tiles % computes == 0)
        self.program = program
        self.device = device_of(program.machine)

    def entry(self, entry: Entry) -> Entry:
        if entry.op.work is not None:
            return entry
        work = self.work(_find_declared(self.program, entry), entry.effect.tokens)
        return replace(entry, op=replace(entry.op, work=work))

    def work(self, op: OpDesc, tokens: int) -> Work:
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


def _find_declared(program: LoweredProgram, entry: Entry) -> OpDesc:
    if isinstance(entry.op.declared, OpDesc):
        return entry.op.declared
    raise DeclarationError.of(
        "D109",
        f"{program.name}: {entry.op} wasn't declared in tiles, and doesn't say what a wave issues for it",
        concerns=(entry.concern(),),
    )


def _alone(role: OpRole, kinds: Collection[tuple[OpRole, int]]) -> bool:
    return sum(other is role for other, _ in kinds) == 1


def _check_fit(shape: TileShape, kinds: Collection[tuple[OpRole, int]], *, even: bool) -> None:
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
        raise DeclarationError.of(
            "D109",
            "the instructions of a body declared in tiles don't follow from its geometry",
            evidence=tuple(("broken", rule) for rule in broken),
        )
