"""Issues and retires memory ops.

The architecture says which counter counts an op, and whether those on it return in order (unless the policy says
otherwise).  A flat op counts on two: its registers are valid after waits for both, its LDS access is complete after one
for the counter of LDS.  A scalar store may read its data until a wait covers it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np

from rota.isa.opcodes import ARRIVES_LATER, MemVerb
from rota.isa.registers import M0, SCALAR
from rota.isa.wave.operand import SHARED_BASE, File
from rota.prove import mbarriers
from rota.prove.decisions import ALL, Decided, Decisions, Path, Span, plain_span
from rota.prove.evaluation import Evaluator
from rota.prove.judge import COPIES, Judge
from rota.prove.mbarriers import NO_MARKS, Marks
from rota.prove.named_barriers import BarrierError
from rota.prove.operation import VECTORS, CountedBy, Operation, OperationKind, rows_of
from rota.prove.state import Half, InFlight, LdsUse, Mask, OwnPlaces, WaveSet, retire
from rota.prove.symbol import (
    FROM_LDS,
    GROUP,
    LANE,
    LOADED,
    M32,
    WAVE,
    Linear,
    Value,
    key_of,
    linear,
    parts_of,
    plus,
    simplify,
    spread_of,
)
from rota.prove.tensor_copies import DONE, PLACE, WORD, Field, find_tile
from rota.prove.touched_bytes import TouchedBytes
from rota.prove.widening import LaneAddresses, ProductState, Recorder


class PhaseError(Exception):
    """A wave waits for the end of a phase of a barrier in LDS."""


class MemorySteps:
    """`most` are the ops that each counter can hold, `doubted` the counters on which the policy trusts no order.

    `constants` are words of the kernarg segment that are known.
    """

    def __init__(
        self, evaluator: Evaluator, touched: TouchedBytes, judge: Judge, *, most: dict[str, int],
        constants: dict[int, int], evaluated: Sequence[bool], doubted: frozenset[str], flat_lds: bool = False,
        m0_is_short: bool = False, nowhere: int | None = None, lds_in_bounds: bool = False,
        recorder: Recorder | None = None,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._evaluator, self._touched, self._judge, self._most = evaluator, touched, judge, most
        self._constants, self._doubted, self.flat_lds = constants, doubted, flat_lds
        self._short_m0, self._nowhere, self._lds_in_bounds = m0_is_short, nowhere, lds_in_bounds
        self.accesses = touched.accesses
        self._evaluated, self._rows = evaluated, dict[int, tuple[int, ...]]()
        self._saturated = max(most.values()) + 1  # more than any counter can count
        self.sites: dict[int, bool] = {}
        self._outside: dict[Hashable, tuple[Path, Path]] = {}  # keeps the path whose id is in the key
        self.loads_twice = self.assumed_in_bounds = self.met_nowhere = False

    # Waits.

    def wait(self, wave_set: WaveSet, operation: Operation) -> None:
        waits = dict(operation.waits)
        zero = frozenset(counter for counter, count in operation.waits if count == 0)
        queues = dict(wave_set.queues)
        for by, queue in wave_set.queues.items():
            most = waits.get(by.counters[0])
            if not by.in_order:
                queues[by] = self._retire_unordered(wave_set, by, queue, zero)
            elif most is not None and (most == 0 or by.counters[0] not in self._doubted):
                queues[by] = self._retire(wave_set, queue, most)
        wave_set.queues = queues
        self._judge.record_wait(wave_set, operation)
        wave_set.update_pending()

    def _retire(self, wave_set: WaveSet, queue: tuple[InFlight, ...], most: int) -> tuple[InFlight, ...]:
        """Complete all but the `most` youngest ops, and return these."""
        completed, left = retire(queue, most)
        self._complete(wave_set, completed)
        return left

    def _retire_unordered(
        self, wave_set: WaveSet, by: CountedBy, queue: tuple[InFlight, ...], zero: frozenset[str]
    ) -> tuple[InFlight, ...]:
        """Complete the ops whose counters waits have all seen at 0; `zero` are those of this wait."""
        left, is_flat = [], len(by.counters) > 1
        if not is_flat and by.counters[0] not in zero:
            return queue
        for each in queue:
            waited, flight = each.waited | zero.intersection(by.counters), each
            if by.counters[-1] in zero:  # the counter of LDS alone orders LDS, whichever instruction accessed it
                self._complete(wave_set, (flight,))
                flight = flight._replace(access=None)
            if len(waited) < len(by.counters) and not (is_flat and flight.only_counts):
                left.append(flight._replace(waited=waited))
        return tuple(left)

    def _complete(self, wave_set: WaveSet, flights: tuple[InFlight, ...]) -> None:
        for flight in flights:
            access = flight.access
            if access is None:
                continue
            old = wave_set.covered.get(access, wave_set.late.get(access))
            if old is not None and (access.how == "dma" or (old.released, old.lags) != (flight.released, flight.lags)):
                access = self.accesses.repeat(access)
            wave_set.complete(access, flight)

    def find_refilled(self, wave_set: WaveSet, operation: Operation) -> int:
        """Registers that an earlier load on the same counter fills: in order, the later load returns later."""
        by, rows, others = operation.counted_by, 0, 0
        if not by.in_order or by.counters[0] in self._doubted:
            return 0
        for each in wave_set.queues[by]:
            rows |= each.rows
        for other, queue in wave_set.queues.items():
            for each in queue if other != by else ():
                others |= each.rows
        return rows & ~others & operation.data

    # Issues.

    def issue_lds(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        access, lanes, data = None, None, b""
        phase_bit = self._poll(wave_set, operation, product) if operation.polls else None
        if phase_bit is not None:  # of a barrier in LDS, which orders other accesses and needs no order itself
            self._forget_rows(wave_set, operation)
            pending = self._evaluator.symbols.fresh("pending", WAVE, mbarriers.UNKNOWN)
            low = plus(self._evaluator.symbols, pending, phase_bit)
            wave_set.registers[min(rows_of(operation.data))] = low
        elif operation.kind is OperationKind.LDS:  # else an exchange of lanes, which leaves LDS as it is
            address = self._evaluator.read_row(wave_set, operation.operands[0].rows[0], product.known)
            access, lanes = self._access(wave_set, operation, operation.verb, address, product)
            if operation.verb == "write" and len(operation.operands) > 1:
                data = self._set_up(wave_set, operation, product)
        held = self._read_words(wave_set, operation, product.known) if wave_set.named.words and access else {}
        moved = self._gather(wave_set, operation, product.known) if operation.kind is OperationKind.EXCHANGE else None
        if phase_bit is None:
            self._forget_rows(wave_set, operation)
        if moved is not None:
            wave_set.registers[operation.operands[0].rows[0]] = moved
        elif held:
            wave_set.registers |= held
        self._issue(wave_set, operation, access, product, lanes, data=data)

    # Barriers in LDS.

    def _place_of(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> int | None:
        """The byte that all lanes address, if it is known and one."""
        address = self._evaluator.read_row(wave_set, operation.operands[0].rows[0], known)
        if isinstance(address, Linear):
            return None
        lanes = self._touched.masks.lanes_of(self._touched.masks.possible(wave_set.exec))
        found = np.unique(np.broadcast_to(np.asarray(address), lanes.shape)[lanes])
        return int(found[0]) + operation.instruction.offset if len(found) == 1 else None

    def _poll(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> int | None:
        """What a wave that polls a barrier reads, None if it reads something else; PhaseError where it waits."""
        place = self._place_of(wave_set, operation, product.known)
        phase = None if place is None else mbarriers.find_phase(wave_set, place)
        if phase is None:  # then it may hold anything
            return None
        found = mbarriers.poll(wave_set, phase, operation.number)
        if found is None:
            raise PhaseError
        return found

    def _set_up(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> bytes:
        """Note a number that waves write: if one lane does, it may be a barrier that waves arrive at later."""
        lanes = wave_set.exec.leaf
        place = self._place_of(wave_set, operation, product.known)
        if lanes is None or place is None:
            return b""
        active, words = self._touched.masks.lanes_of(lanes), list[int | None]()
        for row in operation.operands[1].rows:
            value = self._evaluator.read_row(wave_set, row, product.known)
            found = set() if isinstance(value, Linear) else {*np.broadcast_to(np.asarray(value), active.shape)[active]}
            words.append(int(found.pop()) if len(found) == 1 else None)
        size = WORD * len(words)
        if size == mbarriers.BYTES and sum(each.bit_count() for each in lanes) == 1:
            if words[0] is not None:
                mbarriers.set_up(place, words[0], product.wave_sets)
            return b""
        data = b"".join(each.to_bytes(WORD, "little") for each in words if each is not None)
        if len(data) < size:
            return b""
        mbarriers.write(place, data, product.wave_sets)
        return data

    def _read_words(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> dict[int, Value]:
        """What a read of LDS gives, by the register that it fills, where that is known."""
        rows, access = [*rows_of(operation.data)], operation.access
        address = self._evaluator.read_row(wave_set, operation.operands[0].rows[0], known)
        if access is None or access.signed or access.half or isinstance(address, Linear) or not wave_set.exec.is_full:
            return {}
        if len(rows) != len(operation.extents) or any(size > WORD for _, size in operation.extents):
            return {}
        found: dict[int, Value] = {}
        places = np.broadcast_to(np.asarray(address), (len(wave_set.waves), self._touched.masks.lanes))
        for row, (offset, size) in zip(rows, operation.extents, strict=True):
            numbers = [
                mbarriers.read(wave_set, int(each[0]) + offset, size) if (each == each[0]).all() else None
                for each in places
            ]
            if None not in numbers:
                found[row] = simplify(np.array(numbers, np.int64)[:, None])
        return found

    def arrive(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """Arrive at a barrier in LDS: what the waves have done there before is over for whoever sees its phase end.

        LDS instructions of a wave are performed in order; asynchronous copies are not among them.
        """
        lanes, place = wave_set.exec.leaf, self._place_of(wave_set, operation, product.known)
        if lanes is None or place is None:
            raise BarrierError("which mbarrier waves arrive at, or how many lanes, isn't known")
        count: Value = 1
        for each in operation.operands[1:]:
            count = self._evaluator.read_row(wave_set, each.rows[0], product.known)
        if not isinstance(count, int):
            raise BarrierError("how many arrivals are counted isn't known")
        arrivals = sum(each.bit_count() for each in lanes) * count
        if arrivals and mbarriers.arrive(wave_set, place, arrivals, product.wave_sets):
            if operation.verb == ARRIVES_LATER:
                wave_set.release(place, lambda by, _: "asynccnt" in by.counters)
            else:
                wave_set.release(place, lambda _, access: access.how not in COPIES)
            mbarriers.turn(wave_set, place, product.wave_sets)
        self._forget_rows(wave_set, operation)
        if operation.counted_by.counters:
            self._issue(wave_set, operation, None, product)

    def _gather(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> Value | None:
        """What each lane reads from the lane whose address it gives; None where that isn't known."""
        if not (operation.operands and self._evaluated[operation.number] and wave_set.exec.is_full):
            return None  # a lane that doesn't execute gives 0
        lane, value = (self._evaluator.read_row(wave_set, each.rows[0], known) for each in operation.operands[1:3])
        if isinstance(lane, Linear) or (isinstance(value, Linear) and value.base.spread == LANE):
            return None
        offset = value.offset if isinstance(value, Linear) else value
        if isinstance(offset, int):
            return value
        size = self._touched.masks.lanes
        shape = (len(wave_set.waves), size)
        source = np.broadcast_to(np.asarray(lane), shape) + operation.instruction.offset >> 2 & size - 1
        moved = np.take_along_axis(np.broadcast_to(offset, shape), source, axis=1)
        return linear(value.base, value.scale, moved) if isinstance(value, Linear) else moved

    def _issue(
        self, wave_set: WaveSet, operation: Operation, access: LdsUse | None, product: ProductState,
        lanes: OwnPlaces | None = None, *, released: Marks = NO_MARKS, data: bytes = b"",
    ) -> None:  # fmt: skip
        by, at_signal = operation.counted_by, wave_set.signalled
        flight = InFlight(
            operation.number, operation.data, access, product.epoch, signalled=at_signal, lanes=lanes,
            released=released, lags=wave_set.named.lags, data=data,
        )  # fmt: skip
        queue = wave_set.queues[by]
        if queue or not (by.in_order and flight.only_counts):
            queue = (*queue, flight)
        wave_set.pending |= operation.data
        if by.in_order and sum(not each.may for each in queue) > self._most[by.counters[0]]:
            wave_set.queues = wave_set.queues | {by: self._retire(wave_set, queue, self._most[by.counters[0]])}
            wave_set.update_pending()
            return
        if not by.in_order and len(queue) > self._saturated:  # merge the two oldest
            first, second, *rest = queue
            a, b = first.access, second.access
            if a is b:
                both = first._replace(rows=first.rows | second.rows, waited=first.waited & second.waited)
                queue = (both, *rest)
        wave_set.queues = wave_set.queues | {by: queue}

    def _access(
        self, wave_set: WaveSet, operation: Operation, how: str, address: Value, product: ProductState
    ) -> tuple[LdsUse, OwnPlaces | None]:
        active = wave_set.exec if operation.spec.obeys_exec else self._touched.masks.every(len(wave_set.waves))
        address, active = self._leave_out(address, active)
        concrete = not isinstance(address, Linear)
        self.sites[operation.number] = self.sites.get(operation.number, True) and concrete
        access = self._access_in_bounds(wave_set, operation, how, address, active, product.known)
        if access.how not in {"read", "copy"} and (wave_set.named.phases or wave_set.named.words):
            mbarriers.overwrite(reduce(or_, access.bytes), product.wave_sets)
        lanes = self._touched.find_own_places(operation, address, active)
        self._judge.check_own_accesses(wave_set, operation, access, lanes, product.known)
        if self._recorder is not None:
            masks = self._touched.masks
            named = LaneAddresses(address, masks.possible(active), masks.certain(active))
            self._recorder.record_access(product, wave_set, access, named)
        return access, lanes

    def _leave_out(self, address: Value, active: Mask) -> tuple[Value, Mask]:
        """Without the lanes whose address no LDS has: compilers give it to those that aren't to access LDS."""
        masks, nowhere = self._touched.masks, self._nowhere
        while nowhere is not None and isinstance(address, Linear) and address.base.op == "pick":
            mask, new, old = parts_of(address.base)
            own = address.base.row_waves in {(), self._evaluator.symbols.row_waves}
            if (
                not own
                or address.scale != 1
                or key_of(address.offset) != 0
                or nowhere not in {key_of(new), key_of(old)}
            ):
                break
            outside = key_of(new) == nowhere
            address, active = old if outside else new, masks.combine("andn2" if outside else "and", active, mask)
            self.met_nowhere = True
        if nowhere is not None and not isinstance(address, Linear) and np.any(away := np.asarray(address) == nowhere):
            active = masks.combine("and", active, masks.from_lanes(~away, len(masks.possible(active))))
            self.met_nowhere = True
        return address, active

    def _access_in_bounds(  # noqa: PLR0917
        self, wave_set: WaveSet, operation: Operation, how: str, address: Value, active: Mask, known: Decisions
    ) -> LdsUse:
        stride, size = operation.to_lds, self._touched.size
        access, outside = self._touched.find(operation, how, address, active, stride)
        if outside is not None:
            self._judge.report_outside(operation, outside.place, size, known, in_doubt=outside.in_doubt)
        bounds = self._touched.find_bounds_outside(operation, address, wave_set, active, known, stride)
        if bounds is not None:
            self._report_unbounded(operation, bounds, known, self._path_outside(wave_set, operation, address, known))
        return access

    def _report_unbounded(self, operation: Operation, bounds: Span, known: Decisions, path: Path) -> None:
        if self._lds_in_bounds:
            self.assumed_in_bounds = True
        else:
            self._judge.report_unbounded(operation, bounds, self._touched.size, known, path)

    def _path_outside(self, wave_set: WaveSet, operation: Operation, address: Value, known: Decisions) -> Path:
        """The path with the decision that the address is outside of LDS: perhaps no launch takes it."""
        shared = isinstance(address, Linear) and (address.base.spread == GROUP or len(wave_set.waves) == 1)
        if not isinstance(address, Linear) or not shared or address.base.spread == LANE:
            return known.path
        first, last = plain_span(address.offset)
        reach = last - first + operation.to_lds * (self._touched.masks.lanes - 1)
        reach += max(offset + size for offset, size in operation.extents)
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
        access: LdsUse | None = None
        lanes: OwnPlaces | None = None
        if operation.tensor:
            self._copy_tile(wave_set, operation, product)
            return
        if operation.copies:
            row = operation.operands[0].rows[0] if operation.operands else SCALAR + M0
            base = self._evaluator.read_row(wave_set, row, product.known)
            base = self._evaluator.compute("and", base, 0xFFFF) if self._short_m0 and operation.to_lds else base
            access, lanes = self._access(wave_set, operation, operation.copies, base, product)
        elif operation.flat and self.flat_lds:
            access = self._access_flat(wave_set, operation, product.known)
        self._forget_rows(wave_set, operation)
        if operation.slots and self._evaluated[operation.number]:
            self._spill(wave_set, operation, product.known)
        self._issue(wave_set, operation, access, product, lanes)

    def _copy_tile(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """Issue a tensor copy: one job of the wave, whatever EXEC holds.  It may arrive at a barrier by itself."""
        evaluator, known = self._evaluator, product.known

        def read(field: Field) -> Value:
            word = evaluator.read_row(wave_set, operation.operands[field.group].rows[field.word], known)
            found = evaluator.compute("and", word, (1 << field.bits) - 1 << field.first)
            return evaluator.compute("shr", found, field.first) if field.first else found

        tile, waves = find_tile(read, polls=bool(operation.polls)), len(wave_set.waves)
        done = evaluator.mask_of(evaluator.compare("ne", "u", read(DONE), 0), waves)
        active = self._touched.masks.combine("and", done, self._touched.masks.leaf((1,) * waves))
        if tile.arrives_at is not None and active.leaf != (1,) * waves:
            raise BarrierError("whether a tensor copy is done that arrives at an mbarrier isn't known")
        here = replace(operation, extents=tile.pieces)
        access = self._access_in_bounds(wave_set, here, operation.copies, read(PLACE), active, known)
        if access.how == "dma" and (wave_set.named.phases or wave_set.named.words):
            mbarriers.overwrite(reduce(or_, access.bytes), product.wave_sets)
        self._judge.check_own_accesses(wave_set, operation, access, None, known)
        if self._recorder is not None:
            self._recorder.record_access(product, wave_set, access)
        place, released = tile.arrives_at, NO_MARKS
        if place is not None and mbarriers.arrive(wave_set, place, waves, product.wave_sets):
            wave_set.release(place, lambda _, __: False)
            released = frozenset({(place, int(mbarriers.turn(wave_set, place, product.wave_sets)))})
        self._issue(wave_set, operation, access, product, released=released)

    def _access_flat(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> LdsUse | None:
        """The LDS access of a flat op, if the high word of its address points there."""
        how = {"load": "read", "store": "write", "atomic": "atomic"}[operation.verb]
        low, high = (self._evaluator.read_row(wave_set, row, known) for row in operation.operands[0].rows)
        if isinstance(high, int) and high == SHARED_BASE >> 32:
            return self._access_in_bounds(wave_set, operation, how, low, wave_set.exec, known)
        if isinstance(high, int):
            return None  # global or private memory
        self._report_unbounded(operation, ALL, known, known.path)
        anywhere = ((1 << self._touched.size) - 1,) * len(wave_set.waves)
        return self.accesses.make(operation.number, how, anywhere, exact=False, origin=None)

    def _forget_rows(self, wave_set: WaveSet, operation: Operation) -> None:
        """Loaded values are unknown, and so is what inactive lanes keep: the slice ends at loads."""
        rows = self._rows.get(operation.number)
        if rows is None:
            wanted = self._evaluated[operation.number]
            found = rows_of(operation.data & VECTORS) if wanted else ()
            rows = self._rows[operation.number] = tuple(found)
        may_be_lds = operation.kind is not OperationKind.VMEM or (operation.flat and self.flat_lds)
        source = FROM_LDS if may_be_lds else LOADED
        for row in rows:
            unknown = wave_set.registers[row] = self._evaluator.symbols.fresh(source, LANE)
            access = operation.access
            if access and access.verb is MemVerb.LOAD and 0 < access.size < 4 and not (access.signed or access.half):
                bits = (1 << 8 * access.size) - 1  # zeros fill the rest
                loaded = self._evaluator.symbols.fresh(source, LANE, bits)
                wave_set.registers[row] = self._evaluator.merge(wave_set.exec, loaded, unknown)

    def _spill(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
        stores = operation.verb == "store"
        data = rows_of(operation.reads & VECTORS if stores else operation.data)
        for row, slot in zip(data, operation.slots, strict=True):
            source, target = (row, slot) if stores else (slot, row)
            value, old = self._evaluator.read_row(wave_set, source, known), wave_set.registers.get(target)
            if old is None or isinstance(old, Half):
                old = self._evaluator.make_initial(target)
            full = wave_set.exec.is_full
            wave_set.registers[target] = value if full else self._evaluator.merge(wave_set.exec, value, old)

    # Scalar loads.

    def issue_scalar(self, wave_set: WaveSet, operation: Operation, product: ProductState) -> None:
        """Issue a scalar memory op; a load without glc reads arguments, or memory that the launch doesn't write."""
        rows = [row for row in range(SCALAR, SCALAR + 128) if operation.data >> row & 1]
        if operation.verb == "load" and "glc" not in operation.instruction.modifiers:
            self._load(wave_set, operation, rows, product.known)
        elif not operation.holds_data:
            for row in rows:
                wave_set.registers[row] = self._evaluator.symbols.fresh(operation.name, WAVE)
        self._issue(wave_set, operation, None, product)

    def _load(self, wave_set: WaveSet, operation: Operation, rows: list[int], known: Decisions) -> None:
        base, offset = operation.operands[1], operation.operands[2]
        start = [self._evaluator.read_row(wave_set, row, known) for row in base.rows]
        if offset.file is File.LITERAL:  # 21 bits and a sign
            more: Value = (offset.literal & 0x1F_FFFF ^ 0x10_0000) - 0x10_0000 & M32
        else:
            more = self._evaluator.read(wave_set, offset, known)
        near = operation.instruction.offset
        low = plus(self._evaluator.symbols, plus(self._evaluator.symbols, start[0], more), near & M32)
        for word, row in enumerate(rows):
            wave_set.registers[row] = self._load_word(operation, low, start[1:], 4 * word)

    def _load_word(self, operation: Operation, low: Value, rest: list[Value], at: int) -> Value:
        if isinstance(low, Linear) and low.base.op == "kernarg" and low.scale == 1 and isinstance(low.offset, int):
            place = low.offset + at & M32
            known = self._constants.get(place)
            return self._evaluator.symbols.argument("argument", place) if known is None else known
        if isinstance(low, Linear) and low.base.op == "packet" and isinstance(low.offset, int):
            place = low.offset + at & M32
            if -place in self._constants:
                return self._constants[-place]
        here = plus(self._evaluator.symbols, low, at)
        kind = "buffer" if operation.access and operation.access.buffer else "memory"
        spread = max(spread_of(each) for each in (here, *rest))
        if spread == GROUP:
            self.loads_twice = True
        return self._evaluator.symbols.opaque(kind, (here, *rest), spread=min(max(spread, GROUP), WAVE))
