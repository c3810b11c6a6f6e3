"""Memory ops in flight of paths that meet: what only some of them issued may be in flight, and no wait counts on it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from rota.prove import state
from rota.prove.state import InFlight, covers_queue, join_queues, retire
from tests.prove.written import codes, judged

Kinds = tuple[int, ...]


def _draw(random: Random) -> Kinds:
    return tuple(random.randrange(4) for _ in range(random.randrange(6)))


def _queue(kinds: Kinds) -> tuple[InFlight, ...]:
    return tuple(InFlight(kind, 1 << kind, None, 0) for kind in kinds)


def _loses(general: tuple[InFlight, ...], kinds: Kinds, future: Sequence[tuple[str, int]]) -> bool:
    """Whether an op is in flight at some time of the future, and not in the general queue."""
    for what, number in future:
        if what == "issue":
            kinds, general = (*kinds, number), (*general, *_queue((number,)))
        else:
            kinds = kinds[max(len(kinds) - number, 0) :]
            general = retire(general, number)[1]
        if not set(kinds) <= {each.number for each in general}:
            return True
    return False


def _futures(random: Random) -> list[list[tuple[str, int]]]:
    return [
        [(random.choice(("issue", "wait")), random.randrange(4)) for _ in range(random.randrange(1, 6))]
        for _ in range(20)
    ]


def _count_losses(seed: int) -> int:
    random, losses = Random(seed), 0
    for _ in range(300):
        one, other, third = (_draw(random) for _ in range(3))
        joined = join_queues(_queue(one), _queue(other))
        joined = join_queues(joined, _queue(third))
        fourth = _draw(random)
        stands_for = [one, other, third, *([fourth] if covers_queue(joined, _queue(fourth)) else [])]
        losses += sum(_loses(joined, kinds, future) for kinds in stands_for for future in _futures(random))
    return losses


@pytest.mark.parametrize("seed", range(4))
def test_a_joined_queue_has_what_each_may_have(seed: int) -> None:
    assert _count_losses(seed) == 0


def test_what_may_be_in_flight_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a wait would complete what a path has that didn't issue it."""
    monkeypatch.setattr(state, "count_younger", lambda queue: [*reversed(range(len(queue)))])
    assert _count_losses(0) > 0


def test_a_queue_covers_one_with_fewer_ops_and_none_with_others() -> None:
    joined = join_queues(_queue((0, 1, 2)), _queue((0, 2)))
    assert [(each.number, each.may) for each in joined] == [(0, False), (1, True), (2, False)]
    assert covers_queue(joined, _queue((0, 1, 2)))
    assert covers_queue(joined, _queue((1, 1, 2)))
    assert not covers_queue(joined, _queue((0, 1)))  # 1 is younger there than any that the queue has
    assert not covers_queue(joined, _queue((3,)))


# Eight reads, each of which is skipped or not: 256 ways to the wait.
SKIPPED = "".join(
    f"s_bitcmp1_b32 s8, {number}\ns_cbranch_scc0 skip{number}\nds_read_b32 v{10 + number}, v1\nskip{number}:\n"
    for number in range(8)
)
WAYS = (
    "v_lshlrev_b32_e32 v1, 2, v0\nv_xor_b32_e32 v2, 0x100, v1\ns_load_dword s8, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    "ds_write_b32 v1, v0\n" + SKIPPED + "s_waitcnt lgkmcnt({count})\ns_barrier\nds_read_b32 v3, v2\n"
    "s_waitcnt lgkmcnt(0)\n"
)


def test_skipped_accesses_are_joined() -> None:
    verdict = judged(WAYS.format(count=0))
    assert verdict.proved
    assert verdict.statistics.states < 150


def test_a_wait_that_counts_on_a_skipped_access() -> None:
    assert "I109" in codes(judged(WAYS.format(count=1)))
