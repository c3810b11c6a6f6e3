"""Other schedules of a loop: takes a loop by values, gives several of the same least interval, each proved.

They differ in which placement the search met first; `rota.cycles.predict.rank` puts the one that a cycle model likes
best in front.
"""

from __future__ import annotations

from dataclasses import replace

from rota.check import bad_field, is_int
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.targets.default import DEFAULT
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop

_TRIES_EACH = 3


def top_k(loop: LoopSpec, machine: Machine = DEFAULT, *, k: int, stagger: bool = False) -> tuple[CompiledLoop, ...]:
    """Up to `k` schedules with different orders; fewer if the search keeps finding the same ones."""
    if not is_int(k) or k < 1:
        raise bad_field(loop, "k", k, "an integer, at least 1")
    found: dict[tuple[object, ...], CompiledLoop] = {}
    for seed in range(_TRIES_EACH * k):
        scheduler = replace(ModuloScheduler(), seed=seed)
        compiled = compile_loop(loop, machine, stagger=stagger, scheduler=scheduler)
        found.setdefault(tuple(entry.op for entry in compiled.kernel), compiled)
        if len(found) == k:
            break
    return tuple(found.values())
