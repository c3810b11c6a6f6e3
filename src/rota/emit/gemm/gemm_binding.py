"""The machine instructions of a GEMM's ops, with coordinates in its tile, and a check that they make C = A x B^T."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rota.emit.gemm.gemm_loop import Verb, gemm_ops, packs_of
from rota.emit.gemm.gemm_tile import (
    HALVES,
    BlockAdd,
    BoundInstruction,
    ColumnPair,
    Dma,
    Element,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    ScaleDma,
    ScaleRead,
    block_adds,
)
from rota.emit.gemm.lds_layout import column_panels
from rota.emit.gemm.program_form import form_of
from rota.emit.text import GEOMETRY, no_gemm_op, no_product, refuse_count, unfit
from rota.program.entry import Entry, Place
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable, LoweredProgram

# What bound instructions compute.
#
# One wave's instructions are followed symbolically, K-tile by K-tile: from a DMA through LDS and registers to a
# block of C. That every wave sees what is followed here, whatever the others do, is what the schedule's proof says.

_MOST_TRIPS = 64  # a loop whose LDS slots are constants comes back to the same state after the first trip or the next

Block = tuple[int, int]
Bound = tuple[Entry, tuple[BoundInstruction, ...]]
State = tuple[frozenset[object], ...]


def check_semantics(binding: GemmBinding, program: LoweredProgram) -> None:
    """Every trip count until the state at the loop's edge, counted from the trip's k, was there before."""
    bound = {
        phase: [(entry, binding.instructions(entry)) for entry in program.phase(phase) if not entry.op.is_framework]
        for phase in Phase
    }
    replay = _Replay(binding)
    replay.check_owners([each for phase in Phase for each in bound[phase]])
    replay.run(bound[Phase.PROLOGUE], 0)
    seen: set[State] = set()
    for trips in range(_MOST_TRIPS):
        k = program.k_of(Phase.KERNEL, trips + 1)
        end = replay.fork()
        end.run(bound[Phase.EPILOGUE], k)
        end.check_complete(program.total_tiles(trips))
        state = replay.state(k)
        if state in seen:
            return
        seen.add(state)
        replay.run(bound[Phase.KERNEL], k)
    raise no_product(
        f"after {_MOST_TRIPS} trips LDS and registers still hold other K-tiles than at the end of any trip before",
        evidence=(("trips followed", _MOST_TRIPS),),
    )


@dataclass(slots=True)
class _Replay:
    """Which K-tile each DMA's place in LDS and each register holds, and what each block of C has summed."""

    binding: GemmBinding
    lds: dict[tuple[object, int], int] = field(default_factory=dict)
    registers: dict[object, int] = field(default_factory=dict)
    sums: dict[Block, set[tuple[int, int]]] = field(default_factory=dict)

    def fork(self) -> _Replay:
        sums = {block: set(taken) for block, taken in self.sums.items()}
        return _Replay(self.binding, dict(self.lds), dict(self.registers), sums)

    def state(self, k: int) -> State:
        """All of it, counted from k; complete sums no longer differ from nothing."""
        whole = min((self._whole(block) for block in self._blocks()), default=0)
        return (
            frozenset((place, tile - k) for place, tile in self.lds.items() if tile >= whole),
            frozenset((place, tile - k) for place, tile in self.registers.items() if tile >= whole),
            frozenset(
                (block, tile - k, step) for block in self.sums for tile, step in self.sums[block] if tile >= whole
            ),
            frozenset([whole - k]),
        )

    def run(self, bound: list[Bound], k: int) -> None:
        for entry, instructions in bound:
            for each in instructions:
                if isinstance(each, Dma):
                    self.lds[each.operand, each.lds] = k + each.k_tile
                elif isinstance(each, LdsRead):
                    self._take(each.target, self._find_tiles(Piece(each.operand, each.part, each.piece), each.lds))
                elif isinstance(each, PairRead):
                    self._take(each.target, self._find_tiles(self.binding.read_of(each.pair), each.lds))
                elif isinstance(each, PairPack):
                    self._pack(each)
                elif isinstance(each, ScaleDma):
                    self.lds[("scales", each.operand), each.lds] = k + each.k_tile
                elif isinstance(each, ScaleRead):
                    self._read_scales(each)
                elif isinstance(each, BlockAdd):
                    self._add(entry, each)
                else:
                    self._multiply(entry, each)

    def _find_tiles(self, piece: Piece, lds: int) -> set[int | None]:
        """The K-tiles of all waves' rows of the part, which several DMAs may have brought."""
        tile = self.binding.tile
        stage = (lds // tile.tile_bytes(piece.operand)) * tile.tile_bytes(piece.operand)
        each = tile.dma_rows * tile.row_bytes
        return {self.lds.get((piece.operand, stage + number * each)) for number in self.binding.find_dmas(piece)}

    def _pack(self, pack: PairPack) -> None:
        """A register is of one K-tile if both reads are, and a piece if all its registers are."""
        tile = self.binding.tile
        self._take((pack.target, pack.register), set(map(self.registers.get, pack.uses)))
        registers = range(tile.piece_bytes(Factor.B) // tile.register_bytes)
        self._take(pack.target, {self.registers.get((pack.target, each)) for each in registers})

    def _read_scales(self, read: ScaleRead) -> None:
        tile, binding, line = self.binding.tile, self.binding, self.binding.tile.geometry.scale_line
        stage = read.lds // tile.scale_bytes(read.operand) * tile.scale_bytes(read.operand)
        first = binding.first_row(read.operand, read.part)
        starts = (first + wave * binding.wave_rows(read.operand) for wave in range(tile.across(read.operand)))
        each = tile.scale_dma_bytes
        numbers = {row * line // each for start in starts for row in range(start, start + tile.side)}
        found = {self.lds.get((("scales", read.operand), stage + number * each)) for number in numbers}
        self._take(read.target, found)

    def _take(self, place: object, found: set[int | None]) -> None:
        self.registers.pop(place, None)
        if len(found) == 1 and (k_tile := found.pop()) is not None:
            self.registers[place] = k_tile

    def _multiply(self, entry: Entry, mfma: Mfma) -> None:
        k_tile = _find_single(entry, set(map(self.registers.get, mfma.uses)), "multiply A and B")
        if mfma.sum_copy is None:
            self._sum(entry, (mfma.a_part, mfma.b_part), k_tile, mfma.step)
            return
        if mfma.step == 0:  # which begins the sum
            for step in range(self.binding.tile.steps):
                self.registers.pop((mfma.block, step), None)
        self.registers[mfma.block, mfma.step] = k_tile

    def _add(self, entry: Entry, add: BlockAdd) -> None:
        """A block's sum, whole, and the scales of its own K-tile; what is scaled is added after it."""
        block, steps = (add.a_part, add.b_part), range(self.binding.tile.steps)
        tiles = {self.registers.get((add.block, step)) for step in steps}
        tiles.add(self.registers.get(add.scales[not add.adds]))
        k_tile = _find_single(entry, tiles, "scale a block's sum by the scales")
        if add.adds and add.half == HALVES - 1:
            for step in steps:
                self._sum(entry, block, k_tile, step)

    def _sum(self, entry: Entry, block: Block, k_tile: int, step: int) -> None:
        taken = self.sums.setdefault(block, set())
        if (k_tile, step) in taken:
            raise no_product(
                f"{entry.op} adds a product to C that was added before",
                concerns=[entry.concern()],
                evidence=(("K-tile", k_tile), *self._where(block)),
            )
        taken.add((k_tile, step))

    def check_owners(self, bound: list[Bound]) -> None:
        """An accumulator is some blocks of C, always the same ones, and no other accumulator's."""
        blocks_of: dict[Place, tuple[Entry, set[Block]]] = {}
        owner: dict[Block, tuple[Place, Entry]] = {}
        for entry, instructions in bound:
            summing = BlockAdd if self.binding.tile.block_sums else Mfma
            blocks = {(each.a_part, each.b_part) for each in instructions if isinstance(each, summing)}
            for place in entry.effect.writes if blocks else ():
                first, usual = blocks_of.setdefault(place, (entry, blocks))
                if blocks != usual:
                    raise no_product(
                        f"{entry.op} adds another block of C to the {place} than {first.op} does",
                        concerns=(first.concern(), entry.concern()),
                    )
                for block in blocks:
                    other, before = owner.setdefault(block, (place, entry))
                    if other != place:
                        raise no_product(
                            f"{before.op} and {entry.op} sum one block of C in two accumulators",
                            concerns=(before.concern(), entry.concern()),
                            evidence=(("accumulators", f"{other}, {place}"), *self._where(block)),
                        )

    def check_complete(self, total: int) -> None:
        """Every block has summed all steps of all K-tiles, and nothing else."""
        steps = self.binding.tile.steps
        due = {(tile, step) for tile in range(total) for step in range(steps)}
        for block in self._blocks():
            taken = self.sums.get(block, set())
            if taken != due:
                raise no_product(
                    f"a block of C sums {len(taken & due)} products of A and B, but is made of {len(due)}"
                    + (f", and {len(taken - due)} beyond the end of K" if taken - due else ""),
                    evidence=(("K-tiles", total), ("products of each", steps), *self._where(block)),
                )

    def _blocks(self) -> list[Block]:
        tile = self.binding.tile
        return [(m, n) for m in range(tile.parts(Factor.A)) for n in range(tile.parts(Factor.B))]

    def _whole(self, block: Block) -> int:
        """So many K-tiles, from the first on, are summed."""
        taken, steps = self.sums.get(block, set()), range(self.binding.tile.steps)
        whole = 0
        while all((whole, step) in taken for step in steps):
            whole += 1
        return whole

    def _where(self, block: Block) -> list[tuple[str, str | int]]:
        """A block's place in the workgroup's tile, for the first wave."""
        side = self.binding.tile.side
        rows, columns = (
            f"{start} to {start + side - 1}"
            for start in (self.binding.first_row(operand, part) for operand, part in zip(Factor, block, strict=True))
        )
        return [("rows of C", f"{rows} of the first wave"), ("columns", columns)]


def _find_single(entry: Entry, tiles: set[int | None], does: str) -> int:
    if len(tiles) == 1 and (k_tile := next(iter(tiles))) is not None:
        return k_tile
    held = sorted("none" if each is None else str(each) for each in tiles)
    raise no_product(
        f"{entry.op} doesn't {does} of one and the same K-tile",
        concerns=[entry.concern()],
        evidence=(("K-tiles in its registers", ", ".join(held)),),
    )


class GemmBinding:
    """Gives the instructions of an entry.

    A slice is a run of the tile's rows, and every wave multiplies a run of each slice, so that an op of a slice is the
    same for all waves.  `states_addresses` is whether the source itself writes where in LDS a DMA puts its bytes.
    """

    states_addresses = True

    def __init__(self, compiled: Lowerable, tile: GemmTile) -> None:
        """What computes anything but C = A x B^T is refused."""
        program = compiled.lowered
        self.tile = tile
        self._operands = form_of(program).operands(tile)
        self.buffers = self._operands.buffers
        self.scale_stages = self._operands.scale_stages
        by_verb = {
            Verb.LOAD: self._dmas,
            Verb.READ: self._reads,
            Verb.MULTIPLY: self._mfmas,
            Verb.TURN: self._packs,
            Verb.ADD: self._adds,
        }
        self._makers = {kind: by_verb[op.verb] for kind, op in gemm_ops(tile).items()}
        for entry in program.entries:
            if not entry.op.is_framework and entry.op.kind not in self._makers:
                raise no_gemm_op(entry.op, entry.op.kind, entry.concern())
        for operand in Factor:
            tile.slice_rows(operand, self.buffers[operand].slices)
        if program.lds_bytes is not None and program.lds_bytes != self.lds_bytes:
            raise unfit(
                f"the schedule takes {program.lds_bytes} bytes of LDS, the tiles of this geometry {self.lds_bytes}",
                evidence=(("the schedule", program.lds_bytes), ("this geometry", self.lds_bytes)),
                fixes=(GEOMETRY,),
            )
        check_semantics(self, program)

    def matrix_instruction(self, step: int) -> tuple[str, ...]:
        return self.tile.instruction, *self.tile.modifiers(step)

    @property
    def lds_bytes(self) -> int:
        scales = sum(stages * self.tile.scale_bytes(operand) for operand, stages in self.scale_stages.items())
        return sum(self.buffer_bytes(operand) for operand in Factor) + scales

    @property
    def copies(self) -> int:
        return self._operands.copies

    def buffer_bytes(self, operand: Factor) -> int:
        return self.buffers[operand].stages * self.tile.tile_bytes(operand)

    def scale_start(self, operand: Factor) -> int:
        """Where an operand's scales begin in LDS: after both operands, A's first."""
        first = sum(self.buffer_bytes(each) for each in Factor)
        before = self.scale_stages[Factor.A] * self.tile.scale_bytes(Factor.A) if operand is Factor.B else 0
        return first + before

    def first_row(self, operand: Factor, part: int) -> int:
        """Where a part begins in the workgroup's tile, for the first wave."""
        slices = self.buffers[operand].slices
        own = self.tile.parts(operand) // slices
        return part // own * (self.tile.rows(operand) // slices) + part % own * self.tile.side

    def wave_rows(self, operand: Factor) -> int:
        """How many rows further the next wave's parts begin."""
        return self.tile.own_rows(operand) // self.buffers[operand].slices

    def column(self, part: int) -> int:
        """The first column of a part of C, for the first wave; the others are a `column_step` apart."""
        return self.first_row(Factor.B, part - part % self.column_step) + part % self.column_step

    @property
    def column_step(self) -> int:
        """The columns of two parts take turns where B is read in pairs of them."""
        return 2 if self.tile.pairs else 1

    def lane(self, read: Piece) -> int:
        """Which of an operand's lane addresses a piece is read through: one for each piece, or for each part."""
        return read.part if self.tile.by_columns(read.operand) else read.piece

    def read_offset(self, read: Piece) -> int:
        """How far after that address it lies, in the first buffer."""
        if self.tile.by_columns(read.operand):
            return column_panels(self.tile).offset(read.piece)
        return self.first_row(read.operand, read.part) * self.tile.row_bytes

    def find_dmas(self, read: Piece) -> set[int]:
        """The DMAs that bring a piece of all waves, by their numbers among the operand's."""
        operand, tile = read.operand, self.tile
        first = self.first_row(operand, read.part)
        starts = (first + wave * self.wave_rows(operand) for wave in range(tile.across(operand)))
        if tile.by_columns(operand):
            return column_panels(tile).find_dmas(read.piece, starts)
        return {row // tile.dma_rows for start in starts for row in range(start, start + tile.side)}

    def read_of(self, pair: ColumnPair) -> Piece:
        """A read of a pair of parts, as one of the first of them: so it is counted, addressed and brought."""
        return Piece(Factor.B, 2 * pair.pair, pair.number)

    def instructions(self, entry: Entry) -> tuple[BoundInstruction, ...]:
        if entry.op.is_framework:
            return ()
        found = tuple(self._makers[entry.op.kind](entry))
        counted = entry.effect.tokens
        if entry.op.kind.computes:
            counted = entry.op.work.instructions if entry.op.work else len(found)
        if counted != len(found):
            due, geometry = len(found), self.tile.geometry
            wrong = "its time is" if entry.op.kind.computes else "the waits after it count"
            raise refuse_count(
                f"{entry.op} is declared as {counted} instructions of each wave, but takes {due} here: {wrong} wrong",
                concerns=[entry.concern()],
                evidence=(
                    ("declared", counted),
                    ("needed", due),
                    ("here", f"a tile of {geometry.BM}x{geometry.BN}x{geometry.BK} by {self.tile.waves} waves"),
                ),
                fixes=[self._operands.fix(entry, due), f"or {GEOMETRY}"],
            )
        return found

    def _dmas(self, entry: Entry) -> Iterator[BoundInstruction]:
        if (scales := self._operands.scale_loads(entry)) is not None:
            operand, numbers = scales
            stage = entry.effect.writes[0].copy * self.tile.scale_bytes(operand)
            for number in numbers:
                lds = stage + number * self.tile.scale_dma_bytes
                yield ScaleDma(operand, lds, number, self._operands.k_tile(entry))
            return
        operand, numbers = self._operands.loads(entry)
        stage = entry.effect.writes[0].copy * self.tile.tile_bytes(operand)
        bytes_each = self.tile.dma_rows * self.tile.row_bytes
        for number in numbers:
            yield Dma(operand, stage + number * bytes_each, number, self._operands.k_tile(entry))

    def _reads(self, entry: Entry) -> Iterator[BoundInstruction]:
        source, target = entry.effect.reads[0], entry.effect.writes[0]
        if (scales := self._operands.scale_parts(target)) is not None:
            operand, parts = scales
            start = source.copy * self.tile.scale_bytes(operand)
            for part in parts:
                lds = start + self.first_row(operand, part) * self.tile.geometry.scale_line
                yield ScaleRead(operand, lds, part, self._operands.copy(target))
            return
        for pair in self._operands.pairs(target):
            lds = source.copy * self.tile.tile_bytes(Factor.B) + self.read_offset(self.read_of(pair))
            yield PairRead(lds, pair, self._operands.copy(target))
        for read in () if self._operands.pairs(target) else self._operands.pieces(entry, target):
            lds = source.copy * self.tile.tile_bytes(read.operand) + self.read_offset(read)
            yield LdsRead(read.operand, lds, read.part, read.piece, self._operands.copy(target))

    def _packs(self, entry: Entry) -> Iterator[BoundInstruction]:
        operands, target = self._operands, entry.effect.writes[0]
        held = {pair: operands.copy(place) for place in entry.effect.reads for pair in operands.pairs(place)}
        for piece in operands.pieces(entry, target):
            yield from packs_of(self.tile, piece, held, operands.copy(target))

    def _mfmas(self, entry: Entry) -> Iterator[BoundInstruction]:
        held = {
            piece: self._operands.copy(place)
            for place in entry.effect.reads
            if self._operands.scale_parts(place) is None
            for piece in self._operands.pieces(entry, place)
        }
        scales = self._scales(entry)
        sum_copy = self._operands.copy(entry.effect.writes[0]) if self.tile.block_sums else None
        parts = {operand: sorted({each.part for each in held if each.operand is operand}) for operand in Factor}
        per_step = {operand: self.tile.step_pieces(operand) for operand in Factor}
        for k in sorted({each.piece // per_step[each.operand] for each in held}):
            for m in parts[Factor.A]:
                for n in parts[Factor.B]:
                    a, b = (
                        tuple(
                            held[Piece(operand, part, piece)]
                            for piece in range(k * per_step[operand], (k + 1) * per_step[operand])
                        )
                        for operand, part in ((Factor.A, m), (Factor.B, n))
                    )
                    copies = (scales[Factor.A, m], scales[Factor.B, n]) if scales else ()
                    yield Mfma(k, m, n, a, b, copies, sum_copy)

    def _adds(self, entry: Entry) -> Iterator[BoundInstruction]:
        scales = self._scales(entry)
        for place in entry.effect.reads:
            if (parts := self._operands.sums(place)) is None:
                continue
            copy = self._operands.copy(place)
            for m in parts[Factor.A]:
                for n in parts[Factor.B]:
                    yield from block_adds(m, n, copy, (scales[Factor.A, m], scales[Factor.B, n]))

    def _scales(self, entry: Entry) -> dict[tuple[Factor, int], int]:
        return {
            (scaled[0], part): self._operands.copy(place)
            for place in entry.effect.reads
            if (scaled := self._operands.scale_parts(place)) is not None
            for part in scaled[1]
        }


class InterleavedBinding(GemmBinding):
    """Waves take turns at the parts of a slice: a part of all waves together is one run of rows.

    That is how languages of tiles deal them out: an op on such a run is one instruction of every wave.  Addresses are
    the compiler's.
    """

    states_addresses = False

    def matrix_instruction(self, step: int) -> tuple[str, ...]:
        """Of fp8 with scales, which are 1."""
        del step
        if self.tile.element is Element.FP8:
            return self.tile.instruction.replace("v_mfma_", "v_mfma_scale_"), "op_sel_hi:[0,0,0]"
        return (self.tile.instruction,)

    def first_row(self, operand: Factor, part: int) -> int:
        slices = self.buffers[operand].slices
        slice_, own = divmod(part, self.tile.parts(operand) // slices)
        return slice_ * (self.tile.rows(operand) // slices) + own * self.tile.across(operand) * self.tile.side

    def wave_rows(self, operand: Factor) -> int:
        """How many rows further the next wave's parts begin: it is its turn."""
        del operand
        return self.tile.side
