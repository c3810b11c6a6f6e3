from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rota import (
    DoubleBufferTag,
    KOffsetKind,
    LoopBody,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    ScheduleConfig,
    WarpStaggerRule,
    annotate_ops,
    build_kernel_program,
    compile_schedule,
    derive_cross_stage_rotation_edges,
    derive_edges_from_ops,
    double_buffer_reorder,
    filter_spurious_cross_stage_flow,
    mi355x_target,
    mma_block_interleave_list,
    optimize_within_barriers,
    single_buffer_reorder,
)


def test_ops_stand_in_the_order_of_the_calls() -> None:
    body = PipelineBody()
    body.load(0, channel=1, stage=1, subtile=2, k_offset=KOffsetKind.K1).store(1).barrier()
    body.fan(2, lambda b, tile: b.frag(2, subtile=tile))
    body.grid(3, 2, 2)
    assert len(body) == 9
    assert [str(op) for op in body.build()] == [
        "tag 0 s1 t2 k1",
        "tag 1 s0 t0",
        "barrier",
        "tag 2 s0 t0",
        "tag 2 s0 t1",
        *(f"tag 3 s{row} t{column}" for row in range(2) for column in range(2)),
    ]


def test_the_authors_line_is_the_call_not_the_builder() -> None:
    (op,) = PipelineBody().load(0).build()
    assert op.source is not None
    assert op.source.file == __file__


# Whatever takes ops takes the builder, too.

TARGET = mi355x_target(max_globals=0).with_pipeline(warp_stagger=WarpStaggerRule.none())


class Annotated(PipelineBody):
    """A builder that declares costs at once, as an author may who has no cost model."""

    def _append(self, op: OpDesc) -> PipelineBody:
        return super()._append(op if op.is_framework else annotate_ops([op], TARGET.cost_model)[0])


def _body() -> PipelineBody:
    body, tags = Annotated(), DoubleBufferTag
    for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
        for tile in range(2):
            body.frag(tags.MMA_LOAD_A, channel=0, stage=stage, subtile=tile)
            body.frag(tags.MMA_LOAD_B, channel=1, stage=stage, subtile=tile)
            body.load(tags.LOAD_A, channel=0, stage=stage, subtile=tile, k_offset=k)
            body.load(tags.LOAD_B, channel=1, stage=stage, subtile=tile, k_offset=k)
        body.grid(tags.MMA, 2, 2)
    return body


class FromBuilders(PipelineSchedule):
    """Every hook that gives ops gives builders."""

    def __init__(self, bootstrap: PipelineBody | None = None) -> None:
        self.bootstrap = bootstrap

    def config(self) -> PipelineConfig:
        return TARGET.pipeline

    def schedule_config(self) -> ScheduleConfig:
        return ScheduleConfig(partial_prologue_drain=self.bootstrap is not None)

    def build_body(self) -> PipelineBody:
        return _body()

    def bootstrap_frags(self) -> Sequence[OpDesc]:
        return () if self.bootstrap is None else self.bootstrap

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> list[PipelineBody]:
        return [PipelineBody() for _ in program.blocks]


TAKERS: dict[str, Callable[[Sequence[OpDesc]], object]] = {
    "annotate_ops": lambda body: annotate_ops(body, TARGET.cost_model),
    "derive_edges_from_ops": lambda body: derive_edges_from_ops(body, TARGET.pipeline),
    "build_kernel_program": lambda body: build_kernel_program(body, TARGET.pipeline),
    "derive_edges": lambda body: FromBuilders().derive_edges(body),
    "double_buffer_reorder": lambda body: double_buffer_reorder(body, TARGET.pipeline),
    "single_buffer_reorder": lambda body: single_buffer_reorder(body, TARGET.pipeline),
    "mma_block_interleave_list": lambda body: mma_block_interleave_list(body, TARGET.pipeline),
    "optimize_within_barriers": lambda body: optimize_within_barriers(body, ()),
    "derive_cross_stage_rotation_edges": lambda body: derive_cross_stage_rotation_edges(body, TARGET.pipeline),
    "filter_spurious_cross_stage_flow": lambda body: filter_spurious_cross_stage_flow((), body, TARGET.pipeline),
    "LoopBody": lambda body: LoopBody(body, ()),
}


@pytest.mark.parametrize("name", TAKERS)
def test_a_builder_stands_for_its_ops(name: str) -> None:
    body = _body()
    assert TAKERS[name](body) == TAKERS[name](body.build())


def test_every_hook_may_give_a_builder() -> None:
    compiled = compile_schedule(FromBuilders())
    assert compiled.body == _body().build()
    assert compiled.certificate is not None
    fragments = Annotated().frag(DoubleBufferTag.MMA_LOAD_A, channel=0).frag(DoubleBufferTag.MMA_LOAD_B, channel=1)
    carried = compile_schedule(FromBuilders(fragments), sync="as_written")
    assert [entry.op for entry in carried.prologue][-1] == fragments[1]


def test_a_builder_is_a_sequence() -> None:
    body = PipelineBody().grid(DoubleBufferTag.MMA, 2, 2)
    assert list(body) == list(body.build()) == [body[index] for index in range(4)]
    assert body[1:3] == body.build()[1:3]
    assert body[0] in body
    before = body.build()
    body.barrier()
    assert (len(before), len(body)) == (4, 5)  # what was built stays as it was
