"""The oracle's own truths: small programs, right and wrong, whose verdict can be read off the machine model."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from rota import DeclarationError, verify
from rota.program.entry import Op
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Lowerable, LoweredProgram
from tests.oracle.by_values import check_homes
from tests.oracle.judge import draw
from tests.oracle.oracle import agrees, barriers_of, counters_of, first_wrong, meaning_of, programs
from tests.oracle.plain import Exploration, TooManyStatesError
from tests.oracle.step import WrongError
from tests.oracle.written import by_stages, by_values, loop_of

FILL = "loadA0 loadB0 loadA1 loadB1 vm0 bar"
TRIP = "readA0 readB0 lgkm0 mma bar loadA0 loadB0 readA1 readB1 lgkm0 mma bar loadA1 loadB1 vm0 bar"
LAST = "readA0 readB0 lgkm0 mma readA1 readB1 lgkm0 mma"

STAGE = "load vm0 store lgkm0 bar load"
STAGED_TRIP = "slice0 slice1 lgkm0 add0 add1 bar vm0 store load lgkm0 bar"
STAGED_LAST = "slice0 slice1 lgkm0 add0 add1 bar vm0 store lgkm0 bar slice0 slice1 lgkm0 add0 add1"


def kind(compiled: Lowerable) -> str:
    found = first_wrong(compiled)
    return found[1].kind if found else ""


def without(words: str, place: int) -> str:
    each = words.split()
    return " ".join(each[:place] + each[place + 1 :])


def test_an_entry_does_what_its_op_says_and_not_what_it_claims() -> None:
    right = by_stages(FILL, TRIP, LAST).lowered
    fence = Op(kind=OpKind.FENCE, name="fence")
    claimed = tuple(replace(entry, op=fence) if entry.op.name == "barrier" else entry for entry in right.kernel)
    fences = tuple(replace(entry, effect=replace(entry.effect, kind=entry.op.kind)) for entry in claimed)
    assert kind(replace(right, kernel=claimed)) == "claim"
    assert kind(replace(right, kernel=fences)) == "race"
    assert not verify(replace(right, kernel=claimed)).clean
    assert not verify(replace(right, kernel=fences)).clean


def test_a_double_buffer_with_all_its_waits_is_right() -> None:
    assert agrees(by_stages(FILL, TRIP, LAST))
    assert agrees(by_stages(FILL, TRIP, LAST), range(12))


@pytest.mark.parametrize(
    ("prologue", "kernel", "epilogue", "expected"),
    [
        (without(FILL, 5), TRIP, LAST, "race"),  # reads before all waves' parts have landed
        (without(FILL, 4), TRIP, LAST, "own order"),
        (FILL, without(TRIP, 4), LAST, "race"),  # loads while another wave reads
        (FILL, TRIP.replace("bar loadA0", "loadA0 bar"), LAST, "race"),
        (FILL, TRIP.replace("vm0", "vm2"), LAST, "own order"),
        (FILL, TRIP.replace("vm0", "vm63"), LAST, "encoding"),
        (FILL, TRIP.replace("lgkm0", "lgkm15"), LAST, "encoding"),
        (FILL, TRIP.replace("lgkm0", "lgkm1"), LAST, "register"),
        (FILL, without(TRIP, 2), LAST, "register"),
        (FILL, without(TRIP, 3), LAST, "count"),
        (FILL, TRIP.replace("mma", "mma mma"), LAST, "count"),
        (FILL, TRIP.replace("mma", ""), LAST.replace("mma", ""), "count"),
        (FILL, without(TRIP, 6), LAST, "value"),  # B of another K-tile
        (FILL, TRIP.replace("loadA1", "loadA0"), LAST, "own writes"),
    ],
)
def test_a_double_buffer_with_one_mistake_is_wrong(prologue: str, kernel: str, epilogue: str, expected: str) -> None:
    assert kind(by_stages(prologue, kernel, epilogue)) == expected


def test_what_a_wave_one_barrier_behind_still_reads_must_not_be_overwritten() -> None:
    assert kind(by_stages(FILL, TRIP, LAST, stagger=6)) == "race"
    spread = TRIP.replace("mma", "mma bar").replace("vm0", "vm0 bar")
    assert agrees(by_stages(FILL + " bar", spread, LAST, stagger=6))


def test_a_group_that_never_falls_back_leaves_the_other_at_its_last_barrier() -> None:
    staggered = by_stages(FILL, TRIP, LAST, stagger=6).lowered
    together = tuple(entry for entry in staggered.prologue if entry.roles is None)
    assert len(together) == len(staggered.prologue) - 1
    assert kind(replace(staggered, prologue=together)) == "barriers"


def test_a_compiler_that_tracks_registers_waits_at_the_use_and_so_covers_all_older_reads() -> None:
    bare = by_stages(FILL, TRIP.replace("lgkm0", ""), LAST, tracked=True)
    assert agrees(bare)
    assert kind(replace(bare, compiler_tracks_registers=False)) == "register"


def test_a_single_buffer_stages_tiles_through_registers() -> None:
    assert agrees(by_stages(STAGE, STAGED_TRIP, STAGED_LAST, slices=2))


@pytest.mark.parametrize(
    ("kernel", "epilogue", "expected"),
    [
        (STAGED_TRIP.replace("vm0", ""), STAGED_LAST, "register"),  # stores what has not arrived
        (STAGED_TRIP.replace("bar vm0", "vm0"), STAGED_LAST, "race"),
        (STAGED_TRIP.replace("lgkm0 bar", "bar"), STAGED_LAST, "race"),
        (STAGED_TRIP.replace("add1", ""), STAGED_LAST.replace("add1", ""), "count"),
        (STAGED_TRIP.replace("load ", ""), STAGED_LAST, "count"),
        (STAGED_TRIP.replace("store load", "load store"), STAGED_LAST, "register"),
    ],
)
def test_a_single_buffer_with_one_mistake_is_wrong(kernel: str, epilogue: str, expected: str) -> None:
    assert kind(by_stages(STAGE, kernel, epilogue, slices=2)) == expected


SUM = loop_of("t = load", "r = fragment t", "c = mma r")
SUM_TRIP = "0@0 vm0 bar 1@0 lgkm0 2@0 bar"

ADDRESS = loop_of("t = load", "a = fragment t", "u = load a", "r = fragment t a", "c = mma r")
ADDRESS_TRIP = "0@0 vm0 bar 1@0 lgkm0 2@0 3@0 lgkm0 4@0 vm0 bar"

SCALES = loop_of("s = load", "c = mma s")

CARRIED = loop_of("m = valu m@1", "c = mma m m@1")
FAR = loop_of("t = load", "r = fragment t", "c = mma r@2")

UNREAD = loop_of("t = load", "r = fragment t", "v = valu", "c = mma v", into=[("v", "r")])
PARTS = loop_of("t = load", "t = load", "r = fragment t", "c = mma r")
TWO_READS = loop_of("t = load", "r = fragment t", "v = fragment t", "c = mma v", into=[("v", "r")])
LAST_ONE = loop_of("r = valu", "c = mma r@1")
READ_AND_LOAD = loop_of("t = load", "r = fragment t", "v = load", "c = mma v", into=[("v", "r")])

RIGHT: dict[str, LoweredProgram] = {
    "a sum": by_values(SUM, "", SUM_TRIP, ""),
    "a sum, one iteration outside": by_values(SUM, "", SUM_TRIP, SUM_TRIP, tiles=(1, 1)),
    "addresses": by_values(ADDRESS, "", ADDRESS_TRIP, ""),
    "a load into registers needs no barrier": by_values(SCALES, "", "0@0 vm0 1@0", ""),
    "the compiler waits for it": by_values(SCALES, "", "0@0 1@0", "", tracked=True),
    "a carried value has two copies": by_values(CARRIED, "", "0@0 1@0 0@1 1@1", "", copies={"m": 2}, tiles=(2, 0)),
    "far reads have their first versions": by_values(
        FAR, "", "0@0 2@0 vm0 bar 1@0 lgkm0 bar 0@1 2@1 vm0 bar 1@1 lgkm0 bar", "", copies={"r": 2}, tiles=(2, 0)
    ),
    "the unread read has landed": by_values(UNREAD, "", "0@0 vm0 bar 1@0 lgkm0 2@0 3@0 bar", ""),
    "the compiler waits before it overwrites": by_values(UNREAD, "", "0@0 vm0 bar 1@0 2@0 3@0 bar", "", tracked=True),
    "the last version is there at the end": by_values(LAST_ONE, "", "1@0 0@0", "1@0 0@0 1@1 0@1", tiles=(1, 2)),
    "parts land in any order": by_values(PARTS, "", "0@0 1@0 vm0 bar 2@0 lgkm0 3@0 bar", ""),
    "two reads into the same registers land in order": by_values(
        TWO_READS, "", "0@0 vm0 bar 1@0 2@0 lgkm0 3@0 bar", ""
    ),
}
WRONG: dict[str, tuple[str, LoweredProgram]] = {
    "no barrier before the read": ("race", by_values(SUM, "", SUM_TRIP.replace("vm0 bar", "vm0"), "")),
    "no wait before the barrier": ("own order", by_values(SUM, "", SUM_TRIP.replace("vm0 bar", "bar"), "")),
    "no barrier before the next load": ("race", by_values(SUM, "", SUM_TRIP.removesuffix(" bar"), "")),
    "the fragment is in flight": ("register", by_values(SUM, "", SUM_TRIP.replace("lgkm0", ""), "")),
    "an op nowhere": ("count", by_values(SUM, "", SUM_TRIP.replace("2@0", ""), "")),
    "an op twice": ("count", by_values(SUM, "", SUM_TRIP.replace("2@0", "2@0 2@0"), "")),
    "an iteration too many": ("count", by_values(SUM, "", SUM_TRIP, SUM_TRIP)),
    "a read's address is in flight": (
        "register",
        by_values(ADDRESS, "", ADDRESS_TRIP.replace("lgkm0 2@0 3@0", "3@0 lgkm0 2@0"), ""),
    ),
    "a load's address is in flight": (
        "register",
        by_values(ADDRESS, "", ADDRESS_TRIP.replace("lgkm0 2@0 3@0", "2@0 lgkm0 3@0"), ""),
    ),
    "a load into registers is in flight": ("register", by_values(SCALES, "", "0@0 vm1 1@0", "")),
    "the first version is overwritten": ("value", by_values(CARRIED, "", "0@0 1@0", "")),
    "two first versions in one copy": (
        "value",
        by_values(FAR, "2@0", "2@1 0@0 vm0 bar 1@0 lgkm0 bar", "0@0 vm0 bar 1@0 lgkm0", tiles=(1, 1)),
    ),
    "the unread read lands late": ("landing", by_values(UNREAD, "", "0@0 vm0 bar 1@0 2@0 3@0 bar", "")),
    "the unread read has landed, nobody knows when": (
        "landing",
        by_values(UNREAD, "", "0@0 vm0 bar 1@0 2@0 lgkm0 3@0 bar", ""),
    ),
    "a read and a load into the same registers land in any order": (
        "landing",
        by_values(READ_AND_LOAD, "", "0@0 vm0 bar 1@0 2@0 lgkm0 vm0 3@0 bar", ""),
    ),
    "one part was not waited for": ("own order", by_values(PARTS, "", "0@0 1@0 vm1 bar 2@0 lgkm0 3@0 bar", "")),
    "the last version is not there at the end": (
        "result",
        by_values(LAST_ONE, "", "1@0 0@0", "1@0 0@1 0@0 1@1", tiles=(1, 2)),
    ),
    "two loads of a wave into one tile": (
        "own writes",
        by_values(loop_of("t = load", "v = valu", "c = mma v"), "", "0@0 1@0 2@0", ""),
    ),
}


def test_a_loop_that_is_run_again_may_still_be_read_from() -> None:
    once = by_stages(FILL, TRIP, LAST)
    assert kind(replace(once, reentrant=True)) == "race"
    assert agrees(replace(by_stages(FILL, TRIP, LAST + " bar"), reentrant=True))


def test_what_lands_after_the_end_lands_on_what_the_next_run_begins_with() -> None:
    kernel = "lgkm0 bar 2@0 0@0 vm0 bar 1@0 lgkm0 bar 2@1 0@1 vm0 bar 1@1"
    late = by_values(FAR, "", kernel, "", copies={"r": 2}, tiles=(2, 0))
    waited = by_values(FAR, "", kernel, "lgkm0", copies={"r": 2}, tiles=(2, 0))
    assert agrees(late)
    assert kind(replace(late, reentrant=True)) == "value"
    assert agrees(replace(waited, reentrant=True))


def test_a_counted_wait_covers_nothing_where_vmcnt_keeps_no_order() -> None:
    two = loop_of("t = load", "u = load", "r = fragment t", "c = mma r")
    counted = by_values(two, "", "0@0 1@0 vm1 bar 2@0 lgkm0 3@0 vm0 bar", "")
    assert agrees(counted)
    unordered = replace(counted, machine=counted.machine.doubting("vmcnt"))
    assert kind(unordered) == "own order"
    assert explored(unordered, 1)
    assert not explored(counted, 1)


def test_right_loops_are_right() -> None:
    assert {name: kind(compiled) for name, compiled in RIGHT.items()} == dict.fromkeys(RIGHT, "")


def test_wrong_loops_are_wrong_and_why() -> None:
    expected = {name: why for name, (why, _) in WRONG.items()}
    assert {name: kind(compiled) for name, (_, compiled) in WRONG.items()} == expected


@pytest.mark.parametrize("kind", [kind for kind in OpKind if kind.reads or kind.writes])
def test_the_declaration_refuses_just_the_homes_that_no_machine_has(kind: OpKind) -> None:
    for read, written in product(Home, Home):
        inputs, reads = (("x",), ()) if read is Home.INPUT else ((), (Read(value="x"),))
        op = LoopOp(name="op", kind=kind, reads=reads, inputs=inputs, writes=("y",))
        values = (Value(name="x", home=read, size=4), Value(name="y", home=written, size=4))
        maker = LoopOp(name="make", kind=OpKind.DMA if read is Home.LDS else OpKind.VALU, writes=("x",))
        makers = () if read is Home.INPUT else (maker,)
        try:
            LoopSpec(name="loop", waves=4, values=values, ops=(*makers, op))
            refused = ""
        except DeclarationError as error:
            refused = error.findings[0].code
        try:
            check_homes(op, {"x": read, "y": written})
        except WrongError:
            assert refused == "D111", (read, written)
        else:
            assert not refused, (read, written)


@pytest.mark.parametrize("name", RIGHT)
def test_the_proof_accepts_right_loops(name: str) -> None:
    assert verify(RIGHT[name]).clean


@pytest.mark.parametrize("name", WRONG)
def test_the_proof_refuses_wrong_loops(name: str) -> None:
    assert not verify(WRONG[name][1]).clean


_UNSEEN = ("count", "encoding", "barriers", "own writes", "landing", "result", "claim")  # by any read in the loop


def explored(program: LoweredProgram, trips: int) -> bool:
    """Does any interleaving of two waves, of one group or of two, read a wrong version?"""
    groups = programs(program, meaning_of(program), trips)
    pairs = [(one, two) for one in range(len(groups)) for two in range(one, len(groups))]
    return any(
        Exploration(
            [groups[role] for role in pair],
            pair,
            barriers_of(program),
            tracked=program.compiler_tracks_registers,
            counters=counters_of(program),
        ).goes_wrong()
        for pair in pairs
    )


@pytest.mark.parametrize("name", RIGHT)
def test_no_interleaving_of_a_right_loop_goes_wrong(name: str) -> None:
    assert not explored(RIGHT[name], 1)
    assert not explored(RIGHT[name], 2)


@pytest.mark.parametrize(
    "name", [name for name, (why, _) in WRONG.items() if why not in ("count", "own writes", "result")]
)
def test_some_interleaving_of_a_wrong_loop_goes_wrong(name: str) -> None:
    _, compiled = WRONG[name]
    found = first_wrong(compiled)
    assert found is not None
    assert explored(compiled, found[0])


@pytest.mark.thorough  # runs for seconds
def test_the_walk_says_what_exploring_every_interleaving_says() -> None:
    """Where ops run once each: then every order that a race allows and values don't gives some op a wrong version."""
    compared = 0
    for seed in range(50):
        for drawn in draw("by values", seed, 4):
            program = replace(drawn.program, reentrant=False)
            found = first_wrong(program, (1,))
            if found is not None and found[1].kind in _UNSEEN:
                continue
            if len(program.entries) > 22 or not _once(program):
                continue
            try:
                assert explored(program, 1) is (found is not None), drawn
            except TooManyStatesError:
                continue
            compared += 1
    assert compared > 15


def _once(program: LoweredProgram) -> bool:
    """No op runs twice in one iteration; what writes the same version twice may race with itself unseen."""
    (steps, *_) = programs(program, meaning_of(program), 1)
    names = [step.name for step in steps if step.sources or step.targets]
    return len(names) == len(set(names))


def test_the_oracle_shares_nothing_with_what_it_judges() -> None:
    allowed = {f"rota.program.{name}" for name in ("loop_spec", "lowered", "entry", "kinds")}
    allowed |= {"rota.pipeline.op", "rota.pipeline.config"}
    folder = Path(__file__).parent
    for name in ("step", "wave", "plain", "by_values", "by_tiles", "by_stages", "oracle"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rota"):
                assert node.module in allowed, name
                assert "effect_of" not in {alias.name for alias in node.names}
