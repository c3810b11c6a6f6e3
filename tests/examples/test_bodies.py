"""The bodies of docs/pipeline/bodies.md: each proved, executed, predicted and run as machine code; and each damaged."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rota import (
    CompiledPipeline,
    KOffsetKind,
    OpDesc,
    OpRole,
    Phase,
    PipelineConfig,
    PipelineSchedule,
    RotaError,
    ScheduleConfig,
    Severity,
    compile_schedule,
    verify,
)
from rota.audit.audit import audit_gemm
from rota.audit.gemm_launch import load_emitted
from rota.cycles.predict import predict
from rota.emit.document.exchange import from_json, to_json
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.whole.whole_options import WholeGemm
from rota.execute.executor import execute
from rota.isa.binary.toolchain import find_toolchain, find_toolchains
from rota.pipeline.geometry import TileShape
from tests.campaigns.whole.whole_problems import Problem
from tests.campaigns.whole.whole_run import run_problem
from tests.examples.machine_code import build_whole
from tests.findings.smallest import raised

pytestmark = pytest.mark.no_cover  # what examples run counts as covered where it is tested by itself

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("depth_three", "convolution", "grouped_matmul", "mx_matmul", "split_k")
needs_compiler = pytest.mark.skipif(not any(find_toolchains()), reason="no compiler for AMD GPUs")

Change = Callable[[OpDesc], tuple[OpDesc, ...]]


@cache
def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@cache
def compiled(name: str) -> CompiledPipeline:
    made: CompiledPipeline = load(name)["compiled"]()
    return made


def damaged(
    schedule: type[PipelineSchedule], change: Change, config: Callable[[PipelineConfig], PipelineConfig] = lambda c: c
) -> PipelineSchedule:
    """The schedule with each op of its body, and its config, changed."""

    class Damaged(schedule):  # type: ignore[misc, valid-type]  # whichever it is
        def config(self) -> PipelineConfig:
            return config(super().config())

        def build_body(self) -> tuple[OpDesc, ...]:
            return tuple(new for op in super().build_body() for new in change(op))

    return Damaged()


def codes(schedule: PipelineSchedule) -> set[str]:
    """What the compiler refuses it with, though it may repair."""
    with pytest.raises(RotaError) as refused:
        compile_schedule(schedule)
    return {finding.code for finding in refused.value.findings}


def errors(made: CompiledPipeline) -> set[str]:
    return {finding.code for finding in verify(made).findings if finding.severity is Severity.ERROR}


@pytest.mark.parametrize("name", NAMES)
def test_a_body_is_proved_executed_and_predicted(name: str) -> None:
    made, example = compiled(name), load(name)
    assert verify(made).clean
    assert made.certificate is not None
    assert all(execute(made, trips).right for trips in range(5))
    shape = TileShape(geometry=example["GEOMETRY"], waves=example["WAVES"], instruction=example["INSTRUCTION"])
    prediction = predict(made, shape, band=False)
    assert prediction.cycles >= prediction.least_cycles > 0
    assert from_json(to_json(made)) == made


def test_three_stages_hide_what_two_wait_for() -> None:
    example = load("depth_three")
    shape = TileShape(geometry=example["GEOMETRY"], waves=example["WAVES"], instruction=example["INSTRUCTION"])
    two, three = (predict(example["compiled"](depth), shape, band=False).cycles for depth in (2, 3))
    assert three < 0.6 * two
    assert {entry.op.stage for entry in compiled("depth_three").prologue if entry.op.role is OpRole.GLOBAL_LOAD} == {
        0,
        1,
        2,
    }


def test_three_stages_with_a_k_offset_of_two_are_refused() -> None:
    def early(op: OpDesc) -> tuple[OpDesc, ...]:
        return (op.but(k_offset=KOffsetKind.K1) if op.k_offset is KOffsetKind.K_NEXT else op,)

    assert codes(damaged(load("depth_three")["DepthThree"], early)) == {"V102", "V103"}


def test_three_stages_in_two_partitions_are_refused() -> None:
    made = compiled("depth_three").config
    assert raised("D106", lambda: made.but(num_partitions=2)).fixes == ("num_partitions=3",)


def test_three_stages_with_one_more_load_in_flight_are_refused() -> None:
    class Loose(load("depth_three")["DepthThree"]):  # type: ignore[misc]  # a class of the example
        def schedule_config(self) -> ScheduleConfig:
            knobs: ScheduleConfig = super().schedule_config()
            return knobs.but(auto_waits=False, wait_lgkm_first=0, wait_vm_last=9)

    made = compile_schedule(Loose())
    assert {repair.count_before for repair in made.repairs if repair.before is not None} == {9}
    with pytest.raises(RotaError) as refused:
        compile_schedule(Loose(), sync="strict")
    assert "R102" in {finding.code for finding in refused.value.findings}


def test_a_gather_counts_its_own_instructions() -> None:
    """With the waits of wide loads, a wave would read pixels that have not landed."""
    example, made = load("convolution"), compiled("convolution")
    narrow, wide = example["GATHERS"], example["WIDE_LOADS"][0]
    pending = [entry.op.wait_value for entry in made.kernel if str(entry.op).startswith("wait_vm")]
    assert pending == [2 * narrow + 2 * example["WIDE_LOADS"][1]] * 2
    short = compile_schedule(example["Convolution"](gathers=wide))
    assert verify(short).clean

    def gathers(count: int, loop: CompiledPipeline) -> CompiledPipeline:
        """Its loads as so many instructions, its waits as they were."""
        prologue, kernel, epilogue = (
            tuple(
                replace(entry, op=entry.op.but(vm_cost=count)) if entry.op.name == "gather_pixels" else entry
                for entry in loop.phase(phase)
            )
            for phase in Phase
        )
        return replace(loop, prologue=prologue, kernel=kernel, epilogue=epilogue)

    assert errors(gathers(narrow, short)) == set()  # a wait for fewer instructions waits longer
    assert errors(gathers(wide, made)) == {"R101", "R102"}


def test_a_gather_follows_its_addresses_in_every_order() -> None:
    made = compiled("convolution")
    address = {index for index, op in enumerate(made.body) if op.name == "address"}
    assert {made.body[edge.consumer_idx].name for edge in made.edges if edge.producer_idx in address} == {
        "gather_pixels"
    }

    class Backwards(load("convolution")["Convolution"]):  # type: ignore[misc]  # a class of the example
        def schedule_config(self) -> ScheduleConfig:
            return ScheduleConfig(scheduling="GREEDY")

        def build_body(self) -> tuple[OpDesc, ...]:
            ops = list(super().build_body())
            for index in sorted(address):  # each address op after the compute that follows its load
                ops[index : index + 3] = [*ops[index + 1 : index + 3], ops[index]]
            return tuple(ops)

    assert _places(compile_schedule(Backwards(), sync="as_written")) == _places(made)


def _places(made: CompiledPipeline) -> list[str]:
    """Address ops and gathers in the order of issue."""
    return [str(entry.op) for entry in made.kernel if entry.op.name in ("address", "gather_pixels")]


def test_a_convolution_is_no_gemm_for_emission() -> None:
    finding = raised("T203", lambda: emit_gemm(compiled("convolution"), load("convolution")["GEOMETRY"]))
    assert finding.concerns[0].label.startswith("address")


def test_the_next_group_rests_on_the_last_barrier() -> None:
    """Each is an error of the other's: a single group needs no barrier at its end."""
    without = load("grouped_matmul")["without_last_barrier"]
    assert errors(without(reentrant=False)) == set()
    assert errors(without(reentrant=True)) == {"R103"}


def test_a_reduction_may_take_the_lds_of_a_rotation_only_after_a_drain() -> None:
    """The epilogue's last rotating fragment feeds no compute, so nothing waits for it but the drain."""
    example, made = load("split_k"), compiled("split_k")
    alone: CompiledPipeline = example["compiled"](drained=False)
    added = [repair for repair in made.repairs if str(repair) not in set(map(str, alone.repairs))]
    assert [(repair.phase.value.lower(), str(repair.op)) for repair in added] == [("epilogue", "wait_lgkm(0)")]
    drain = added[0].slot
    assert (str(made.epilogue[drain].op), str(made.epilogue[drain + 1].op)) == ("wait_lgkm(0)", "barrier")
    cut = replace(made, epilogue=(*made.epilogue[:drain], *made.epilogue[drain + 1 :]))
    assert errors(cut) == {"R103"}
    assert errors(replace(cut, reentrant=False)) == set()


def test_the_rotation_as_written_is_wrong_already_without_a_trip() -> None:
    written = compile_schedule(load("split_k")["SplitK"](), sync="as_written")
    assert errors(written) == {"R102", "R103"}
    assert not execute(written, 0).right
    assert not execute(written, 1).right


SCALES: dict[str, tuple[Change, set[str]]] = {
    "a fragment of the other operand's scales": (
        lambda op: (op.but(channel=3) if (op.name, op.stage, op.subtile) == ("read_scales_a", 1, 1) else op,),
        {"V101", "V103"},
    ),
    "no load of a stage's scales": (
        lambda op: () if (op.name, op.stage) == ("load_scales_b", 1) else (op,),
        {"V103", "V104"},
    ),
    "no fragments of scales": (lambda op: () if op.name == "read_scales_a" else (op,), {"V103", "V104"}),
    "scales of another stage": (
        lambda op: (op.but(stage=0) if op.name == "read_scales_b" else op,),
        {"P103", "V101", "V103"},
    ),
    "scales of another K-tile": (
        lambda op: (op.but(k_offset=KOffsetKind.K0) if op.name == "load_scales_b" else op,),
        {"V101", "V103"},
    ),
}


@pytest.mark.parametrize("name", SCALES)
def test_wrong_scales_are_refused_by_the_proof_and_seen_by_the_executor(name: str) -> None:
    change, due = SCALES[name]
    schedule = damaged(load("mx_matmul")["MxMatmul"], change)
    assert codes(schedule) == due
    assert not execute(compile_schedule(schedule, sync="as_written"), 2).right


def _each(**changes: Any) -> Callable[[PipelineConfig], PipelineConfig]:  # fields of a channel
    return lambda config: config.but(further_channels=tuple(replace(c, **changes) for c in config.further_channels))


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (lambda config: config.but(further_channels=config.further_channels[:1]), "D107"),
        (_each(vm_per_load=0), "D110"),
        (_each(whole_tile=False), "V104"),  # a load brings the scales of one row of the grid, and the other has none
    ],
)
def test_what_is_declared_of_a_channel_must_hold(config: Callable[[PipelineConfig], PipelineConfig], code: str) -> None:
    assert code in codes(damaged(load("mx_matmul")["MxMatmul"], lambda op: (op,), config))


def test_scales_of_the_wrong_rows_are_no_product() -> None:
    """A schedule may multiply rows by what it likes; as a GEMM it is refused."""
    example = load("mx_matmul")

    def exchanged(config: PipelineConfig) -> PipelineConfig:
        a, b = config.further_channels
        return config.but(further_channels=(replace(a, match_field=1), replace(b, match_field=0)))

    made = compile_schedule(damaged(example["MxMatmul"], lambda op: (op,), exchanged))
    assert "A_scale" in raised("T206", lambda: build_whole(made, example["GEOMETRY"], WholeGemm())).message


@needs_compiler
@pytest.mark.parametrize("name", ["depth_three", "grouped_matmul", "split_k"])
def test_machine_code_is_the_schedule_and_right_for_every_trip_count(name: str) -> None:
    made, geometry = compiled(name), load(name)["GEOMETRY"]
    code = find_toolchain().compile(emit_gemm(made, geometry), made.machine.arch)
    audit = audit_gemm(made, geometry, code)
    assert (audit.exact, audit.facts.spills) == (True, 0), audit
    program = load_emitted(made, geometry, code)
    for trips in (0, 1, 2, 5):
        result = program.run_trips(trips, seeds=3)
        assert result.right == result.runs, "\n\n".join(map(str, result.findings))


@needs_compiler
def test_groups_after_one_another_are_right_in_machine_code() -> None:
    """A workgroup takes two tiles, one after the other, in a persistent kernel."""
    geometry = load("grouped_matmul")["GEOMETRY"]
    made = build_whole(compiled("grouped_matmul"), geometry, WholeGemm(persistent=True))
    for tiles in (2, 4, 7):
        problem = Problem(m=4 * geometry.BM, n=geometry.BN, k=tiles * geometry.BK, orders=5, seed=tiles)
        assert run_problem(made, problem) == []


@needs_compiler
def test_splits_of_k_are_right_in_machine_code() -> None:
    """Each workgroup sums a share of K in no trips, in one, or in more; a second kernel adds them."""
    geometry = load("split_k")["GEOMETRY"]
    made = build_whole(compiled("split_k"), geometry, WholeGemm())
    for tiles, splits in ((4, 2), (8, 2), (8, 4), (14, 2)):
        problem = Problem(m=geometry.BM, n=geometry.BN, k=tiles * geometry.BK, splits=splits, orders=5, seed=tiles)
        assert run_problem(made, problem) == []


@needs_compiler
def test_scaled_products_are_right_in_machine_code() -> None:
    made, geometry = compiled("mx_matmul"), load("mx_matmul")["GEOMETRY"]
    built = build_whole(made, geometry, WholeGemm())
    audit = audit_gemm(made, geometry, built.code, kernel=built.name)
    assert (audit.exact, audit.facts.spills) == (True, 0), audit
    assert load("mx_matmul")["INSTRUCTION"] in {each.opcode for each in built.code.instructions(built.name)}
    for tiles in (2, 4, 6, 11):
        problem = Problem(m=geometry.BM, n=geometry.BN, k=tiles * geometry.BK, orders=3, seed=tiles)
        assert run_problem(built, problem) == []
