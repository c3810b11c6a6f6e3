"""Other schedules of a loop: takes a loop by values, gives several of the same least interval, each proved.

They differ in which placement the search met first; `rota.simulate.predict.rank` puts the one that a cycle model likes
best in front.
"""

from __future__ import annotations

from dataclasses import replace

from rota.compiler.compiled import CompiledSchedule
from rota.compiler.loop import compile_loop
from rota.declare.check import bad_field, is_int
from rota.declare.values import LoopSpec
from rota.order.modulo import ModuloScheduler
from rota.targets.machine import GFX950, Machine

_TRIES_EACH = 3


def top_k(loop: LoopSpec, machine: Machine = GFX950, *, k: int, stagger: bool = False) -> tuple[CompiledSchedule, ...]:
    """Up to `k` schedules with different orders; fewer if the search keeps finding the same ones."""
    if not is_int(k) or k < 1:
        raise bad_field(loop, "k", k, "a whole number, at least 1")
    found: dict[tuple[object, ...], CompiledSchedule] = {}
    for seed in range(_TRIES_EACH * k):
        scheduler = replace(ModuloScheduler(), seed=seed)
        compiled = compile_loop(loop, machine, stagger=stagger, scheduler=scheduler)
        found.setdefault(tuple(entry.op for entry in compiled.kernel), compiled)
        if len(found) == k:
            break
    return tuple(found.values())
