"""All copies and all starts of small loops: takes a seed, gives a loop; takes a claim about it, gives what beats it.

The enumeration shares no code with the search or its bounds.  It takes from rota what an op costs, and derives by
itself who writes which copy when, which copies fit, and whether any starts at all keep an interval.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import NamedTuple

from rota import GFX950, Loop, LoopSpec, Read
from rota.kernels.gemm import BF16
from rota.program.kinds import Home, Unit
from rota.program.machine import Fact
from rota.targets.device import Device, Timing
from rota.values.op_times import LoopTimes

_KIB = 1024
_PLENTY = 40  # copies: far more than any of these loops has iterations in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A loop, and a machine with little memory and short latencies, so that everything can be tried."""

    spec: LoopSpec
    machine: Device


class Better(NamedTuple):
    """Copies and starts that keep a smaller interval than the one that was called the least."""

    ii: int
    copies: dict[str, int]
    starts: tuple[int, ...]


def drawn(seed: int) -> Drawn:
    """A loop of three to seven ops: tiles, fragments, vector and matrix ops, some of them carried."""
    random = Random(seed)
    loop = Loop(f"drawn_{seed}", waves=random.choice((1, 4, 4, 8)))
    values: list[str] = []
    for number in range(random.choice((1, 1, 2))):
        size = _KIB * random.randint(1, 4)
        tile = loop.tile(f"T{number}", size=size)
        moved, count = size * random.choice((1, 1, 2)) // 2, random.choice((1, 2))
        parts = random.choice((1, 1, 2))
        for part in range(parts):
            each = moved // parts
            count = max(count, -(-each // (_KIB * loop.waves)))
            loop.load(tile, name=f"l{number}{part}", moved=each, instructions=count)
        for part in range(random.choice((1, 1, 2)) if number == 0 else 1):
            name = f"f{number}{part}"
            values.append(
                loop.fragment(name, tile, registers=4 * random.choice((1, 2)), instructions=random.choice((2, 3)))
            )
    for number in range(random.randint(0, 2)):
        operands: list[str | Read] = [random.choice(values)]
        name = f"v{number}"
        if random.random() < 0.5:
            older = random.choice((name, *values))
            operands.append(Read(value=older, distance=random.choice((1, 1, 2))))
        into = ""
        registers = 4 * random.choice((1, 2, 3))
        values.append(loop.valu(name, operands, registers=registers, instructions=random.randint(1, 4), into=into))
    if random.random() < 0.5:
        total = loop.accumulator("c", registers=8)
        loop.mma(total, random.choice(values), instruction=BF16, instructions=random.choice((1, 2)))
    spec = loop.build()
    machine = replace(
        GFX950,
        lds_bytes=GFX950.lds_bytes._replace(value=_KIB * random.randint(4, 20)),
        vgprs_per_lane=GFX950.vgprs_per_lane._replace(
            value=4 * random.randint(8, 24) * GFX950.rates.waves_per_simd(spec.waves)
        ),
        timing=_short(GFX950.timing, random),
    )
    return Drawn(spec=spec, machine=machine)


def _short(timing: Timing, random: Random) -> Timing:
    """Latencies of a few slots, and slow paths."""

    def fact(old: Fact, value: int) -> Fact:
        return old._replace(value=value)

    rates = timing.rates
    rates = replace(
        rates,
        dma=fact(rates.dma, 256),
        dma_latency=fact(rates.dma_latency, 4 * random.randint(2, 40)),
        lds_latency=fact(rates.lds_latency, 4 * random.randint(1, 10)),
    )
    return replace(timing, rates=rates, result_turns=fact(timing.result_turns, random.randint(0, 2)))


def better(made: Drawn, times: LoopTimes, ii: int, limits: tuple[str, ...]) -> Better | None:
    """Any copies and starts of a smaller interval, within the limits in words."""
    busiest = max((load for _, load in times.busy), default=1)  # a unit can't be held for longer than there is time
    for smaller in range(busiest, ii):
        for copies in _copies(made, limits):
            starts = _starts(made.spec, times, copies, smaller)
            if starts is not None:
                return Better(smaller, copies, starts)
    return None


def _copies(made: Drawn, limits: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """All copies that fit and to which none can be added: fewer of them only tie ops closer together."""
    spec = made.spec
    most, least = _said("at most", limits), _said("at least", limits)
    tiles = {value.name: value.size for value in spec.values if value.home is Home.LDS}
    registers = {value.name: value.size for value in spec.values if value.home is Home.REGISTERS}
    always = sum(value.size for value in spec.values if value.home in (Home.ACCUMULATOR, Home.INPUT))
    limit = made.machine.registers_per_lane(spec.waves)
    if "registers for every copy" not in limits:
        limit = _PLENTY * 100
    assert not any(value.into for value in spec.values), "drawn values have registers of their own"
    for of_tiles in _filled(tiles, made.machine.lds_bytes.value, most):
        for of_registers in _filled(registers, limit - always, most):
            copies = {**of_tiles, **of_registers}
            if all(copies[name] >= count for name, count in least.items()):
                yield copies


def _said(words: str, limits: tuple[str, ...]) -> dict[str, int]:
    """The numbers of copies in words such as "at most 4 copies of A, B and C"."""
    found = (re.fullmatch(rf"{words} (\d+) copies of (.*)", limit) for limit in limits)
    return {name: int(each[1]) for each in found if each for name in re.split(", | and ", each[2])}


def _filled(sizes: Mapping[str, int], room: int, most: Mapping[str, int]) -> Iterator[dict[str, int]]:
    if not sizes:
        yield {}
        return
    (name, size), *others = sizes.items()
    rest = dict(others)
    highest = min((room - sum(rest.values())) // size, most.get(name, _PLENTY))
    lowest = 1 if rest and sum(rest.values()) * _PLENTY > room - highest * size else highest
    for count in range(lowest, highest + 1):
        yield from ({name: count, **each} for each in _filled(rest, room - count * size, most))


class _Tie(NamedTuple):
    first: int
    second: int
    gap: int  # t(second) - t(first) is at least this


def _ties(spec: LoopSpec, times: LoopTimes, copies: Mapping[str, int], ii: int) -> Iterator[_Tie]:
    """From the life of each copy: written, read so many iterations later, and written again after as many as it has."""
    for value in spec.values:
        if value.home not in (Home.LDS, Home.REGISTERS):
            continue
        writers = [number for number, op in enumerate(spec.ops) if value.name in op.writes]
        for reader, op in enumerate(spec.ops):
            for read in op.reads:
                if read.value != value.name:
                    continue
                for writer in writers:
                    yield _Tie(writer, reader, times.timings[writer].latency - read.distance * ii)
                    if writer == reader and copies[value.name] < read.distance:
                        yield _Tie(writer, writer, 1)  # a younger version is in its place
                    if writer != reader:
                        timing = times.timings[reader]
                        done = max(1, timing.latency if value.home is Home.LDS else timing.occupancy)
                        yield _Tie(reader, writer, done - (copies[value.name] - read.distance) * ii)


def _starts(spec: LoopSpec, times: LoopTimes, copies: Mapping[str, int], ii: int) -> tuple[int, ...] | None:
    count = len(spec.ops)
    far = [[-(10**9)] * count for _ in range(count)]
    for number in range(count):
        far[number][number] = 0
    for first, second, gap in _ties(spec, times, copies, ii):
        if first == second and gap > 0:
            return None
        far[first][second] = max(far[first][second], gap)
    for via, first, second in product(range(count), repeat=3):  # Floyd and Warshall, longest paths
        far[first][second] = max(far[first][second], far[first][via] + far[via][second])
    if any(far[number][number] > 0 for number in range(count)):
        return None
    return _place(spec, times, ii, far, [])


def _place(spec: LoopSpec, times: LoopTimes, ii: int, far: list[list[int]], slots: list[int]) -> tuple[int, ...] | None:
    """Every slot of every op in turn; the loop may begin anywhere, so the first op stands in slot 0."""
    if len(slots) == len(spec.ops):
        return _staged(far, slots, ii)
    here = len(slots)
    for slot in range(ii if here else 1):
        if not _meets(times, [*slots, slot], ii) and _apart(far, slots, slot, ii):
            found = _place(spec, times, ii, far, [*slots, slot])
            if found is not None:
                return found
    return None


def _meets(times: LoopTimes, slots: list[int], ii: int) -> bool:
    """Does the last op want a unit, or a turn of its wave, that another one has?"""
    taken: set[tuple[Unit, int]] = set()
    for number, slot in enumerate(slots):
        unit, occupancy, _, issue = times.timings[number]
        for kind, length in ((unit, occupancy), (Unit.ISSUE, issue)):
            cells = [(kind, (slot + step) % ii) for step in range(length)]
            if len(set(cells)) < len(cells) or taken.intersection(cells):
                return True
            taken.update(cells)
    return False


def _apart(far: list[list[int]], slots: list[int], slot: int, ii: int) -> bool:
    """Is there some distance in time to each op placed before that both its slot and the ties allow?"""
    here = len(slots)
    for other, taken in enumerate(slots):
        least, most = far[other][here], -far[here][other]
        if least + (slot - taken - least) % ii > most:
            return False
    return True


def _staged(far: list[list[int]], slots: list[int], ii: int) -> tuple[int, ...] | None:
    """Starts in these slots that keep all ties, by raising what is too early until nothing is."""
    starts = list(slots)
    for _ in range(len(slots) + 1):
        late = [
            (second, starts[first] + gap)
            for first, row in enumerate(far)
            for second, gap in enumerate(row)
            if gap > -(10**8) and starts[second] < starts[first] + gap
        ]
        if not late:
            return tuple(starts)
        for second, earliest in late:
            starts[second] = max(starts[second], earliest + (slots[second] - earliest) % ii)
    return None
