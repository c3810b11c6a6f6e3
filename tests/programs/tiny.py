"""Programs of a few effects: takes a loop's values and what its kernel does, gives a lowered program."""

from __future__ import annotations

from collections.abc import Sequence

from rota import GFX950
from rota.program.entry import Effect, Entry, Op
from rota.program.kinds import Phase
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram


def tiny(
    spec: LoopSpec, kernel: Sequence[Effect], *, prologue: Sequence[Effect] = (), epilogue: Sequence[Effect] = ()
) -> LoweredProgram:
    """One iteration a trip, none outside; each effect is that of the op it says it stands for."""

    def phase(effects: Sequence[Effect], name: Phase) -> tuple[Entry, ...]:
        return tuple(
            Entry(op=_op(effect), effect=effect, time_slot=slot, phase=name) for slot, effect in enumerate(effects)
        )

    return LoweredProgram(
        name=spec.name,
        machine=GFX950,
        semantics=spec,
        prologue=phase(prologue, Phase.PROLOGUE),
        kernel=phase(kernel, Phase.KERNEL),
        epilogue=phase(epilogue, Phase.EPILOGUE),
        tiles_per_trip=1,
        tiles_outside=0,
        waves=spec.waves,
    )


def _op(effect: Effect) -> Op:
    return Op(kind=effect.kind, name=effect.instance.name or effect.kind.word)
