"""Loops declared by values to execute: takes a declaration and start times, gives the schedule and its mutants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from rota.compiled.proved import repaired
from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.program.entry import Effect, Entry, Place, Space, Version, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopSpec, Read
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.loop import Loop
from rota.values.unroll import Placement

MFMA = "v_mfma_f32_16x16x32_bf16"
POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())
COPIES = (("A", 2), ("B", 2))

GEMM_PLACEMENTS = {
    "one stage": ((0, 10, 60, 70, 80), 1),
    "two stages": ((0, 10, 120, 130, 150), 2),
    "the MMA a period later": ((0, 10, 60, 70, 150), 2),
    "four stages": ((0, 10, 220, 230, 310), 3),
}


def gemm() -> LoopSpec:
    loop = Loop("gemm", waves=4)
    tiles = [loop.tile(name, size=16384) for name in ("A", "B")]
    for tile in tiles:
        loop.load(tile, instructions=4, moved=16384)
    a, b = (loop.fragment(tile.lower(), tile, registers=16, instructions=4) for tile in tiles)
    loop.mma(loop.accumulator("c", registers=64), a, b, instruction=MFMA, instructions=32)
    return loop.build()


def attention(parts: int = 1) -> LoopSpec:
    loop = Loop("attention", waves=4)
    for tile in ("K", "V"):
        loop.tile(tile, size=4096)
        for part in range(parts):
            loop.load(tile, name=f"load_{tile}{part}", moved=4096 // parts)
    k, v = (loop.fragment(tile.lower(), tile, registers=4) for tile in ("K", "V"))
    s = loop.product("s", [k], registers=4, instruction=MFMA)
    m = loop.valu("m", [s, Read(value="m", distance=1)], registers=1)
    alpha = loop.valu("alpha", [m, Read(value="m", distance=1)], registers=1)
    p = loop.valu("p", [s, m], registers=4)
    loop.valu("l", [p, alpha, Read(value="l", distance=1)], registers=1)
    scaled = loop.valu("scaled", [alpha, Read(value="o", distance=1)], registers=4)
    loop.product("o", [p, v, scaled], registers=4, instruction=MFMA)
    return loop.build()


def placed(starts: tuple[int, ...], interval: int = 100, **copies: int) -> Placement:
    return Placement(interval=interval, starts=starts, copies=tuple(copies.items()))


def gemm_placement(name: str) -> Placement:
    starts, copies = GEMM_PLACEMENTS[name]
    return placed(starts, A=copies, B=copies)


def bare(spec: LoopSpec, placement: Placement, remainder: int = 0, *, stagger: bool = False) -> CompiledLoop:
    """The loop without any synchronisation."""
    made = unroll_bare(spec, placement, remainder=remainder, stagger=stagger)
    return replace(made, compiler_tracks_registers=True, stagger_index=0)


@cache
def mended_gemm(name: str, remainder: int = 0) -> CompiledLoop:
    return repaired(bare(gemm(), gemm_placement(name), remainder))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A schedule that differs in one entry."""

    description: str
    schedule: CompiledLoop


def mutants_of(schedule: CompiledLoop) -> Iterator[Mutant]:
    """One entry deleted, swapped with the next, weakened, at another buffer, or a load of another iteration.

    What is left out: an op executed twice, which may be harmless (a proof of exactly once refuses it all the same), and
    another iteration for anything but a load, which changes what the entry claims but not what the machine does.
    """
    for phase in Phase:
        name = phase.value.lower()
        entries: tuple[Entry, ...] = schedule.phase(phase)
        for slot, entry in enumerate(entries):
            for what, changed in _instead_of(entry):
                yield _mutant(
                    schedule, f"{name} {entry}: {what}", name, [*entries[:slot], *changed, *entries[slot + 1 :]]
                )
        for slot, (first, second) in enumerate(pairwise(entries)):
            if (first.op, first.effect) != (second.op, second.effect):
                swapped = [*entries[:slot], second, first, *entries[slot + 2 :]]
                yield _mutant(schedule, f"{name} {first}: behind {second.op}", name, swapped)


def _mutant(schedule: CompiledLoop, description: str, name: str, entries: list[Entry]) -> Mutant:
    numbered = tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(entries))
    changed = replace(schedule, certificate=None, repairs=(), **{name: numbered})  # type: ignore[arg-type]
    return Mutant(description=description, schedule=replace(changed, stagger_index=len(changed.prologue) + 1))


def _instead_of(entry: Entry) -> Iterator[tuple[str, list[Entry]]]:
    yield "deleted", []
    counter = entry.effect.counter
    if entry.effect.kind is OpKind.WAIT and counter is not None:
        for more in (1, 4):
            count = entry.effect.wait_value + more
            yield f"{more} weaker", [replace(entry, op=wait_op(counter, count), effect=wait_effect(counter, count))]
    if entry.effect.instance is not None:
        for what, effect in (*_elsewhere(entry.effect), *_other_iterations(entry.effect)):
            yield what, [replace(entry, effect=effect)]


def _elsewhere(effect: Effect) -> Iterator[tuple[str, Effect]]:
    """Each buffer of a tile replaced by its neighbours."""
    for place in dict.fromkeys((*effect.reads, *effect.writes)):
        if place.space is Space.LDS:
            for copy in {0, 1, 2} - {place.copy}:
                moved = {place: place._replace(copy=copy)}
                yield f"{place} became {moved[place]}", _with_places(effect, moved)


def _with_places(effect: Effect, moved: dict[Place, Place]) -> Effect:
    return replace(
        effect,
        reads=tuple(moved.get(place, place) for place in effect.reads),
        writes=tuple(moved.get(place, place) for place in effect.writes),
        wants=tuple((moved.get(place, place), version) for place, version in effect.wants),
        makes=tuple((moved.get(place, place), version) for place, version in effect.makes),
    )


def _other_iterations(effect: Effect) -> Iterator[tuple[str, Effect]]:
    """A load of the iteration before or after."""

    def by(version: Version, shift: int) -> Version:
        return version._replace(iteration=version.iteration + shift)

    if effect.kind is OpKind.DMA and effect.instance is not None:
        for shift in (-1, 1):
            makes = tuple((place, by(version, shift)) for place, version in effect.makes)
            yield f"{shift:+} iteration", replace(effect, instance=by(effect.instance, shift), makes=makes)
