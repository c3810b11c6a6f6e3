"""The order alone: takes any compiled schedule, gives a header that calls what the author supplies for each op.

Waits, barriers and fences are rota's; what an op does is the author's: a class with one function for each kind of op.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.compiler.compiled import CompiledSchedule
from rota.declare.values import Home, LoopOp, LoopSpec
from rota.declare.vocabulary import OpRole, Phase
from rota.emit.contract import contract
from rota.emit.gemm_words import macros
from rota.emit.k_tiles import KTiles, k_tiles
from rota.emit.names import comment, identifier, symbol
from rota.emit.reasons import sync_reason, sync_reasons
from rota.emit.register_waits import with_register_waits
from rota.emit.sync_text import sync_text, sync_words
from rota.program.loop import Step, steps_of

_COMMENT_COLUMN = 72


class _Call(NamedTuple):
    """A function, the numbers it is specialised for, what they are called, and which K-tile it is told."""

    name: str
    numbers: tuple[int, ...]
    called: tuple[str, ...]
    k_tile: int

    @property
    def declaration(self) -> str:
        """How the author declares it."""
        template = f"template <{', '.join(f'int {each}' for each in self.called)}> " if self.called else ""
        return f"{template}void {self.name}(int k);"

    def text(self, base: str) -> str:
        """The call, where K-tiles count from `base`."""
        numbers = f"template {self.name}<{', '.join(map(str, self.numbers))}>" if self.numbers else self.name
        if not base:
            return f"ops.{numbers}({self.k_tile});"
        sign = "-" if self.k_tile < 0 else "+"
        return f"ops.{numbers}({f'{base} {sign} {abs(self.k_tile)}' if self.k_tile else base});"


def emit_skeleton(compiled: CompiledSchedule) -> str:
    """The header; waits for registers are planned first where the schedule left them to the compiler."""
    compiled = with_register_waits(compiled)
    steps, reasons = steps_of(compiled), sync_reasons(compiled)
    words = list(sync_words())
    name = identifier(symbol(compiled), macros(words))
    tiles = k_tiles(steps)
    phases = {phase: list(_phase(compiled, phase, tiles, reasons)) for phase in Phase}
    data = [step for phase in Phase for step in steps.phase(phase) if _is_data(step)]
    if compiled.loop is not None:
        data.sort(key=lambda step: step.entry.op.subtile)  # as declared, whatever the schedule
    supplied = dict.fromkeys(_call(compiled.loop, step, 0).declaration for step in data)
    groups = ", int wave_group" if steps.groups > 1 else ""
    group_note = ["// `wave_group` is 0 or 1, the same for all lanes of a wave."] if groups else []
    lines = [
        comment(f"The order of {name} for {compiled.machine.name} ({compiled.machine.arch})."),
        f"// It computes {steps.tiles_outside} + {steps.tiles_per_trip} * trips K-tiles, trips >= 0.",
        "// `k` is the number, from 0, of the K-tile that a function works on.",
        *group_note,
        "// `Ops` supplies, always inlined, each issuing what the schedule counted for it and no wait of its own:",
        *(f"//   {each}" for each in supplied),
        *_shared(compiled.loop),
        *contract(compiled),
        "#pragma once",
        *words,
        "",
        "template <class Ops>",
        f"__attribute__((device, always_inline)) inline void {name}(Ops& ops, int trips{groups}) {{",
        *phases[Phase.PROLOGUE],
        f"  int k = {steps.tiles_per_trip};",
        "  #pragma clang loop unroll(disable)",
        "  for (; trips > 0; --trips) {",
        *(f"  {line}" for line in phases[Phase.KERNEL]),
        f"    k += {steps.tiles_per_trip};",
        "  }",
        *phases[Phase.EPILOGUE],
        "}",
        *(f"#undef {name}" for name in macros(words)),
        "",
    ]
    return "\n".join(lines)


def _shared(loop: LoopSpec | None) -> Iterator[str]:
    """Which values take over the registers of others, and so their copies."""
    for value in loop.values if loop else ():
        if value.into:
            yield f"// {identifier(value.name)} is written into the registers of {identifier(value.into)}."


def _phase(
    compiled: CompiledSchedule, phase: Phase, tiles: KTiles, reasons: dict[tuple[Phase, int], str]
) -> Iterator[str]:
    yield f"  // {phase.value.lower()}"
    for step, tile in zip(steps_of(compiled).phase(phase), tiles[phase], strict=True):
        why = f"#{step.entry.time_slot} {step.entry.op}"
        if _is_data(step):
            text = f"{_call(compiled.loop, step, tile).text('' if phase is Phase.PROLOGUE else 'k')} ROTA_FENCE"
        else:
            text = sync_text(step)
            reason = sync_reason(step, reasons)
            why += f": {reason}" if reason else ""
        yield f"  {text}".ljust(_COMMENT_COLUMN) + comment(why)


def _is_data(step: Step) -> bool:
    return not step.entry.op.is_framework


def _call(loop: LoopSpec | None, step: Step, k_tile: int) -> _Call:
    op, effect = step.entry.op, step.effect
    if loop is not None and effect.instance is not None:
        spec = loop.ops[op.subtile]
        called, numbers = _copies(loop, spec, step)
        return _Call(identifier(spec.name), numbers, called, k_tile)
    called = ("row", "column") if op.role is OpRole.COMPUTE else ("stage", "subtile")
    return _Call(identifier(op.name), (op.stage, op.subtile), called, k_tile)


def _copies(loop: LoopSpec, spec: LoopOp, step: Step) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Which copy of each value the op writes and reads; an accumulator has only one."""
    effect = step.effect
    called: list[str] = []
    numbers: list[int] = []
    makes = {version.name: place.stage for place, version in effect.makes}
    for value in spec.writes:
        if loop.value(value).home is not Home.ACCUMULATOR:
            called.append(f"to_{value}")
            numbers.append(makes[value])
    iteration = effect.instance.iteration if effect.instance else 0
    wants = {(version.name, version.iteration): place.stage for place, version in effect.wants}
    for read in spec.reads:
        called.append(f"from_{_value_name(read.value, read.distance)}")
        numbers.append(wants[read.value, iteration - read.distance])
    return tuple(called), tuple(numbers)


def _value_name(value: str, distance: int) -> str:
    """A value of this iteration, or of one before."""
    return f"{value}_before{distance}" if distance else value
