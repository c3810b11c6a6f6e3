"""Orders next to an order: nothing passes what it must follow, and gaps between matrix instructions even out."""

from random import Random

from rota.values.polish import EntryMoves

# Matrix instructions are 0, 4 and 6; between them stand 1, 2, 3 and 5.
ORDER = [0, 1, 2, 3, 4, 5, 6]
FIXED = [number in {0, 4, 6} for number in ORDER]
IN_ORDER = [set[int](), set(), set(), set(), {0}, set(), {4}]


def test_a_stretch_carries_one_entry_from_gap_to_gap() -> None:
    moves = EntryMoves(IN_ORDER, FIXED)
    assert moves.shift(ORDER, [4], -1) == [0, 1, 2, 4, 3, 5, 6]
    assert moves.shift(ORDER, [4, 6], -1) == [0, 1, 2, 4, 3, 6, 5]
    assert moves.shift(ORDER, [4], 1) == [0, 1, 2, 3, 5, 4, 6]
    assert moves.shift(ORDER, [0, 4], 1) == [1, 0, 2, 3, 5, 4, 6]


def test_an_entry_that_may_not_pass_lets_another_of_its_gap_go() -> None:
    bound = [*IN_ORDER]
    bound[4] = {0, 3}
    moves = EntryMoves(bound, FIXED)
    assert moves.shift(ORDER, [4], -1) == [0, 1, 3, 4, 2, 5, 6]
    bound[4] = {0, 1, 2, 3}
    assert moves.shift(ORDER, [4], -1) is None
    assert moves.shift(ORDER, [0], -1) is None  # nothing stands before it


def test_an_entry_is_carried_only_past_what_it_may_pass() -> None:
    moves = EntryMoves(IN_ORDER, FIXED)
    assert moves.carry(ORDER, 1, 5) == [0, 2, 3, 4, 5, 1, 6]
    assert moves.carry(ORDER, 5, 1) == [0, 5, 1, 2, 3, 4, 6]
    bound = [*IN_ORDER]
    bound[5] = {2}
    moves = EntryMoves(bound, FIXED)
    assert moves.carry(ORDER, 1, 5) is not None
    assert moves.carry(ORDER, 2, 5) is None
    assert moves.carry(ORDER, 5, 1) is None


def test_single_moves_end_at_what_stays_in_place() -> None:
    moves = EntryMoves(IN_ORDER, FIXED)
    assert list(moves.single(ORDER, 3)) == [[3, 0, 1, 2, 4, 5, 6], [0, 1, 2, 4, 3, 5, 6], [0, 1, 2, 4, 5, 6, 3]]
    bound = [*IN_ORDER]
    bound[3], bound[6] = {2}, {3, 4}
    assert list(EntryMoves(bound, FIXED).single(ORDER, 3)) == [[0, 1, 2, 4, 3, 5, 6]]


def test_no_move_breaks_what_must_follow() -> None:
    for seed in range(20):
        random = Random(seed)
        count = 12
        fixed = [random.random() < 0.4 for _ in range(count)]
        predecessors = [{other for other in range(number) if random.random() < 0.15} for number in range(count)]
        moves, order = EntryMoves(predecessors, fixed), list(range(count))
        found = [each for entry in order for each in moves.single(order, entry)]
        found += [each for first in order for last in order if (each := moves.carry(order, first, last))]
        matrix = [entry for entry in order if fixed[entry]]
        found += [each for step in (-1, 1) for end in matrix if (each := moves.shift(order, matrix[:end], step))]
        assert found
        for each in found:
            assert sorted(each) == order
            assert all(each.index(first) < each.index(then) for then in order for first in predecessors[then])
