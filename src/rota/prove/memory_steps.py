"""Memory ops and waits: takes a wave_set and an operation, gives what is under way behind it.

Vector memory ops return in order (a policy that can be doubted), LDS ops in order among themselves, scalar loads in any
order; a flat op counts on both counters: its registers are there when both were waited for, and what it does to LDS is
done when lgkmcnt was, since that counts LDS alone.  A scalar store may read its data until it is waited for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Sequence

import numpy as np

from rota.isa.wave.operand import M0, SCALAR, SHARED_BASE, File
from rota.prove.decisions import (
    ALL,
    Arc,
    ArcLookup,
    Decided,
    Decisions,
    Path,
    Span,
    hull,
    iterate_leaves,
    plain_span,
    span_of,
)
from rota.prove.evaluation import Evaluator
from rota.prove.judge import Judge
from rota.prove.operation import VECTORS, Operation, OperationKind, rows_of
from rota.prove.state import Accesses, Half, InFlight, LdsUse, Mask, Masks, WaveSet, lanes_of
from rota.prove.symbol import GROUP, LANE, M32, WAVE, Lanes, Linear, Symbol, Value, key_of, plus, spread_of
from rota.prove.widening import ProductState, Recorder

_LANES = 64


class TouchedBytes:
    """Byte masks of one kernel; the same addresses give the same mask at once."""

    def __init__(self, size: int, masks: Masks) -> None:
        self.size, self.masks = size, masks
        self.accesses = Accesses()
        self._known: dict[Hashable, tuple[LdsUse, int | None]] = {}
        self._kept: dict[Hashable, bool] = {}  # addresses that stay inside, whatever a path has decided
        self._one_wave: dict[Hashable, tuple[int, int | None]] = {}

    def everything(self, operation: Operation, how: str, waves: int) -> LdsUse:
        """An access that may be anywhere."""
        return self.accesses.make(operation.number, how, ((1 << self.size) - 1,) * waves, exact=False)

    def of(self, operation: Operation, how: str, address: Value, active: Mask, stride: int = 0) -> LdsUse:
        """The access of an op at an address, of the lanes that may be active; with a stride, of lane after lane."""
        key = (operation.number, key_of(address), active)
        if key not in self._known:
            self._known[key] = self._of(operation, how, address, active, stride)
        return self._known[key][0]

    def stray(self, operation: Operation, address: Value, active: Mask) -> int | None:
        """The first byte outside of LDS of an access that `of` was asked about, if its address is known."""
        return self._known[operation.number, key_of(address), active][1]

    def _of(
        self, operation: Operation, how: str, address: Value, active: Mask, stride: int
    ) -> tuple[LdsUse, int | None]:
        lanes = self.masks.possible(active)
        exact = active.leaf is not None
        if isinstance(address, Linear):
            octets = self._range(address, operation, active, stride)
            return self.accesses.make(operation.number, how, octets, exact=False), None
        waves = len(lanes)
        spread: Lanes = np.broadcast_to(np.asarray(address, np.int64), (waves, _LANES)) + stride * np.arange(_LANES)
        found = [self._wave(operation, spread[wave], lanes[wave]) for wave in range(waves)]
        octets = tuple(used for used, _ in found)
        stray = next((place for _, place in found if place is not None), None)
        return self.accesses.make(operation.number, how, octets, exact=exact), stray

    def _wave(self, operation: Operation, spread: Lanes, lanes: int) -> tuple[int, int | None]:
        key = (operation.extents, spread.tobytes(), lanes)
        found = self._one_wave.get(key)
        if found is not None:
            return found
        chosen, stray = spread[lanes_of((lanes,))[0]], None
        used = np.zeros(self.size, np.uint8)
        for offset, size in operation.extents:
            places = ((chosen[:, None] + (offset + np.arange(size))) & M32).reshape(-1)
            inside = places < self.size
            if not inside.all():
                stray = int(places[~inside][0]) if stray is None else stray
                places = places[inside]
            used[places] = 1
        octets = int.from_bytes(np.packbits(used, bitorder="little").tobytes(), "little")
        self._one_wave[key] = octets, stray
        return octets, stray

    def _range(self, address: Linear, operation: Operation, active: Mask, stride: int) -> tuple[int, ...]:
        """All bytes between the least and the most that an unknown address can be."""
        lanes = self.masks.possible(active)
        found = _spread(_bounds(address, active), operation, stride)
        first, last = found if found is not None else (0, self.size)
        octets = (1 << min(last, self.size)) - (1 << min(first, self.size))
        return tuple(octets if each else 0 for each in lanes)

    def beyond(
        self, operation: Operation, address: Value, wave_set: WaveSet, known: Decisions, stride: int = 0
    ) -> Span | None:
        """Where an unknown address may be if it may be outside of LDS; None if it is known to stay inside."""
        active = wave_set.exec
        if not isinstance(address, Linear) or not any(self.masks.possible(active)):
            return None
        key = (operation.number, key_of(address), active)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = self._inside(_bounds(address, active), operation, stride)
        if kept:
            return None

        def held(symbol: Symbol) -> Arc:
            if symbol.spread == GROUP:
                return known.arc_of(symbol)
            return functools.reduce(hull, (known.arc_of(symbol, wave) for wave in wave_set.waves))

        bounds = _bounds(address, active, held)
        return None if self._inside(bounds, operation, stride) else bounds

    def _inside(self, bounds: Span, operation: Operation, stride: int) -> bool:
        found = _spread(bounds, operation, stride)
        return found is not None and found[1] <= self.size


def _spread(bounds: Span, operation: Operation, stride: int) -> Span | None:
    """From the first byte to behind the last one; None if a sum may wrap, and so come to any byte."""
    first = bounds[0] + min(offset for offset, _ in operation.extents)
    last = bounds[1] + max(offset + size for offset, size in operation.extents) + stride * (_LANES - 1)
    return (first, last) if first >= 0 and last <= M32 + 1 else None


def _bits(symbol: Symbol) -> Arc:
    return 0, min(symbol.bits, M32)


def _bounds(address: Linear, active: Mask, held: ArcLookup = _bits) -> Span:
    """The least and the most that the address is in any lane that is active."""
    found = [span_of(address, arcs, held) for arcs, leaf in iterate_leaves(active, {}) if any(leaf)]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else (0, 0)


_MOST_UNORDERED = 64
_SHORT = re.compile(r"^(?:ds_read_|[a-z]+_load_)u(?P<size>8|16|byte|short)$")  # what fills the rest with zeros


class MemorySteps:
    """Issues and retires memory ops."""

    def __init__(
        self, evaluator: Evaluator, touched: TouchedBytes, judge: Judge, *, holds: tuple[int, int], constants: dict[int, int],
        evaluated: Sequence[bool], in_order: bool = True, flat_lds: bool = False, m0_is_short: bool = False,
        lds_in_bounds: bool = False, recorder: Recorder | None = None,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._evaluator, self._touched, self._judge, self._holds = evaluator, touched, judge, holds
        self._constants, self._in_order, self.flat_lds = constants, in_order, flat_lds
        self._short_m0, self._lds_in_bounds = m0_is_short, lds_in_bounds
        self.accesses = touched.accesses
        self._evaluated, self._rows = evaluated, dict[int, tuple[int, ...]]()
        self.sites: dict[int, bool] = {}
        self._outside: dict[Hashable, tuple[Path, Path]] = {}  # with what they go on, whose id is in the key
        self.loads_twice = self.assumed_in_bounds = False

    # Waits.

    def wait(self, wave_set: WaveSet, operation: Operation) -> None:
        """Retires what a wait covers."""
        vm, lgkm = operation.waits
        if vm is not None and (self._in_order or vm == 0):
            self._retire_vm(wave_set, vm)
        if lgkm is not None:
            self._retire_ds(wave_set, lgkm)
            if lgkm == 0:
                wave_set.sm = ()
        self._judge.waited(wave_set, operation)
        if wave_set.flat:
            self._retire_flat(wave_set, operation)
        wave_set.update_pending()

    def _retire_vm(self, wave_set: WaveSet, most: int) -> None:
        gone, wave_set.vm = (
            wave_set.vm[: max(len(wave_set.vm) - most, 0)],
            wave_set.vm[max(len(wave_set.vm) - most, 0) :],
        )
        self._cover(wave_set, gone)

    def _retire_ds(self, wave_set: WaveSet, most: int) -> None:
        gone, wave_set.ds = (
            wave_set.ds[: max(len(wave_set.ds) - most, 0)],
            wave_set.ds[max(len(wave_set.ds) - most, 0) :],
        )
        self._cover(wave_set, gone)

    def _retire_flat(self, wave_set: WaveSet, operation: Operation) -> None:
        waited = {name for name, count in zip(("vm", "lgkm"), operation.waits, strict=True) if count == 0}
        left = []
        for each, seen in wave_set.flat:
            now, flight = seen | waited, each
            if "lgkm" in waited:  # compilers order LDS by this counter alone, whatever instruction went there
                self._cover(wave_set, (flight,))
                flight = flight._replace(access=None)
            if len(now) < 2 and not flight.only_counts:
                left.append((flight, frozenset(now)))
        wave_set.flat = tuple(left)

    def _cover(self, wave_set: WaveSet, gone: tuple[InFlight, ...]) -> None:
        for flight in gone:
            access = flight.access
            if access is None:
                continue
            if access in wave_set.covered and access.how == "dma":
                access = self.accesses.make(access.number, access.how, access.bytes, exact=access.exact, again=True)
            wave_set.covered.setdefault(access, flight)

    def find_refilled(self, wave_set: WaveSet, operation: Operation) -> int:
        """Registers that an earlier load on the same counter fills: in order, the later one comes back later."""
        if operation.kind is OperationKind.VMEM and not self._in_order:
            return 0
        mine, others = (
            (wave_set.vm, wave_set.ds) if operation.kind is OperationKind.VMEM else (wave_set.ds, wave_set.vm)
        )
        rows = 0
        for each in mine:
            rows |= each.rows
        for each in (*others, *wave_set.sm, *(flight for flight, _ in wave_set.flat)):
            rows &= ~each.rows
        return rows & operation.data

    # Issues.

    def issue_lds(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """A read, write or atomic of LDS."""
        row = operation.operands[0].rows[0]
        address = self._evaluator.read_row(wave_set, row, product.known)
        how = operation.verb
        self._site(operation, address)
        access = self._touched.of(operation, how, address, wave_set.exec)
        self._bounded(wave_set, operation, address, product.known)
        self._judge.own(wave_set, operation, access, product.known)
        if self._recorder is not None:
            self._recorder.record_access(product, wave_set, access)
        self._unknown_rows(wave_set, operation)
        wave_set.ds = (*wave_set.ds, InFlight(operation.number, operation.data, access, product.epoch))
        wave_set.pending |= operation.data
        if len(wave_set.ds) > self._holds[1]:
            self._retire_ds(wave_set, self._holds[1])
            wave_set.update_pending()

    def issue_exchange(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """Lanes exchanged by way of LDS, which stays as it is."""
        self._unknown_rows(wave_set, operation)
        wave_set.ds = (*wave_set.ds, InFlight(operation.number, operation.data, None, product.epoch))
        wave_set.pending |= operation.data
        if len(wave_set.ds) > self._holds[1]:
            self._retire_ds(wave_set, self._holds[1])
            wave_set.update_pending()

    def _site(self, operation: Operation, address: Value) -> None:
        concrete = not isinstance(address, Linear)
        self.sites[operation.number] = self.sites.get(operation.number, True) and concrete

    def _bounded(self, wave_set: WaveSet, operation: Operation, address: Value, known: Decisions) -> None:
        """An address has to stay inside; what bounds one that comes from data may be a decision of the path."""
        stray = self._touched.stray(operation, address, wave_set.exec)
        if stray is not None:
            self._judge.outside(operation, stray, self._touched.size, known)
        beyond = self._touched.beyond(operation, address, wave_set, known, stride=operation.to_lds)
        if beyond is not None:
            self._unbounded(operation, beyond, known, self._where_outside(wave_set, operation, address, known))

    def _unbounded(self, operation: Operation, bounds: Span, known: Decisions, path: Path) -> None:
        if self._lds_in_bounds:
            self.assumed_in_bounds = True
        else:
            self._judge.unbounded(operation, bounds, self._touched.size, known, path)

    def _where_outside(self, wave_set: WaveSet, operation: Operation, address: Value, known: Decisions) -> Path:
        """The path on which an address is outside: no launch may take it, though no bound says so."""
        shared = isinstance(address, Linear) and (address.base.spread == GROUP or len(wave_set.waves) == 1)
        if not isinstance(address, Linear) or not shared or address.base.spread == LANE:
            return known.path
        first, last = plain_span(address.offset)
        reach = last - first + operation.to_lds * 63 + max(offset + size for offset, size in operation.extents)
        limit = self._touched.size - reach + 1
        if limit <= 0:
            return known.path
        inside = self._evaluator.compare_basic("lt_u", Linear(address.base, address.scale, first), limit)
        if not isinstance(inside, Linear):
            return known.path
        wave = None if address.base.spread == GROUP else wave_set.waves[0]
        key = (inside.base, wave, known.path[0], id(known.path[1]))
        if key not in self._outside:
            event = Decided(condition=inside.base, holds=inside.scale != 1, wave=wave)
            self._outside[key] = (known.path, (known.path[0], (known.path[1], event)))
        return self._outside[key][1]

    def issue_vector(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """A load, store or atomic of global memory; a load may go to LDS."""
        access: LdsUse | None = None
        if operation.to_lds:
            base = self._evaluator.read_row(wave_set, SCALAR + M0, product.known)
            base = self._evaluator.compute("and", base, 0xFFFF) if self._short_m0 else base
            self._site(operation, base)
            access = self._touched.of(operation, "dma", base, wave_set.exec, stride=operation.to_lds)
            self._bounded(wave_set, operation, base, product.known)
            self._judge.own(wave_set, operation, access, product.known)
            if self._recorder is not None:
                self._recorder.record_access(product, wave_set, access)
        elif operation.flat and self.flat_lds:
            access = self._flat(wave_set, operation, product.known)
        self._unknown_rows(wave_set, operation)
        if operation.slots and self._evaluated[operation.number]:
            self._spilled(wave_set, operation, product.known)
        flight = InFlight(operation.number, operation.data, access, product.epoch)
        wave_set.pending |= operation.data
        if operation.flat:
            wave_set.flat = (*wave_set.flat, (flight, frozenset[str]()))
            if len(wave_set.flat) > _MOST_UNORDERED:  # more than any counter holds: the oldest two are told as one
                (one, seen), (two, also), *rest = wave_set.flat
                if one.access is two.access is None or (one.access and two.access and one.access.how == two.access.how):
                    wave_set.flat = ((one._replace(rows=one.rows | two.rows), seen & also), *rest)
            return
        if wave_set.vm or not flight.only_counts:
            wave_set.vm = (*wave_set.vm, flight)
        if len(wave_set.vm) > self._holds[0]:
            self._retire_vm(wave_set, self._holds[0])
            wave_set.update_pending()

    def _flat(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> LdsUse | None:
        """What a flat op uses of LDS: its high word says whether it goes there at all."""
        how = {"load": "read", "store": "write", "atomic": "atomic"}[operation.verb]
        low, high = (self._evaluator.read_row(wave_set, row, known) for row in operation.operands[0].rows)
        if isinstance(high, int) and high == SHARED_BASE >> 32:
            access = self._touched.of(operation, how, low, wave_set.exec)
            self._bounded(wave_set, operation, low, known)
            return access
        if isinstance(high, int):
            return None  # global or private memory
        self._unbounded(operation, ALL, known, known.path)
        return self._touched.everything(operation, how, len(wave_set.waves))

    def _unknown_rows(self, wave_set: WaveSet, operation: Operation) -> None:
        """What is loaded isn't known, nor what other lanes keep: the slice ends there."""
        rows = self._rows.get(operation.number)
        if rows is None:
            wanted = self._evaluated[operation.number]
            rows = self._rows[operation.number] = tuple(
                row for row in range(SCALAR) if wanted and operation.data >> row & 1
            )
        for row in rows:
            unknown = wave_set.registers[row] = self._evaluator.symbols.fresh("loaded", LANE)
            if (short := _SHORT.match(operation.name)) is not None:
                bits = 0xFF if short["size"] in {"8", "byte"} else 0xFFFF
                loaded = self._evaluator.symbols.fresh("loaded", LANE, bits)
                wave_set.registers[row] = self._evaluator.merge(wave_set.exec, loaded, unknown)

    def _spilled(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
        """Registers to private memory and back, in the lanes that are active."""
        stores = operation.verb == "store"
        data = rows_of(operation.reads & VECTORS if stores else operation.data)
        for row, slot in zip(data, operation.slots, strict=True):
            source, target = (row, slot) if stores else (slot, row)
            value, old = self._evaluator.read_row(wave_set, source, known), wave_set.registers.get(target)
            if old is None or isinstance(old, Half):
                old = self._evaluator.make_initial(target)
            wave_set.registers[target] = (
                value if wave_set.exec.is_full else self._evaluator.merge(wave_set.exec, value, old)
            )

    # Scalar loads.

    def issue_scalar(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
        """A scalar load: of the arguments, or of memory that the launch doesn't change unless it is glc."""
        rows = [row for row in range(SCALAR, SCALAR + 128) if operation.data >> row & 1]
        if operation.verb == "load" and "glc" not in operation.instruction.modifiers:
            self._load(wave_set, operation, rows, known)
        elif not operation.holds_data:
            for row in rows:
                wave_set.registers[row] = self._evaluator.symbols.fresh(operation.name, WAVE)
        wave_set.sm = _held((*wave_set.sm, InFlight(operation.number, operation.data, None, 0)))
        wave_set.pending |= operation.data

    def _load(self, wave_set: WaveSet, operation: Operation, rows: list[int], known: Decisions) -> None:
        base, offset = operation.operands[1], operation.operands[2]
        start = [self._evaluator.read_row(wave_set, row, known) for row in base.rows]
        more: Value = (
            _signed21(offset.literal) if offset.file is File.LITERAL else self._evaluator.read(wave_set, offset, known)
        )
        near = next((int(each[7:], 0) for each in operation.instruction.modifiers if each.startswith("offset:")), 0)
        low = plus(self._evaluator.symbols, plus(self._evaluator.symbols, start[0], more), near & M32)
        for word, row in enumerate(rows):
            wave_set.registers[row] = self._word(operation, low, start[1:], 4 * word)

    def _word(self, operation: Operation, low: Value, rest: list[Value], at: int) -> Value:
        if isinstance(low, Linear) and low.base.op == "kernarg" and low.scale == 1 and isinstance(low.offset, int):
            place = low.offset + at & M32
            return (
                self._constants[place]
                if place in self._constants
                else self._evaluator.symbols.argument("argument", place)
            )
        if isinstance(low, Linear) and low.base.op == "packet" and isinstance(low.offset, int):
            place = low.offset + at & M32
            if -place in self._constants:
                return self._constants[-place]
        here = plus(self._evaluator.symbols, low, at)
        kind = "buffer" if "buffer" in operation.name else "memory"
        spread = max(spread_of(each) for each in (here, *rest))
        if spread == GROUP:
            self.loads_twice = True
        return self._evaluator.symbols.opaque(kind, (here, *rest), spread=min(max(spread, GROUP), WAVE))


def _held(flights: tuple[InFlight, ...]) -> tuple[InFlight, ...]:
    """Scalar loads under way; where they are more than any counter holds, the oldest two are told as one."""
    if len(flights) <= _MOST_UNORDERED:
        return flights
    one, two, *rest = flights
    return (one._replace(rows=one.rows | two.rows), *rest)


def _signed21(value: int) -> int:
    """Literal offsets have 21 bits and a sign."""
    value &= 0x1F_FFFF
    return (value ^ 0x10_0000) - 0x10_0000 & M32
