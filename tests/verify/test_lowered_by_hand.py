"""Programs lowered by hand: what can't be right can't be made, and every role is judged by its own waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rota import GFX950, RotaError, verify
from rota.execute.executor import execute
from rota.program.entry import ARRIVE, BARRIER, MEETS, WORKGROUP, Effect, Entry, Op, Place, Space, wait_effect, wait_op
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Barrier, LoweredProgram, Role, TileProduct, TileSum
from tests.programs.two_sums import ALL, ROLES, SHARED, SPEC, data, meet, right_kernel, two_sums, wait


def codes(program: LoweredProgram) -> set[str]:
    return {finding.code for finding in verify(program).errors}


def is_right(program: LoweredProgram) -> bool:
    return all(execute(program, trips).right for trips in range(4))


# Roles


def test_a_role_that_waits_for_its_own_read_needs_no_wait_of_another() -> None:
    """The first sum is computed while the other role's read is still in flight."""
    program = two_sums(right_kernel())
    assert codes(program) == set()
    assert is_right(program)


def test_a_wait_of_one_role_covers_nothing_of_another() -> None:
    kernel = right_kernel()
    program = two_sums([*kernel[:6], *kernel[7:]])
    report = verify(program)
    assert {finding.code for finding in report.errors} == {"R103", "R104"}
    (used,) = (finding for finding in report.errors if finding.code == "R104")
    assert [end.label for end in used.concerns] == ["read_a s0", "mma1 s0"]
    assert used.witness is not None
    assert (used.witness.ahead, used.witness.behind) == (1, 1)


def test_a_compiler_waits_in_the_role_that_it_compiles() -> None:
    """It waits before mma0 for the role that computes it; the other role passes the barrier with its read in flight."""
    kernel = [
        entry for entry in right_kernel() if entry.effect.counter != "lgkmcnt" or entry.op.kind is not OpKind.WAIT
    ]
    program = two_sums(kernel, compiler_tracks_registers=True)
    assert codes(program) == {"R103"}
    (race,) = verify(program).errors
    assert [end.label for end in race.concerns] == ["read_a s0", "load_A s0"]


def test_a_sum_that_two_roles_add_to_is_no_sum() -> None:
    ops = (*SPEC.ops[:3], replace(SPEC.ops[3], writes=("c0",)))
    spec = LoopSpec(name="one sum", waves=4, values=SPEC.values[:3], ops=ops)
    mma = data("mma1", (1,))
    added = replace(mma, effect=replace(mma.effect, writes=data("mma0").effect.writes))
    program = two_sums([*right_kernel()[:-1], added], semantics=spec)
    assert codes(program) == {"B104"}


# Places


def test_entries_are_known_by_their_place() -> None:
    """Slots that are all 0 hid a race of the second read after the first."""
    values = (*SPEC.values[:2], Value(name="b", home=Home.REGISTERS, size=8))
    read = LoopOp(name="read_b", kind=OpKind.LDS_READ, reads=(Read(value="A"),), writes=("b",), moved=4096)
    spec = LoopSpec(name="two reads", waves=4, values=values, ops=(*SPEC.ops[:2], read))
    first = data("read_a", (0,))
    made = tuple((Place(Space.REGISTER, "b"), version._replace(name="b")) for _, version in first.effect.makes)
    effect = replace(
        first.effect, writes=(made[0][0],), makes=made, instance=first.effect.instance._replace(name="read_b")
    )
    second = replace(first, op=replace(first.op, name="read_b"), effect=effect, roles=(1,))
    kernel = [wait("lgkmcnt", 0, (1,)), meet(), data("load_A"), wait("vmcnt", 0), meet(), first, second]
    roles = (Role("one", 2, frozenset({"load_A", "read_a"})), Role("other", 2, frozenset({"load_A", "read_b"})))
    program = two_sums(kernel, semantics=spec, roles=roles)
    assert [entry.time_slot for entry in program.kernel] == list(range(7))
    report = verify(program)
    assert {finding.code for finding in report.errors} == {"R103"}
    assert {finding.concerns[0].label for finding in report.errors} == {"read_a s0"}


# Values that can't be right


def with_entry(place: int, **changes: Any) -> Callable[[], LoweredProgram]:
    def make() -> LoweredProgram:
        kernel = right_kernel()
        kernel[place] = replace(kernel[place], **changes)
        return two_sums(kernel)

    return make


def with_effect(place: int, **changes: Any) -> Callable[[], LoweredProgram]:
    return with_entry(place, effect=replace(right_kernel()[place].effect, **changes))


def whole(**changes: Any) -> Callable[[], LoweredProgram]:
    return lambda: two_sums(right_kernel(), **changes)


def meeting(*barriers: Barrier) -> Callable[[], LoweredProgram]:
    return whole(barriers=barriers)


IMPOSSIBLE: dict[str, tuple[str, Callable[[], LoweredProgram]]] = {
    "a role before the first": ("D102", with_entry(4, roles=(-1,))),
    "a role that isn't there": ("D102", with_entry(4, roles=(7,))),
    "data of a role that isn't there": ("D102", with_entry(0, roles=(0, 2))),
    "a role twice": ("D102", with_entry(4, roles=(0, 0))),
    "roles out of order": ("D102", with_entry(0, roles=(1, 0))),
    "roles in a list": ("D102", with_entry(0, roles=[0, 1])),
    "a role that is no number": ("D102", with_entry(0, roles=(True,))),
    "executed by nobody": ("D102", with_entry(8, roles=())),
    "no roles": ("D102", whole(roles=())),
    "roles of one name": ("D102", whole(roles=(ROLES[0], ROLES[0]))),
    "what is no role": ("D102", whole(roles=("one", "other"))),
    "a role without waves": ("D102", whole(roles=(ROLES[0]._replace(waves=0), ROLES[1]))),
    "ops in a set": ("D102", whole(roles=(Role("one", 2, {"load_A"}), ROLES[1]))),  # type: ignore[arg-type]
    "an op that is nobody's": ("D102", whole(roles=(ROLES[0], ROLES[1]._replace(does=SHARED)))),
    "an op that isn't declared": ("D102", whole(roles=(ROLES[0], ROLES[1]._replace(does=SHARED | {"mma1", "mma2"})))),
    "waves that don't add up": ("D102", whole(waves=8)),
    "no waves": ("D102", whole(waves=0)),
    "a counter that isn't there": ("D105", with_effect(4, counter="nocnt")),
    "a load on a counter that isn't there": ("D105", with_effect(0, counter="nocnt")),
    "a wait for no counter": ("D102", with_effect(4, counter=None)),
    "a wait for less than nothing": ("D102", with_effect(4, wait_value=-1)),
    "a wait for half an op": ("D102", with_effect(4, wait_value=0.5)),
    "fewer tokens than none": ("D102", with_effect(0, tokens=-3)),
    "a wait that writes": ("D102", with_effect(4, writes=(Place(Space.LDS, "A"),))),
    "a load that arrives": ("D102", with_effect(0, arrives=WORKGROUP)),
    "an effect that is none": ("D102", with_entry(0, effect=None)),
    "an effect of no kind": ("D102", with_effect(0, kind="DMA")),
    "a barrier that isn't declared": ("D105", with_effect(2, arrives="x", awaits="x")),
    "a barrier of nothing": ("D102", with_effect(2, arrives=None, awaits=None)),
    "a phase where the entry doesn't stand": ("D102", with_entry(0, phase=Phase.PROLOGUE)),
    "no barriers": ("D105", meeting()),
    "a barrier for a role that isn't there": ("D102", meeting(Barrier(WORKGROUP, (0, 1, 9), ALL))),
    "a barrier where nobody arrives": ("D102", meeting(Barrier(WORKGROUP, (), ALL))),
    "barriers of one name": ("D102", meeting(Barrier(WORKGROUP, ALL, ALL), Barrier(WORKGROUP, (), ()))),
    "what is no barrier": ("D102", whole(barriers=((WORKGROUP, ALL, ALL),))),
    "no tiles in a trip": ("D102", whole(tiles_per_trip=0)),
    "tiles outside that aren't there": ("D102", whole(tiles_outside=-1)),
    "no machine": ("D102", whole(machine=None)),
    "entries that are none": ("D104", lambda: replace(two_sums(right_kernel()), kernel=(1,))),  # type: ignore[arg-type]
    "entries in a list": ("D102", lambda: replace(two_sums(right_kernel()), kernel=[])),  # type: ignore[arg-type]
    "LDS below nothing": ("D102", whole(lds_bytes=-5)),
    "LDS that doesn't hold the tile": ("D102", whole(lds_bytes=4095)),
    "registers that don't hold the sums": ("D102", whole(registers=11)),
    "registers that aren't a number": ("D102", whole(registers=1.5)),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_program_that_can_not_be_right_can_not_be_made(name: str) -> None:
    code, make = IMPOSSIBLE[name]
    with pytest.raises(RotaError) as caught:
        make()
    (finding,) = caught.value.findings
    assert finding.code == code
    assert finding.evidence or code == "D105"


@pytest.mark.parametrize("changes", [{"lds_bytes": 4096}, {"lds_bytes": None}, {"registers": 12}, {"registers": None}])
def test_sizes_that_are_just_enough(changes: dict[str, int | None]) -> None:
    assert verify(two_sums(right_kernel(), **changes)).clean


def test_an_entry_that_is_refused_is_named() -> None:
    with pytest.raises(RotaError) as caught:
        with_entry(4, roles=(7,))()
    (finding,) = caught.value.findings
    (end,) = finding.concerns
    assert (end.label, end.role) == ("wait_lgkm(0)", "kernel[4]")
    assert dict(finding.evidence)["field"] == "roles"
    assert dict(finding.evidence)["got"] == "(7,) (tuple)"


# Entries whose name says something else


@pytest.mark.parametrize(
    ("op", "effect"),
    [
        (wait_op("vmcnt", 0), wait_effect("lgkmcnt", 0)),
        (wait_op("lgkmcnt", 1), wait_effect("lgkmcnt", 0)),
        (Op(kind=OpKind.WAIT, name="drain"), wait_effect("lgkmcnt", 0)),
        (ARRIVE, MEETS),
        (BARRIER, Effect(kind=OpKind.BARRIER, arrives=WORKGROUP)),
    ],
)
def test_a_name_that_says_something_else_is_reported(op: Op, effect: Effect) -> None:
    kernel = right_kernel()
    kernel.insert(4, Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL))
    assert "V110" in codes(two_sums(kernel))


def test_a_tile_on_another_counter_is_reported() -> None:
    """Who computes a sum over tiles states what its loads count on; the machine knows better."""
    a, b, c = Place(Space.REGISTER, "a"), Place(Space.REGISTER, "b"), Place(Space.ACCUMULATOR, "c")
    semantics = TileSum(products=(TileProduct(c, (a, b)),), grid=(1, 1))
    load = Effect(kind=OpKind.DMA, counter="lgkmcnt", tokens=1, writes=(Place(Space.LDS, "A"),), fetches=-1)
    entry = Entry(op=Op(kind=OpKind.DMA, name="load"), effect=load, time_slot=0, phase=Phase.KERNEL)
    program = LoweredProgram(
        name="tiles",
        machine=GFX950,
        semantics=semantics,
        prologue=(),
        kernel=(entry,),
        epilogue=(),
        tiles_per_trip=1,
        tiles_outside=0,
    )
    found = [finding for finding in verify(program).errors if finding.code == "V110"]
    assert [dict(finding.evidence) for finding in found] == [{"it counts on": "lgkmcnt", "declared": "vmcnt"}]
