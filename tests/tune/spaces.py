"""Small spaces for tests: loops of quadrants, found by the heuristic alone, in a fraction of a second each."""

from __future__ import annotations

from typing import Any

from rota.tune.space import ProblemShape, TuneSpace, space_of

SHAPES = tuple(ProblemShape(m, n, 4096) for m in (1, 64, 4096) for n in (1024, 8192))


def space(**more: Any) -> TuneSpace:
    """Two tiles, if nothing else is said."""
    given = {"tile": ["128x128x64", "64x64x64"], "waves": 4, "grain": "tiles", "effort": 0.0, "split_k": [1, 4]}
    return space_of({**given, **more})


def makers(*names: str) -> list[str]:
    return [f"tests.tune.misbehaving:{name}" for name in names]
