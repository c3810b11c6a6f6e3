"""Bounds of the whole kernels that rota emits: `python -m benchmarks.own_kernel_bounds [--only NAME] [--taken NAME]`.

A kernel is emitted and compiled, and each of its accesses is proved to lie inside, for every problem that its launcher
accepts: what is promised are the conditions that the launcher checks, and the grid that it starts.  Three contracts are
judged: of a launch with one split of K, of one with several, and of the kernel that adds them.  With `--taken NAME`,
each promise to the kernels of that name is taken away, alone: then accesses aren't proved any more, or the promise is
needless for them.  The exit status is 1 if an access isn't proved, or no promise to a kernel is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rota.emit.gemm.gemm_plan import gemm_plan
from rota.emit.whole.whole_host import KernelPromises, promises_of
from rota.emit.whole.whole_options import WholeGemm, parse_options
from rota.prove.footprint.accesses import KernelAccesses, accesses_of
from rota.prove.footprint.bounds import Judged, Reach, are_inside, judge_bounds, parse_contract
from rota.prove.footprint.known_sums import Contract
from tests.campaigns.whole.whole_kernels import built, loop_of, shape_of

_PLAIN = {"output": "bf16"}
KERNELS: dict[str, tuple[str, dict[str, str]]] = {
    "bf16": ("small", _PLAIN),
    "bf16, 8 waves": ("large", _PLAIN),
    "fp8": ("fp8", _PLAIN),
    "persistent": ("small", {**_PLAIN, "persistent": "true"}),
    "in order": ("small", {**_PLAIN, "xcds": "1", "group": "1"}),
    "bf16, MI300X": ("small_mi300x", _PLAIN),
    "beta": ("small", {**_PLAIN, "epilogue": "alpha,beta"}),
    "scales, bias": ("small", {**_PLAIN, "epilogue": "row_scale,column_scale,column_bias"}),
    "gated": ("small", {**_PLAIN, "epilogue": "alpha,gated_silu"}),
}
"""What is judged by name: a loop of `tests.campaigns.whole.whole_kernels`, and the settings around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One of a kernel's launches: with several splits of K or with one, or the kernel that adds splits."""

    name: str
    splits: bool
    reduction: bool = False


LAUNCHES = (
    Launch(name="one split", splits=False),
    Launch(name="splits", splits=True),
    Launch(name="their sum", splits=True, reduction=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """The accesses of a kernel, and what is promised to it."""

    accesses: KernelAccesses
    promises: KernelPromises

    def judge(self) -> tuple[Judged, ...]:
        """Each access that the promises are about."""
        judged = judge_bounds(self.accesses, self._contract())
        return tuple(each for each in judged if each.reach is not Reach.NO_EXTENT)

    def needs(self, words: str) -> bool:
        """True if accesses aren't proved without one of the promises."""
        return not are_inside(self.accesses, self._contract(without=words))

    def _contract(self, without: str = "") -> Contract:
        stated = [fact for words, facts in self.promises.facts if words != without for fact in facts]
        return parse_contract(self.accesses, self.promises.extents, self.promises.counts, stated)

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(words for words, _ in self.promises.facts)


@cache
def promised(name: str, launch: Launch) -> Promised:
    loop, settings = KERNELS[name]
    asked = parse_options(settings)
    made = built(loop, asked)
    kernel = accesses_of(made.code, f"{made.name}_reduce" if launch.reduction else made.name)
    return Promised(accesses=kernel, promises=_promises(loop, asked, launch))


def _promises(loop: str, asked: WholeGemm, launch: Launch) -> KernelPromises:
    plan = gemm_plan(loop_of(loop), shape_of(loop)[0].geometry)
    return promises_of(plan, asked, splits=launch.splits, reduction=launch.reduction)


def count_inside(judged: tuple[Judged, ...]) -> tuple[int, int]:
    """How many accesses are proved to lie inside, and how many there are."""
    return sum(each.reach is Reach.INSIDE for each in judged), len(judged)


def print_kernels(only: str) -> bool:
    """The first table; True if all is proved."""
    right = True
    print(f"| kernel | {' | '.join(each.name for each in LAUNCHES)} | not proved |")
    print("|---|---|---|---|---|")
    for name in (each for each in KERNELS if only in each):
        cells, left = list[str](), Counter[str]()
        for launch in LAUNCHES:
            given = promised(name, launch)
            judged = given.judge()
            inside, count = count_inside(judged)
            left.update(each.access.pointer for each in judged if each.reach is not Reach.INSIDE)
            left["not read"] += len(given.accesses.refused)
            cells.append(f"{inside} of {count}")
        left = +left
        right &= not left
        print(
            f"| {name} | {' | '.join(cells)} | {', '.join(f'{n} of {where}' for where, n in left.items())} |",
            flush=True,
        )
    return right


def print_taken(name: str, launches: Sequence[Launch]) -> bool:
    """The second table; True if some promise is needed for each launch."""
    print(f"| taken away from {name} | {' | '.join(each.name for each in launches)} |")
    print(f"|---|{'---|' * len(launches)}")
    needed = set[Launch]()
    for words in dict.fromkeys(words for launch in launches for words in promised(name, launch).known):
        cells = []
        for launch in launches:
            given = promised(name, launch)
            needs = words in given.known and given.needs(words)
            needed |= {launch} if needs else set()
            cells.append("not proved" if needs else "needless" if words in given.known else "")
        print(f"| {words} | {' | '.join(cells)} |", flush=True)
    return needed == set(launches)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of kernels")
    parser.add_argument("--taken", default="", help="the kernel whose promises are taken away", choices=("", *KERNELS))
    parser.add_argument("--launch", default="", help="a part of the names of launches, of which they are taken away")
    given = parser.parse_args()
    launches = [each for each in LAUNCHES if given.launch in each.name]
    start = time.perf_counter()
    right = print_taken(given.taken, launches) if given.taken else print_kernels(given.only)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
