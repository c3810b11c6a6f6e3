"""What becomes of edited documents: takes a count and a seed, gives a tally and every defect.

A document is refused with a finding, or it is a schedule.  If that schedule is proved, it must do what the document
declares: that is for a judge to say who shares no code with the proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from time import process_time

from rota import (
    GFX942,
    GFX950,
    CompiledSchedule,
    Loop,
    LoopSpec,
    Machine,
    PipelineConfig,
    RotaError,
    ScheduleConfig,
    SchedulingStrategy,
    SingleBufferSchedule,
    WarpStaggerRule,
    compile_loop,
    compile_schedule,
    verify,
)
from rota.cli.commands.check import summarise
from rota.emit.document.exchange import from_json, to_json
from rota.emit.forms import emit_skeleton
from rota.execute.executor import execute
from rota.program.loop_spec import Read
from tests.emit.edits import edited
from tests.findings.smallest import Small

TRIP_COUNTS = range(5)


def agrees(compiled: CompiledSchedule) -> bool:
    """The executor finds the declared result, as late as allowed and in 50 random interleavings."""
    return all(execute(compiled, trips).right for trips in TRIP_COUNTS)


def _gemm(machine: Machine) -> LoopSpec:
    """The smallest loop by values that multiplies: two tiles, two fragments, a sum."""
    loop = Loop("gemm", waves=4)
    wide = machine is GFX950
    tiles = [loop.tile(name, size=4096) for name in ("A", "B")]
    for tile in tiles:
        loop.load(tile, moved=4096, instructions=1 if wide else 4)
    a, b = (loop.fragment(tile.lower(), tile, registers=4 if wide else 2) for tile in tiles)
    loop.mma(loop.accumulator("c", registers=4), a, b, instruction=_MFMA if wide else "v_mfma_f32_16x16x16_bf16")
    return loop.build()


def _softmax() -> LoopSpec:
    """A value that is carried over, a product that stays in registers, and one that goes back through LDS."""
    loop = Loop("softmax", waves=4)
    loop.load(loop.tile("K", size=4096), moved=4096)
    s = loop.product("s", [loop.fragment("k", "K", registers=4)], registers=4, instruction=_MFMA)
    loop.valu("m", [s, Read(value="m", distance=1)], registers=1)
    loop.lds_store(loop.tile("P", size=4096), s, moved=4096)
    p = loop.fragment("p", "P", registers=4)
    loop.mma(loop.accumulator("o", registers=4), p, "k", instruction=_MFMA)
    return loop.build()


_MFMA = "v_mfma_f32_16x16x32_bf16"
BASES: dict[str, Callable[[], CompiledSchedule]] = {
    "by values": lambda: compile_loop(_gemm(GFX942), GFX942),
    "by values, a remainder": lambda: compile_loop(_gemm(GFX950), remainder=1),
    "by values, carried": lambda: compile_loop(_softmax()),
    "single buffer": lambda: compile_schedule(SingleBufferSchedule(2)),
    "single buffer, as written": lambda: compile_schedule(SingleBufferSchedule(2), sync="as_written"),
    "two stages": lambda: compile_schedule(Small()),
    "two stages, staggered": lambda: compile_schedule(
        Small(pipeline=PipelineConfig(m_mmas=1, n_mmas=1, warp_stagger=WarpStaggerRule.fixed(2)))
    ),
    "two stages, searched": lambda: compile_schedule(
        Small(knobs=ScheduleConfig(scheduling=SchedulingStrategy.CSP, minimal_barriers=True))
    ),
}
"""Small schedules of both front ends."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the edits of one base, and what should not have."""

    refused: int = 0
    unproved: int = 0
    proved: int = 0
    unchanged: int = 0
    slowest: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    @property
    def edits(self) -> int:
        """All of them."""
        return self.refused + self.unproved + self.proved + self.unchanged


@cache
def text_of(base: str) -> str:
    """A base as a document."""
    return to_json(BASES[base]())


def campaign(base: str, seeds: range, judge: Callable[[CompiledSchedule], bool] = agrees) -> Tally:
    """One edit for each seed; a verdict is asked for once for each schedule that differs."""
    tally, known = Tally(), dict[object, bool]()
    original = from_json(text_of(base))

    def right(compiled: CompiledSchedule) -> bool:
        about = compiled.lowered
        if about not in known:
            known[about] = judge(compiled)
        return known[about]

    for seed in seeds:
        name, text = edited(text_of(base), Random(f"{base} {seed}"))
        started = process_time()
        try:
            _take(text, original, tally, right)
        except RotaError as error:
            tally.refused += 1
            tally.codes[error.findings[0].code] += 1
            if error.findings[0].code != "T204":
                tally.defects.append(f"{base} {seed} {name}: refused with another code, {error}")
        except Exception as error:  # noqa: BLE001  # whatever is not in the error tree is what we look for
            tally.refused += 1
            tally.defects.append(f"{base} {seed} {name}: {type(error).__name__}: {error}")
        tally.slowest = max(tally.slowest, process_time() - started)
    return tally


def _take(text: str, original: CompiledSchedule, tally: Tally, right: Callable[[CompiledSchedule], bool]) -> None:
    read = from_json(text)
    if read == original:
        tally.unchanged += 1
        return
    clean = verify(read).clean
    if clean and not right(read):
        raise AssertionError("it is proved, and wrong")
    if read.certificate is not None and not clean:
        raise AssertionError("it has a certificate, and its proof fails")
    if from_json(to_json(read)) != read:
        raise AssertionError("it is read otherwise the second time")
    str(read), repr(read), summarise(read.name, read)
    with suppress(RotaError):
        emit_skeleton(read)
    tally.proved += clean
    tally.unproved += not clean
