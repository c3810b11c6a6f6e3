"""Loops declared by values, on real numbers: right where the proof holds, wrong where it doesn't."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st

from rota import RotaError, verify
from rota.compiled.proved import repaired
from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.execute.executor import Execution, execute, replay
from rota.execute.semantics import Attention, Declared, Mixing, run_plainly
from rota.program.entry import Version
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Lowerable
from rota.values.loop import Loop
from tests.execute.declared_loops import (
    COPIES,
    GEMM_PLACEMENTS,
    POLICIES,
    attention,
    bare,
    gemm,
    gemm_placement,
    mended_gemm,
    mutants_of,
    placed,
)
from tests.execute.loops import FULL, SLOTS, Witnessed, with_syncs
from tests.execute.random_loops import placements, specs
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # runs for seconds

TRIPS = (0, 1, 2, 3, 5)


def first_wrong(loop: Lowerable, policy: Sequence[Policy] = POLICIES) -> str | None:
    for trips in TRIPS:
        done = execute(loop, trips, policy=policy)
        if not done.right:
            return f"{trips} trips: {done.first_wrong}"
    return None


# Right and wrong schedules


@pytest.mark.parametrize("name", GEMM_PLACEMENTS)
@pytest.mark.parametrize("remainder", [0, 1, 3])
def test_a_repaired_gemm_is_right_at_every_trip_count(name: str, remainder: int) -> None:
    for trips in range(9):
        done = execute(mended_gemm(name, remainder), trips, policy=POLICIES)
        assert done == Execution(right=True), done.first_wrong


@pytest.mark.parametrize("name", GEMM_PLACEMENTS)
@pytest.mark.parametrize("remainder", [0, 1, 3])
def test_without_synchronisation_it_is_wrong_and_every_witness_shows_it(name: str, remainder: int) -> None:
    made = bare(gemm(), gemm_placement(name), remainder)
    errors = verify(made).errors
    assert {finding.code for finding in errors} >= {"R102", "R101"}
    for finding in errors:
        assert finding.witness is not None
        done = replay(made, finding.witness)
        assert not done.right, finding
        assert done.first_wrong is not None
        assert "reads poison in A" in done.first_wrong


def test_without_compiler_waits_registers_need_waits_of_their_own() -> None:
    tracked = mended_gemm("two stages")
    assert not execute(tracked, 2, compiler_waits=False).right
    untracked = repaired(replace(bare(gemm(), gemm_placement("two stages")), compiler_tracks_registers=False))
    assert first_wrong(untracked) is None


@pytest.mark.parametrize(
    ("starts", "wrong"),
    [
        ((0, 10, 320, 330, 340), "read_a s0 of iteration 0 wants A of iteration 0 and finds A of iteration 2"),
        ((0, 10, 120, 130, 110), "mma_c s0 of iteration 0 reads poison in a of iteration 0"),
    ],
    ids=["overwritten before it is read", "used before it is read"],
)
def test_a_wrong_version_is_wrong_in_execution_too(starts: tuple[int, ...], wrong: str) -> None:
    made = bare(gemm(), placed(starts, **dict(COPIES)))
    assert "V106" in {finding.code for finding in verify(made).errors}
    done = execute(made, 3, policy=Earliest())
    assert done.first_wrong is not None
    assert wrong in done.first_wrong


def test_a_lost_and_a_doubled_mma_are_told_by_their_numbers() -> None:
    good = mended_gemm("two stages")
    (slot,) = (n for n, entry in enumerate(good.epilogue) if entry.op.name == "mma_c")
    short = replace(good, epilogue=good.epilogue[:slot] + good.epilogue[slot + 1 :])
    twice = replace(good, epilogue=(*good.epilogue[: slot + 1], *good.epilogue[slot:]))
    for made in (short, twice):
        assert {finding.code for finding in verify(made).errors} == {"V107"}
        done = execute(made, 1, policy=Latest())
        assert done.wrong_runs == ("latest",)
        assert done.first_wrong is not None
        assert done.first_wrong.startswith("latest: wave 0, c: it holds ")


def test_a_read_executed_twice_is_harmless_but_refused() -> None:
    """The proof wants every op exactly once; the numbers don't mind."""
    good = mended_gemm("two stages")
    (slot,) = (n for n, entry in enumerate(good.epilogue) if entry.op.name == "read_a")
    twice = replace(good, epilogue=(*good.epilogue[: slot + 1], *good.epilogue[slot:]))
    assert {finding.code for finding in verify(twice).errors} == {"V107"}
    assert first_wrong(twice) is None


# Proof and execution


def test_proof_and_execution_agree_on_mutants() -> None:
    """A third of a loop's mutants: none is wrong and called clean, none called wrong without showing it."""
    outcomes: Counter[bool] = Counter()
    for mutant in islice(mutants_of(mended_gemm("four stages", 3)), 0, None, 3):
        errors = verify(mutant.schedule).errors
        races = [finding for finding in errors if finding.code.startswith("R")]
        for race in races:
            assert race.witness is not None
            assert not replay(mutant.schedule, race.witness).right, (mutant.description, race)
        if not races:
            shown = first_wrong(mutant.schedule, (Latest(), Earliest(), Random(seeds=30)))
            assert bool(shown) is bool(errors), (mutant.description, shown, errors)
        outcomes[bool(errors)] += 1
    assert outcomes.total() > 70
    assert min(outcomes.values()) > 8


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_random_loop_that_can_be_repaired_is_right(data: st.DataObject) -> None:
    spec = data.draw(specs(farthest=2))
    made = bare(spec, data.draw(placements(spec)), data.draw(st.integers(0, 2)), stagger=data.draw(st.booleans()))
    try:
        compiled = repaired(made)
    except RotaError as error:
        event(f"refused with {error.findings[0].code}")
        return
    event("repaired" if compiled.repairs else "clean as written")
    for trips in (0, 1, 3):
        done = execute(compiled, trips, policy=(Latest(), Earliest(), Random(seeds=8)))
        assert done.right, (trips, done.first_wrong)


def test_the_proof_sees_a_version_of_two_iterations_before_that_is_gone() -> None:
    """One copy of r holds the version before; two iterations back it is gone, which shows in the third trip."""
    spec = small(LOAD, READ, replace(SUM, reads=(Read(value="r", distance=2),)))
    made = bare(spec, placed((0, 1, 0), interval=4))
    done = execute(made, 3, policy=Earliest())
    assert done.first_wrong is not None
    assert "wants r of iteration -1 and finds r of iteration 0" in done.first_wrong
    assert "V106" in {finding.code for finding in verify(made).errors}


# Values: carried, stored, by one role only


def scan(distance: int = 1) -> LoopSpec:
    loop = Loop("scan", waves=4)
    tile = loop.tile("A", size=1024)
    loop.load(tile, moved=1024)
    a = loop.fragment("a", tile, registers=4)
    loop.valu("best", [a, Read(value="best", distance=distance)], registers=1, instructions=4)
    return loop.build()


@pytest.mark.parametrize("distance", [1, 2])
def test_a_carried_value_starts_at_its_initial_value_and_is_compared_at_the_end(distance: int) -> None:
    spec = scan(distance)
    compiled = repaired(bare(spec, placed((0, 60, 90), interval=50, A=2, best=distance)))
    assert first_wrong(compiled) is None
    other = replace(compiled.lowered, semantics=scan(3 - distance))
    assert first_wrong(other) is not None  # not the same recurrence


def test_a_carried_value_that_is_never_made_is_wrong() -> None:
    spec = scan()
    compiled = repaired(bare(spec, placed((0, 60, 90), interval=50, A=2), 1))
    epilogue = tuple(entry for entry in compiled.epilogue if entry.op.name != "make_best")
    done = execute(replace(compiled, epilogue=epilogue), 0, policy=Latest())
    assert done.first_wrong == "latest: wave 0, best: it holds nan at 0; " + str(done.first_wrong).split("; ")[1]


def through_lds() -> LoopSpec:
    """Registers are stored into a tile that all waves read; the next iteration reads it once more."""
    values = {"T": Home.LDS, "r": Home.REGISTERS, "P": Home.LDS, "p": Home.REGISTERS, "c": Home.ACCUMULATOR}
    return LoopSpec(
        name="through_lds",
        waves=4,
        values=tuple(Value(name=name, home=home, size=1) for name, home in values.items()),
        ops=(
            LoopOp(name="load", kind=OpKind.DMA, writes=("T",)),
            LoopOp(name="read", kind=OpKind.LDS_READ, reads=(Read(value="T"),), writes=("r",)),
            LoopOp(name="store", kind=OpKind.LDS_WRITE, reads=(Read(value="r"),), writes=("P",)),
            LoopOp(
                name="again", kind=OpKind.LDS_READ, reads=(Read(value="P"), Read(value="P", distance=1)), writes=("p",)
            ),
            LoopOp(name="mma", kind=OpKind.MMA, reads=(Read(value="p"), Read(value="r")), writes=("c",)),
        ),
    )


@pytest.mark.parametrize("stagger", [False, True])
def test_values_stored_to_lds_are_read_by_all_waves(stagger: bool) -> None:
    spec = through_lds()
    made = bare(spec, placed((0, 60, 70, 80, 90), interval=50, T=2, P=2), 1, stagger=stagger)
    compiled = repaired(made)
    assert first_wrong(compiled) is None
    for finding in verify(made).errors:
        assert finding.witness is not None
        assert not replay(made, finding.witness).right, finding


def test_a_store_into_a_tile_that_loads_fill_is_wrong() -> None:
    spec = through_lds()
    compiled = repaired(bare(spec, placed((0, 60, 70, 80, 90), interval=50, T=2, P=2), 1))
    effects = {e.op.name: e.effect for e in compiled.kernel}
    astray = replace(effects["store"], writes=effects["load"].writes)
    kernel = tuple(replace(e, effect=astray) if e.op.name == "store" else e for e in compiled.kernel)
    assert not execute(replace(compiled, kernel=kernel), 3).right


def test_every_wave_stores_a_slice_of_its_own() -> None:
    plain = run_plainly(through_lds(), Mixing(), 2, 4)
    slices = plain.made[Version("P", 1)][0, 0, 0]
    assert len({tuple(each) for each in slices}) == 4


def test_an_entry_of_one_role_only_leaves_the_other_without() -> None:
    spec = gemm()
    compiled = repaired(bare(spec, gemm_placement("two stages"), stagger=True))
    assert first_wrong(compiled) is None
    for label, text in {"load_A": "reads poison in A", "read_a": "reads poison in a", "mma_c": "it holds"}.items():
        epilogue = tuple(replace(e, roles=(1,)) if e.op.name == label else e for e in compiled.epilogue)
        prologue = tuple(replace(e, roles=(1,)) if e.op.name == label else e for e in compiled.prologue)
        done = execute(replace(compiled, prologue=prologue, epilogue=epilogue), 0, policy=Latest())
        assert done.first_wrong is not None
        assert text in done.first_wrong
        assert done.first_wrong.startswith("latest: wave 0, c: ")


def test_a_place_of_another_value_holds_nothing_that_fits() -> None:
    """Registers of another shape are poison, not a crash."""
    spec = attention()
    made = bare(spec, placed((0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90), m=2))
    good = repaired(made)
    places = {e.op.name: e.effect for e in good.kernel if e.effect.instance.name}
    for label, other in (("make_p", "read_k"), ("load_K0", "load_V0"), ("make_m", "mma_o")):
        wrong = replace(places[label], writes=places[other].writes)
        kernel = tuple(replace(e, effect=wrong) if e.op.name == label else e for e in good.kernel)
        done = execute(replace(good, kernel=kernel), 2, policy=Latest(), semantics=Attention())
        assert not done.right


# What ops compute by default


def test_mixed_numbers_tell_operands_versions_and_parts_apart() -> None:
    mixing = Mixing()
    mma = LoopOp(name="mma", kind=OpKind.MMA, reads=(Read(value="x"), Read(value="y")), writes=("z",))
    x, y = (mixing.load(name, 0, 0, 4)[np.newaxis] for name in "xy")
    (product,) = mixing.results(mma, (x, y))
    (swapped,) = mixing.results(mma, (y, x))
    (twice,) = mixing.results(mma, (x, 2 * y))
    assert not (product == swapped).any()
    assert np.array_equal(twice, 2 * product % (2**20 - 3))
    (other,) = mixing.results(replace(mma, name="another"), (x, y))
    assert not (product == other).any()
    loaded = [mixing.load("x", part, k, 4) for part in range(2) for k in range(2)]
    assert len({each.tobytes() for each in loaded}) == 4
    assert not np.array_equal(mixing.initial("x", -1), mixing.initial("x", -2))
    empty = LoopOp(name="constant", kind=OpKind.VALU, writes=("u", "v"))
    first, second = mixing.results(empty, ())
    assert first.shape == second.shape == (1, 1, 3)
    assert not (first == second).any()


# Bad input


class TwoResults(Mixing):
    __slots__ = ()

    def results(self, op: LoopOp, operands: tuple[Any, ...]) -> Sequence[Any]:
        return [*Mixing.results(self, op, operands), np.zeros(3)]


def small(*ops: LoopOp) -> LoopSpec:
    homes = {"T": Home.LDS, "r": Home.REGISTERS, "c": Home.ACCUMULATOR}
    used = {name for op in ops for name in op.writes}
    values = tuple(Value(name=name, home=home, size=1) for name, home in homes.items() if name in used)
    return LoopSpec(name="small", waves=4, values=values, ops=ops)


LOAD = LoopOp(name="load", kind=OpKind.DMA, writes=("T",))
READ = LoopOp(name="read", kind=OpKind.LDS_READ, reads=(Read(value="T"),), writes=("r",))
SUM = LoopOp(name="sum", kind=OpKind.MMA, reads=(Read(value="r"),), writes=("c",))


def run_small(*ops: LoopOp) -> Execution:
    spec = small(*ops)
    return execute(bare(spec, placed(tuple(range(len(ops))), interval=10)), 1)


TILES = with_syncs([FULL] * SLOTS).lowered
BAD: dict[str, tuple[str, Any]] = {
    "no semantics": ("D104", lambda: execute(mended_gemm("one stage"), 1, semantics=5)),  # type: ignore[arg-type]
    "semantics for a sum of tiles": ("D104", lambda: execute(TILES, 1, semantics=Mixing())),
    "semantics to replay a sum of tiles": ("D104", lambda: replay(TILES, Witnessed(trip_count=1), semantics=Mixing())),
    "tiles of its own": ("D105", lambda: execute(replace(TILES, semantics=gemm()), 1)),
    "another loop's declaration": (
        "D105",
        lambda: execute(replace(mended_gemm("one stage").lowered, semantics=scan()), 1),
    ),
    "too many results": ("D104", lambda: execute(mended_gemm("one stage"), 1, semantics=TwoResults())),
    "a load that reads": ("D111", lambda: run_small(LOAD, READ, replace(LOAD, name="more", reads=(Read(value="T"),)))),
    "an MMA of a tile": ("D111", lambda: run_small(LOAD, replace(SUM, reads=(Read(value="T"),)))),
    "an MMA of a sum": (
        "D111",
        lambda: run_small(replace(SUM, reads=()), replace(SUM, name="b", reads=(Read(value="c"),))),
    ),
    "an MMA into a tile": ("D111", lambda: run_small(replace(SUM, reads=(), writes=("T",)))),
    "a fragment into a sum": ("D111", lambda: run_small(LOAD, replace(READ, writes=("c",)))),
    "used in front of its maker": ("D102", lambda: run_small(LOAD, SUM, READ)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_a_finding(name: str) -> None:
    code, call = BAD[name]
    with pytest.raises(RotaError) as caught:
        call()
    assert caught.value.findings[0].code == code


def test_a_place_too_few_is_not_the_declared_loop() -> None:
    made = bare(gemm(), gemm_placement("one stage"))
    kernel = tuple(replace(e, effect=replace(e.effect, reads=())) for e in made.kernel)
    with pytest.raises(RotaError) as caught:
        Declared(spec=gemm(), semantics=Mixing(), program=replace(made, kernel=kernel).lowered)
    (finding,) = caught.value.findings
    assert finding.code == "D104"
    assert [name for name, _ in worded(finding).evidence] == ["the declaration has"]


def test_a_loop_without_results_is_right() -> None:
    assert run_small(LOAD, READ).right


def test_importing_the_semantics_does_not_load_numpy() -> None:
    probe = "import sys, rota.execute.executor, rota.execute.semantics; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", probe], check=True)
