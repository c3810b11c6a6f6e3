"""A launch that a function describes: takes a mapping, launches, gives the findings and what isn't as expected.

    def launch():
        x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
        return {"args": [x, y, 100], "grid": 1, "block": 128, "expected": {1: 2 * x}}

`expected` has values by the number of their argument, `rtol` and `atol` how far off they may be; none by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Concern, Finding, IsaError, did_you_mean
from rota.isa.launch.host_memory import is_array

if TYPE_CHECKING:
    from rota.isa.launch.loaded_kernel import LoadedKernel, Progress
    from rota.isa.launch.order_runs import LaunchResult

_KEYS = ("args", "grid", "block", "dynamic_lds", "expected", "rtol", "atol")


def launch_described(
    kernel: LoadedKernel, told: object, *, orders: int, seed: int = 0, progress: Progress | None = None
) -> LaunchResult:
    """Launches as told; outputs that are not as expected are findings too."""
    launch = _checked(told)
    result = kernel.launch(
        *launch["args"],
        grid=launch.get("grid", 1),
        block=launch["block"],
        dynamic_lds=launch.get("dynamic_lds", 0),
        orders=orders,
        seed=seed,
        check=False,
        progress=progress,
    )
    wrong = tuple(_wrong(launch))
    return replace(
        result, findings=(*result.findings, *wrong), seen=(*result.seen, *((result.orders[0],) for _ in wrong))
    )


def _checked(told: object) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"args", "block"} <= told.keys():
        raise _malformed(
            f"{type(told).__name__} without args and block" if isinstance(told, Mapping) else repr(told)[:60]
        )
    for key in told:
        if key not in _KEYS:
            raise _malformed(f"a key {key!r:.40}", *did_you_mean(str(key), _KEYS))
    for number in told.get("expected", {}):
        if not isinstance(number, int) or not 0 <= number < len(told["args"]) or not is_array(told["args"][number]):
            raise _malformed(f"an expectation of argument {number!r:.40}, which is no array")
    return told


def _wrong(launch: Mapping[str, Any]) -> Iterator[Finding]:
    """Compared in double precision."""
    for number, value in launch.get("expected", {}).items():
        got, due = (np.asarray(each).astype(np.float64) for each in (launch["args"][number], value))
        if got.shape != due.shape:
            raise _malformed(f"an expectation of shape {due.shape} for argument {number}, whose shape is {got.shape}")
        off = ~np.isclose(got, due, rtol=launch.get("rtol", 0.0), atol=launch.get("atol", 0.0), equal_nan=True)
        if off.any():
            where = tuple(int(each) for each in np.argwhere(off)[0])
            yield Finding(
                code="I123",
                message=f"argument {number} is not as expected",
                concerns=(Concern(label=f"argument {number}", index=number),),
                evidence=(
                    ("elements", f"{int(off.sum())} of {off.size}, the first at {where}"),
                    ("got", f"{got[where]:.9g}"),
                    ("expected", f"{due[where]:.9g}"),
                ),
            )


def _malformed(why: str, *fixes: str) -> IsaError:
    return IsaError(
        Finding(
            code="I107",
            message="the description of a launch is malformed",
            evidence=(("given", why),),
            fixes=(*fixes, 'give {"args": [...], "grid": ..., "block": ..., "expected": {number: array}}'),
        )
    )
