"""A launch on the native core.

The core says whether a run is clean; where it has doubts, the memory is restored, and NumPy runs the launch and says
what is wrong. So both must agree on what is clean. Three things don't end a run, because the core records all that
their findings say: waves at different barriers, equal values written to LDS or memory, and missing wait states. Single
instructions that only use registers, and that the core lacks, NumPy executes in place, on the core's registers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rota.errors import IsaError
from rota.isa.binary.elf import CODE_BASE
from rota.isa.binary.kernel_facts import LANES
from rota.isa.decoded import KernelProgram
from rota.isa.hazards.wait_states import early_evidence, early_message
from rota.isa.launch.interleaving import CoreFault, Interleaving, Landing, Wants
from rota.isa.launch.kernarg import Triple
from rota.isa.launch.processes import MIN_FORK_SECONDS, Tell, check_time, run_forked
from rota.isa.memory.memories import BASE, MOST_WAVES, Memory
from rota.isa.native.records import FAULT, NEED, OP, OPERAND, OTHER, PAIR, ROWS, SPACING, Packed, library, pack
from rota.isa.races import OneEnd, describe_range, report_equal_values
from rota.isa.registers import EXEC
from rota.isa.wave.wave import INDEXED, START, Faults, Wave

if TYPE_CHECKING:
    from rota.isa.launch.run import WaveGroup

_SLICE = 2_000_000  # instructions between two checks of the time limit
_LANDINGS = {Landing.LATEST: 0, Landing.EARLIEST: 1, Landing.ANY: 2}
_STARTING_ROWS = 3  # vector registers with initial values
_ENDED, _MORE, _NO_END = 0, 1, 2
ENDLESS, UNWANTED = -1, -2  # returned instead of a number of instructions
_GO_ON, _GAVE_UP = -3, -4
_SCALARS = 128  # of a NumPy wave
_MEETING = 121  # a barrier opened for waves at different s_barrier: a note, not a fault
_EARLY, _EQUAL, _WITHIN, _BETWEEN = 104, 304, 305, 306  # notes of the core; equal values in LDS, and in memory
_PIECES = 4  # per process, so that none waits long for the others
_KEPT = 8  # programs whose records are kept
_packed: dict[int, tuple[KernelProgram, Packed | None]] = {}
"""Whether a run that the core found faults in is worth the time of NumPy, which says what they are."""


def run_clean(
    program: KernelProgram,
    *,
    places: Sequence[tuple[int, Triple]],
    make: Callable[[tuple[int, Triple]], WaveGroup],
    memory: Memory,
    interleaving: Interleaving,
    most: int,
    ended: Callable[[int], None],
    processes: int = 1,
    wants: Wants = lambda _: True,
) -> int | None:
    """Runs all workgroups; returns the instructions executed, or None if the core found a possible fault.

    Returns ENDLESS if a wave executed `most` instructions, UNWANTED instead of either if nobody wants to know more. In
    all these cases memory is restored. Calls `ended` with the number of workgroups that have ended. Shares long work
    among `processes`.
    """
    packed = _records(program)
    if packed is None:
        return None
    before = memory.block.copy()
    first = make(places[0])
    run = _Run(
        new=partial(_Core, program, packed, memory, first),
        make=lambda place: first if place is places[0] else make(place),
        memory=memory,
        interleaving=interleaving,
        most=most,
        wants=wants,
    )
    executed = run.all(places, processes, ended)
    if executed is None or executed < 0:
        memory.block[:] = before
    return executed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    new: Callable[[], _Core]
    make: Callable[[tuple[int, Triple]], WaveGroup]
    memory: Memory
    interleaving: Interleaving
    most: int
    wants: Wants

    def all(self, places: Sequence[tuple[int, Triple]], processes: int, ended: Tell) -> int | None:
        """The instructions executed; None after a possible fault, ENDLESS or UNWANTED."""
        executed, began = 0, perf_counter()
        with self.new() as core:
            for done, group in enumerate(self._groups(core, places), 1):
                if group is None:
                    if not self.wants(core.faults()):
                        return UNWANTED
                    return ENDLESS if core.endless else None
                executed += group.executed
                ended(done)
                took, left = perf_counter() - began, len(places) - done
                if processes > 1 and left > 1 and took > MIN_FORK_SECONDS and took / done * left > 2 * MIN_FORK_SECONDS:
                    most = min(_PIECES * processes, int(took / done * left / MIN_FORK_SECONDS))
                    pieces = min(left, max(processes, most))
                    more = self._run_shared(core, places[done:], pieces, processes, lambda more: ended(done + more))  # noqa: B023  # called before it changes
                    if more is not None:
                        return executed + more
                    processes = 1  # workgroups that share memory run in one process
        return executed

    def _groups(self, core: _Core, places: Sequence[tuple[int, Triple]]) -> Iterator[WaveGroup | None]:
        """Each workgroup when it has ended; None after a possible fault."""
        for place in places:
            group = self.make(place)
            yield group if core.run(group, self.interleaving, self.most) else None

    def _run_shared(
        self, core: _Core, places: Sequence[tuple[int, Triple]], pieces: int, processes: int, ended: Tell
    ) -> int | None:
        """Runs the rest in processes; None, and nothing changed, after a possible fault or if pieces share memory."""
        cuts = [len(places) * number // pieces for number in range(pieces + 1)]
        work = [partial(self._run_piece, places[start:end]) for start, end in pairwise(cuts)]
        found = [each for each in run_forked(work, processes, ended) if each is not None]
        if len(found) < pieces:
            return None
        read, written = core.used()
        for each in found:
            reads, writes = each.used()
            if (writes & (read | written)).any() or (reads & written).any():
                return None
            read |= reads
            written |= writes
        words = self.memory.block.view(np.uint32)
        for each in found:
            words[np.flatnonzero(each.used()[1][: len(words)])] = each.values
            self.memory.faults.merge(each.notes)
        return sum(each.executed for each in found)

    def _run_piece(
        self, places: Sequence[tuple[int, Triple]], tell: Tell
    ) -> _Piece | None:  # pragma: no cover  # in a fork
        self.memory.faults.clear()
        executed = 0
        with self.new() as core:
            for done, group in enumerate(self._groups(core, places), 1):
                if group is None:
                    return None
                executed += group.executed
                tell(done)
            read, written = core.used()
        words = self.memory.block.view(np.uint32)
        values, bits = words[np.flatnonzero(written[: len(words)])], (np.packbits(read), np.packbits(written))
        return _Piece(bits=bits, values=values, executed=executed, notes=self.memory.faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What a process did: the dwords read and written as bits, the values written, and notes."""

    bits: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    values: NDArray[np.uint32]
    executed: int
    notes: Faults

    def used(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        read, written = (np.unpackbits(each).view(np.bool_) for each in self.bits)
        return read, written


def _records(program: KernelProgram) -> Packed | None:
    """The packed program; None if the core lacks an instruction."""
    found = _packed.get(id(program))
    if found is None:
        while len(_packed) >= _KEPT:
            _packed.pop(next(iter(_packed)))
        found = _packed[id(program)] = (program, pack(program))
    return found[1]


class _Core:
    def __init__(self, program: KernelProgram, packed: Packed, memory: Memory, first: WaveGroup) -> None:
        waves, lds_bytes, private = len(first.waves), first.waves[0].lds.size, first.waves[0].private.size
        core = library()
        layouts = {0: OPERAND, 1: OP, 2: FAULT, 4: SPACING, 5: PAIR, 6: NEED}
        if core is None or any(core.rota_size(number) != each.itemsize for number, each in layouts.items()):
            raise RuntimeError("the native core was built from other sources: reinstall rota")
        self._core, self._program, self._packed = core, program, packed
        self.endless = False  # did a wave execute too many instructions?
        self._acts = (ctypes.c_void_p * len(packed.ops))()
        records = packed.ops.ctypes.data, len(packed.ops)
        if core.rota_check(*records, packed.pool.ctypes.data, len(packed.pool)) or core.rota_acts(*records, self._acts):
            raise RuntimeError("a record is not as the native core needs it")
        self._group = core.rota_group_new(*records, packed.pool.ctypes.data, waves, lds_bytes, private)
        if not self._group:
            raise MemoryError(f"no room for a workgroup of {waves} waves and {lds_bytes} bytes of LDS")
        self._waves: list[Wave] = []
        self._views: list[tuple[NDArray[np.uint32], NDArray[np.uint32]]] = []
        self._other, code_at = OTHER(self._by_numpy), packed.code_at
        core.rota_group_code(self._group, code_at.ctypes.data, len(code_at), CODE_BASE, self._other)
        if packed.spacings is not None:
            core.rota_group_spacings(self._group, packed.spacings.pointers.ctypes.data)
        starts, ends = self._bounds = memory.bounds()
        self._users = np.zeros((3, len(memory.block) // 32 * 8 + 8), np.int32)  # for each dword; whole bytes of bits
        block, low, high, *users = (each.ctypes.data for each in (memory.block, starts, ends, *self._users))
        core.rota_group_memory(self._group, block, BASE, low, high, len(starts), *users, packed.shared)
        self._order = memory.order
        self._places: dict[int, Triple] = {}  # of workgroups, by number

    def used(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The dwords read and written so far, atomics included: processes work on copies of memory."""
        read, written = self._users[:2] != 0
        return read, written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._core.rota_group_free(self._group)

    def run(self, group: WaveGroup, interleaving: Interleaving, most: int) -> bool:
        core = self._core
        self._places[group.number] = group.waves[0].workgroup
        core.rota_group_start(self._group, group.number)
        rank = np.array([interleaving.rank(number) for number in range(MOST_WAVES)], np.int32)
        held = [self._program.architecture.no_wait(each.counter) for each in self._program.architecture.queues]
        seed = (interleaving.seed or 0) * 0x9E37_79B9 + group.number & 0xFFFF_FFFF
        drawn = interleaving.seed is not None
        core.rota_group_order(self._group, _LANDINGS[interleaving.landing], drawn, seed, rank.ctypes.data, most, *held)
        self._waves, self._views = group.waves, []
        for wave in group.waves:
            self._start(wave)
        state = _MORE
        with np.errstate(all="ignore"):
            while state == _MORE:
                state = core.rota_run(self._group, self._acts, min(_SLICE, most))
                check_time(0)
        self.endless = state == _NO_END
        if state != _ENDED or not self._note_faults(group):
            return False
        for wave in group.waves:
            pc, epoch = ctypes.c_int32(), ctypes.c_int32()
            core.rota_wave_end(self._group, wave.number, ctypes.byref(pc), ctypes.byref(epoch))
            wave.pc, wave.epoch, wave.ended = pc.value, epoch.value, True
        group.count_barriers()
        group.waves[0].executed = core.rota_executed(self._group)
        return True

    def _start(self, wave: Wave) -> None:
        core = self._core
        scalars = np.array(wave.s, np.uint32)
        ctypes.memmove(core.rota_scalars(self._group, wave.number), scalars.ctypes.data, scalars.nbytes)
        rows = np.ascontiguousarray(wave.v[:_STARTING_ROWS])
        ctypes.memmove(core.rota_vectors(self._group, wave.number), rows.ctypes.data, rows.nbytes)
        core.rota_set_exec(self._group, wave.number, wave.s[EXEC] | wave.s[EXEC + 1] << 32)
        core.rota_set_pc(self._group, wave.number, wave.pc)
        core.rota_set_scc(self._group, wave.number, wave.scc, wave.mode != START)

    def _by_numpy(self, number: int, pc: int) -> int:
        if not self._views:
            self._views = [self._registers(each) for each in range(len(self._waves))]
        wave, (vectors, scalars), core = self._waves[number], self._views[number], self._core
        if wave.v is not vectors:
            wave.v, wave.i, wave.f = vectors, vectors.view(np.int32), vectors.view(np.float32)
        wave.s, wave.scc = scalars.tolist(), core.rota_scc(self._group, number)
        wave.update_mask()
        known = len(wave.faults.findings())
        if wave.mode & INDEXED:  # the core reads registers by their names
            return _GAVE_UP
        try:
            self._program.steps[pc].act(wave)
        except IsaError:
            return _GAVE_UP
        scalars[:] = wave.s
        core.rota_set_exec(self._group, number, wave.s[EXEC] | wave.s[EXEC + 1] << 32)
        core.rota_set_scc(self._group, number, wave.scc, wave.mode != START)
        return _GO_ON if len(wave.faults.findings()) == known else _GAVE_UP

    def _registers(self, wave: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        at = self._core.rota_vectors(self._group, wave), self._core.rota_scalars(self._group, wave)
        words = [ctypes.cast(each, ctypes.POINTER(ctypes.c_uint32)) for each in at]
        return np.ctypeslib.as_array(words[0], (ROWS, LANES)), np.ctypeslib.as_array(words[1], (_SCALARS,))

    def faults(self) -> list[CoreFault]:
        """What was found in the last workgroup, but for waves at different barriers."""
        found = ((int(each["code"]), int(each["pc"]), int(each["other"])) for each in self._read_faults())
        return [each for each in found if each[0] != _MEETING]

    def _read_faults(self) -> NDArray[Any]:
        return self._read(self._core.rota_faults)

    def _read(self, what: Callable[..., int]) -> NDArray[Any]:
        count = ctypes.c_int32()
        at = what(self._group, ctypes.byref(count))
        return (
            np.frombuffer(ctypes.string_at(at, count.value * FAULT.itemsize), FAULT)
            if count.value
            else np.empty(0, FAULT)
        )

    def _note_faults(self, group: WaveGroup) -> bool:
        """True if the core found nothing that NumPy has to explain; what it noted becomes findings."""
        found = self._read_faults()
        if (found["code"] != _MEETING).any():
            return False
        for each in found:
            group.note_barriers({int(each["other"]): int(each["other_wave"]), int(each["pc"]): int(each["wave"])})
        notes = self._read(self._core.rota_notes)
        for kind in ((_EARLY, _EQUAL), (_WITHIN,), (_BETWEEN,)):  # NumPy judges memory when a workgroup ends
            for each in notes[np.isin(notes["code"], kind)]:
                self._explain(group, each)
        return True

    def _explain(self, group: WaveGroup, note: Any) -> None:  # noqa: ANN401  # a record of an array
        """Adds the finding that NumPy would add for it."""
        here, there = (self._program.steps[note[end]].instruction for end in ("pc", "other"))
        faults, wave, spacings = group.faults, ("wave", int(note["wave"])), self._packed.spacings
        octets = int(note["detail"]), int(note["detail1"])
        if note["code"] == _EARLY and spacings is not None:
            need, short = spacings.needs[note["detail"]], int(note["detail1"])
            faults.add("I104", here, early_message(here, need, short), wave, *early_evidence(need, short), other=there)
        elif note["code"] == _EQUAL:
            described = ("bytes", describe_range(int(note["row"]), *octets))
            report_equal_values(faults, here, there, wave, ("other wave", int(note["other_wave"])), described)
        else:
            one = OneEnd(instruction=here, workgroup=self._places[group.number], wave=int(note["wave"]))
            other = OneEnd(instruction=there, workgroup=self._places[int(note["row"])], wave=int(note["other_wave"]))
            self._order.report_equal_stores(one, other, octets)
