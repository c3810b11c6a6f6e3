"""Whole kernels that rota emits stay inside for every problem that their launcher accepts; a share of the campaign."""

from __future__ import annotations

import re
from random import Random

import pytest

from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.whole.whole_host import THE_GRID, LaunchCheck, conditions_of
from rota.emit.whole.whole_options import PARAMETERS, parse_options
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.bounds import Reach
from tests.campaigns.machine_code.own_kernel_bounds import LAUNCHES, Launch, Promised, promised
from tests.campaigns.whole.whole_kernels import built_of, loop_of, shape_of, source_of

pytestmark = pytest.mark.thorough  # compiles, and asks z3 for seconds

_, SPLITS, SUM = LAUNCHES
WRITTEN = {SPLITS: "partial", SUM: "D"}


@pytest.mark.parametrize("launch", [SPLITS, SUM], ids=lambda each: each.name)
def test_every_access_is_proved(launch: Launch) -> None:
    given = promised("bf16", launch)
    judged = given.judge()
    assert {each.reach for each in judged} == {Reach.INSIDE}
    assert given.accesses.refused == ()
    accessed = {(each.access.pointer, each.access.verb) for each in judged}
    assert (WRITTEN[launch], "write") in accessed
    assert len(judged) > 10


def test_without_the_grid_sums_of_splits_are_not_proved() -> None:
    assert promised("bf16", SUM).needs(THE_GRID)


DAMAGED = {
    "rows beyond the last one": ("a_rows = M - tile_row * 128 < 128 ? M - tile_row * 128 : 128;", "a_rows = 128;"),
    "a tile too far": ("turn = __builtin_amdgcn_workgroup_id_x();", "turn = __builtin_amdgcn_workgroup_id_x() + 1;"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_kernel_is_not_proved(name: str) -> None:
    """So the promises don't contradict one another, either: then all would be proved."""
    loop, asked = "small", parse_options({"output": "bf16", "xcds": "1", "group": "1"})
    right, wrong = DAMAGED[name]
    source = source_of(loop, asked)
    assert source.count(right) == 1
    made = built_of(loop, asked, source.replace(right, wrong))
    damaged = Promised(accesses=accesses_of(made.code, made.name), promises=promised("in order", SPLITS).promises)
    assert damaged.needs("nothing")


# Each fact follows from the condition in C++ beside it.


def _in_python(test: str) -> str:
    """A condition in C++ as one of Python, over numbers that aren't negative where they are divided."""
    test = re.sub(r"\bp\.", "", test.replace("LL", "").replace("&&", " and ").replace("||", " or "))
    for name, value in (("INT_MAX", 2**31 - 1), ("UINT_MAX", 2**32 - 1), ("nullptr", -1)):
        test = re.sub(rf"\b{name}\b", str(value), test)
    return test.replace("(std::uintptr_t)", "").replace("/", "//")


def _draw(random: Random, limits: list[int], test: str) -> dict[str, int]:
    """Numbers at limits, and beside them, or as large as others; below zero only where the condition refuses it."""
    found: dict[str, int] = {}
    for name, kind in [*((each.name, each.type) for each in reversed(PARAMETERS)), ("batches", "int")]:
        drawn = random.choice([*limits, *list(found.values())[:9]]) + random.choice((-1, 0, 0, 1))
        least = -1 if re.search(rf"\bp\.{name} >= [01]\b", test) else 0
        found[name] = min(max(drawn, least), (1 << (63 if kind == "long long" else 31)) - 1)
    return found


def _check(condition: LaunchCheck, numbers: dict[str, int], name: str) -> bool | None:
    """True if the condition holds and its facts do, None if the condition doesn't hold."""
    names = {**numbers, f"{name}_tiles": lambda _: (numbers["M"] + 127) // 128 * ((numbers["N"] + 127) // 128), "p": 0}
    test = condition.test.replace("_tiles(p)", "_tiles(0)")
    try:
        if not eval(_in_python(test), {}, names):
            return None
    except ZeroDivisionError:
        return None
    # The kernel's words have no sign.
    wide = {each.name: 64 if each.type == "long long" else 32 for each in PARAMETERS}
    words = {each: number % (1 << wide.get(each, 32)) for each, number in numbers.items()}
    facts = (*condition.facts, *(condition.of_splits if numbers["splits"] != 1 else ()))
    return all(eval(fact, {}, words) for fact in facts)


@pytest.mark.parametrize("loop", ["small_kn", "fp4_small", "mxfp8_small"])
def test_facts_follow_from_what_the_launcher_checks(loop: str) -> None:
    """Each is drawn at its limits; numbers that it doesn't hold for say nothing."""
    tile, random = gemm_tile(loop_of(loop), shape_of(loop)[0].geometry), Random(loop)
    asked = parse_options({"output": "bf16", "epilogue": "alpha,beta"})
    given = [each for each in conditions_of("gemm", tile, asked) if each.facts or each.of_splits]
    assert len(given) > 15
    for condition in given:
        limits = [0, 1, 2, 32, 100, *(int(text) for text in re.findall(r"\b\d+\b", " ".join(condition.facts)))]
        drawn = [_check(condition, _draw(random, limits, condition.test), "gemm") for _ in range(600)]
        assert True in drawn, condition.words
        assert False not in drawn, condition.words
