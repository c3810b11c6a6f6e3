"""The body builder: takes one call per op in program order, gives the op list of one loop iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from rota.check import author_line, bad_field, is_int
from rota.errors import several
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import CHANNEL_A, KOffsetKind
from rota.printing import WrappedTuple
from rota.program.limits import MOST_OPS, check_count


class PipelineBody(Sequence[OpDesc]):
    """Collects logical ops (no costs yet); a sequence of them, which every function and hook takes as it is.

    Every call appends at once, so nothing is lost by forgetting a return value; calls can be chained.  `build()` gives
    the ops as a tuple, which later calls don't change.

    >>> body = PipelineBody().load(DoubleBufferTag.LOAD_A, k_offset=KOffsetKind.K0).frag(DoubleBufferTag.MMA_LOAD_A)
    >>> print(body)
    PipelineBody: 2 ops
         0  load_a s0 t0 k0
         1  mma_load_a s0 t0
    >>> annotate_ops(body, mi355x_target().cost_model)
    (<load_a s0 t0 k0>, <mma_load_a s0 t0>)
    """

    def __init__(self) -> None:
        self._ops: list[OpDesc] = []

    def load(
        self,
        tag: int,
        *,
        channel: int = CHANNEL_A,
        stage: int = 0,
        subtile: int = 0,
        k_offset: KOffsetKind = KOffsetKind.NONE,
    ) -> PipelineBody:
        """A global load into LDS tile (channel, stage, subtile)."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, k_offset=k_offset, channel=channel))

    def store(self, tag: int, *, channel: int = CHANNEL_A, stage: int = 0, subtile: int = 0) -> PipelineBody:
        """A store of staged registers into LDS."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, channel=channel))

    def barrier(self) -> PipelineBody:
        """A workgroup barrier."""
        return self._append(OpDesc.barrier())

    def frag(self, tag: int, *, channel: int = CHANNEL_A, stage: int = 0, subtile: int = 0) -> PipelineBody:
        """A fragment load from LDS tile (channel, stage, subtile) into registers."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, channel=channel))

    def compute(self, tag: int, *, row: int = 0, column: int = 0) -> PipelineBody:
        """A compute at grid position (row, column)."""
        return self._append(OpDesc.logical(tag, stage=row, subtile=column))

    def fan(self, count: int, declare: Callable[[PipelineBody, int], object]) -> PipelineBody:
        """`declare(body, i)` for i = 0 .. count - 1: one op, or a group of ops, per subtile."""
        for index in range(_count(self, "fan", count)):
            declare(self, index)
        return self

    def grid(self, tag: int, rows: int, columns: int) -> PipelineBody:
        """Computes at every (row, column), row by row."""
        for row in range(_count(self, "rows", rows)):
            for column in range(_count(self, "columns", columns)):
                self.compute(tag, row=row, column=column)
        return self

    def build(self) -> tuple[OpDesc, ...]:
        """The ops in the order they were declared."""
        return WrappedTuple(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    @overload
    def __getitem__(self, index: int) -> OpDesc: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OpDesc, ...]: ...
    def __getitem__(self, index: int | slice) -> OpDesc | tuple[OpDesc, ...]:
        found = self._ops[index]
        return WrappedTuple(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return f"<PipelineBody {several(len(self), 'op')}>"

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1].replace(" ", ": ", 1), *(f"  {n:4d}  {op}" for n, op in enumerate(self))])

    def _append(self, op: OpDesc) -> PipelineBody:
        if len(self._ops) == MOST_OPS:  # told where it happens: a loop that never ends would not come to build()
            check_count("the body", "ops or more", MOST_OPS + 1, MOST_OPS, author_line())
        self._ops.append(op)
        return self


def _count(owner: object, name: str, value: int) -> int:
    if not is_int(value) or value < 0:
        raise bad_field(owner, name, value, "an integer, at least 0")
    return value
