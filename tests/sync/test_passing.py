"""What may pass what in a synchronised loop: orders that keep it are proved, and what it keeps is needed."""

from collections.abc import Sequence
from functools import cache
from random import Random

from rota import GFX950, verify
from rota.kernels.gemm import BF16, GemmShape
from rota.program.kinds import OpKind
from rota.sync.needless import derive_must_follow
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from rota.values.polish import reorder

SHAPE = GemmShape(name="small", instruction=BF16, mma=(16, 32), rows=64, columns=64, waves=4)


@cache
def small() -> CompiledLoop:
    return compile_loop(SHAPE.loop(), GFX950, polish=False)


def drawn_order(behind: Sequence[frozenset[int]], random: Random) -> list[int]:
    left, order = set(range(len(behind))), list[int]()
    while left:
        order.append(random.choice(sorted(each for each in left if left.isdisjoint(behind[each]))))
        left.discard(order[-1])
    return order


def test_any_order_that_keeps_it_is_proved() -> None:
    behind = derive_must_follow(small().lowered)
    for seed in range(12):
        order = drawn_order(behind, Random(seed))
        assert order != sorted(order)
        assert verify(reorder(small(), order)).clean, seed


def test_an_op_that_overtakes_the_wait_for_its_operands_is_refused() -> None:
    kernel = small().lowered.kernel
    pairs = [
        (wait, number)
        for number, those in enumerate(derive_must_follow(small().lowered))
        if kernel[number].effect.kind is OpKind.MMA
        for wait in those
        if kernel[wait].effect.kind is OpKind.WAIT
    ]
    assert pairs
    for wait, number in pairs:
        order = [each for each in range(len(kernel)) if each != wait]
        order.insert(number, wait)  # just after, since one before it is gone
        assert order.index(wait) > order.index(number)
        codes = {finding.code for finding in verify(reorder(small(), order)).errors}
        assert codes & {"R103", "R104", "V106"}, (wait, number, codes)


def test_what_is_kept_points_back() -> None:
    for number, those in enumerate(derive_must_follow(small().lowered)):
        assert all(each < number for each in those)
