"""The reader of schedule tables: what it makes of a small one, and what the proof says when that is broken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from rota.cli.main import main
from rota.compiled.proved import CompiledProgram
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.errors import Severity
from rota.lift.hipblaslt import HandMade, Reading, loop_of, lower_table
from rota.lift.schedule_table import read_table
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.targets.registry import device_named
from rota.verify.prove import verify
from rota.view.page import show
from tests.lift.small_table import BARRIER, Document, remove_sync, small, tf32, wait

pytestmark = pytest.mark.thorough  # runs for seconds

DEVICE = device_named("mi355x")


def lowered(document: Document, **reading: int) -> LoweredProgram:
    return lower_table(read_table(document), DEVICE, Reading(**reading))  # type: ignore[arg-type]


def codes(document: Document, **reading: int) -> set[str]:
    """Of all errors, with an even and with an odd number of tiles."""
    programs = [lowered(document, before=before, **reading) for before in range(2)]
    reports = [verify(program) for program in programs]
    return {each.code for report in reports for each in report.findings if each.severity is Severity.ERROR}


def test_a_small_table_is_proved() -> None:
    assert codes(small()) == set()


def test_it_computes_two_tiles_a_trip_and_two_outside() -> None:
    program = lowered(small())
    assert (program.tiles_per_trip, program.tiles_outside) == (2, 2)
    kinds = [entry.op.kind for entry in program.kernel]
    assert [kinds.count(kind) for kind in (OpKind.DMA, OpKind.LDS_READ, OpKind.MMA, OpKind.BARRIER)] == [8, 16, 16, 4]


def test_a_tile_before_the_loop_changes_buffers() -> None:
    even, odd = (
        [entry.op.copy for entry in lowered(small(), before=before).kernel if entry.op.kind is OpKind.DMA]
        for before in range(2)
    )
    assert even == [0, 0, 0, 0, 1, 1, 1, 1]
    assert odd == [1, 1, 1, 1, 0, 0, 0, 0]


def test_the_last_tiles_load_nothing_and_the_last_reads_nothing_ahead() -> None:
    names = [entry.op.name for entry in lowered(small()).epilogue]
    assert not any(name.startswith("load") for name in names)
    assert names.count("read_a0_0") == 1
    assert names.count("read_a1_0") == 2
    assert names.count("wait_vm(0)") == 2  # 4, of which no loads are left to be in flight


@pytest.mark.parametrize("number", range(5))
def test_every_wait_and_barrier_of_it_is_needed(number: int) -> None:
    table = remove_sync(read_table(small()), number)
    reports = [verify(lower_table(table, DEVICE, Reading(before=before))) for before in range(2)]
    assert any(report.certificate is None for report in reports)


@pytest.mark.parametrize(
    ("streams", "syncs", "code"),
    [
        (
            {"GRA": [[1, 1, 1, 1]], "SYNC": [[-1, 2, 2, 6, 6]]},
            None,
            "R103",
        ),  # loads before the barrier behind the reads
        ({}, [wait(lds=0), wait(lds=0), BARRIER, wait(memory=5), BARRIER], "R102"),  # one load too many in flight
        ({}, [wait(lds=1), wait(lds=0), BARRIER, wait(memory=4), BARRIER], "R104"),  # one read too many
        ({"LRSA": [[7]]}, None, "V106"),  # reads of the next tile from this one's buffer
        ({"LRA0": [[4, 4]]}, None, "R104"),  # read after the first use
        ({"LRA1": [[2, 2]]}, None, "V106"),  # registers overwritten before the last use
    ],
)
def test_a_broken_one_is_refuted(streams: Document, syncs: Sequence[Document] | None, code: str) -> None:
    changes = {} if syncs is None else {"sync": syncs}
    assert code in codes(small(streams, **changes))


def test_loads_in_another_order_before_the_loop_are_another_program() -> None:
    exact = small({"GRA": [[5, 5, 5, 5]], "GRB": [[3, 3, 3, 3]], "LRSB": [[3]], "LRB1": [[4, 5]]})
    exact["streams"] |= {"SYNC": [[-1, 2, 2, 4, 4, 6, 6]], "LRSA": [[5]], "LRA1": [[6, 7]]}
    exact["sync"] = [wait(lds=0), wait(lds=0), BARRIER, wait(memory=4), BARRIER, wait(memory=4), BARRIER]
    assert codes(exact) == set()
    assert codes(exact, a_first=1) == {"R102"}


def test_two_code_paths_are_two_roles() -> None:
    both = small({"LRA0": [[0, 0], [1, 1]], "GRA": [[3, 3, 3, 3], [4, 4, 4, 4]], "GRB": [[4, 4, 4, 4], [5, 5, 5, 5]]})
    both["code_paths"] = 2
    assert codes(both) == set()
    assert [(role.name, role.waves) for role in lowered(both).roles] == [("path 0", 2), ("path 1", 2)]
    both["streams"]["GRA"][1] = [1, 1, 1, 1]
    assert "R103" in codes(both)


def test_behind_the_loop_all_waves_take_the_first_path() -> None:
    both = small({"LRA0": [[0, 0], [1, 1]]}, code_paths=2)
    program = lowered(both)
    own = [[entry.op.name[:-3] for entry in program.epilogue if entry.roles == (role,)] for role in range(2)]
    assert own[0] == own[1]


def test_a_wait_that_does_not_fit_holds_by_the_counters_size() -> None:
    vast = small(sync=[wait(lds=40), wait(lds=0), BARRIER, wait(memory=4), BARRIER])
    assert {"L101", "R104"} <= codes(vast)
    assert codes(vast, full_counter=1) == {"R104"}  # four reads don't fill it


def test_the_last_tiles_waits_may_be_full() -> None:
    """A wait that counts on reads for a next tile leaves this one's in flight where there is none."""
    counting = small({"SYNC": [[-1, 2, 2, 3, 3]], "LRSA": [[2]], "LRSB": [[2]], "GRA": [[4] * 4], "GRB": [[4] * 4]})
    counting["streams"] = {"LRA1": [[3, 3]], "LRB1": [[3, 3]]} | counting["streams"]
    counting["streams"] |= {"LRA1": [[3, 3]], "LRB1": [[3, 3]]}
    counting["sync"] = [wait(lds=0), wait(memory=0), BARRIER, wait(lds=4), BARRIER]
    assert codes(counting) == {"R104"}
    assert codes(counting, full_waits_last=1) == set()


def test_reads_that_transpose_are_their_own_kind() -> None:
    both = small({"LRA0": [[0] * 4], "LRA1": [[6] * 4]}, layout="NN", useLDSTr=True)
    kinds = {entry.op.name: entry.op.kind for entry in lowered(both).kernel}
    assert kinds["read_a0_3"] is OpKind.LDS_READ_TRANSPOSED
    assert kinds["read_b0_0"] is OpKind.LDS_READ
    assert codes(both) == set()


def test_packs_stand_between_reads_and_products() -> None:
    packed = small({"PackA0": [[2] * 8], "PackA1": [[0] * 8], "LRA0": [[0] * 8], "LRA1": [[6] * 8]}, layout="NN")
    packed["streams"]["PackA1"] = [[-1] * 8]
    assert codes(packed) == set()
    late = small({"PackA0": [[5] * 8], "PackA1": [[-1] * 8], "LRA0": [[0] * 8], "LRA1": [[6] * 8]}, layout="NN")
    assert "V106" in codes(late)


def test_packs_of_reads_that_bring_two_fragments() -> None:
    """Which of two orders the packs have isn't known; each is taken to need the reads of both."""
    packed = small({"PackA0": [[2] * 16], "PackA1": [[-1] * 16], "LRA0": [[0] * 16], "LRA1": [[6] * 16]}, layout="NN")
    assert codes(packed) == set()
    (entry,) = [each for each in lowered(packed).kernel[:60] if each.op.name == "make_packa0_4"]
    assert [place.name for place in entry.effect.reads] == ["a1_0", "a1_1", "a1_8", "a1_9"]


@pytest.mark.parametrize(("packs", "width"), [(10, 1), (24, 1), (10, 2), (24, 2)])
def test_single_precision_is_converted_before_it_is_multiplied(packs: int, width: int) -> None:
    assert codes(tf32(packs=packs, width=width)) == set()


@pytest.mark.parametrize(
    ("stream", "packs", "width", "number"),
    [
        ("PackA0", 10, 1, 0),  # rounds the first two numbers
        ("PackA0", 10, 1, 4),  # a small matrix instruction
        ("PackB0", 10, 1, 6),  # rounds what was left of the last two
        ("PackA0", 24, 1, 5),  # subtracts; the temporary register is another's by then
        ("PackA0", 10, 2, 0),  # swaps
    ],
)
def test_a_conversion_that_comes_too_late(stream: str, packs: int, width: int, number: int) -> None:
    late = tf32(packs=packs, width=width)
    late["streams"][stream][0][number] = late["num_mfma"] - 1
    assert "V106" in codes(late)


def test_fragments_in_four_blocks() -> None:
    names = [entry.op.name for entry in lowered(tf32()).kernel if entry.op.name.startswith("mma")]
    assert [name for name in names[:12] if name.endswith("_0")] == [
        "mma0_0_0_0",
        "mma0_1_0_0",
        "mma0_0_1_0",
        "mma0_1_1_0",
    ]


def test_packs_may_be_those_of_the_trip_before() -> None:
    """Then they stand in front of the reads, and so do the first products after them."""
    before = tf32()
    before["streams"] |= {"PackA3": [[-1] * 10], "PackB3": [[-1] * 10]}
    assert codes(before) == set()


def test_another_order_of_the_matrix_instructions() -> None:
    assert codes(small(mfma_reorder=[3, 2, 1, 0, 7, 6, 5, 4])) == set()
    assert {"R104", "V106"} & codes(small(mfma_reorder=[4, 5, 6, 7, 0, 1, 2, 3]))


def test_three_buffers() -> None:
    """The pointer moves with the last of several instructions, and B shares A's for loads."""
    three = small({"LRSA": [[5, 5, 5]], "LWSA": [[4, 5]], "LWSB": [[]]}, name="_get_schedule_64x64x64_16bit_DPLB")
    program = lowered(three)
    assert program.tiles_per_trip == 3
    table = read_table(three)
    reports = [verify(lower_table(table, DEVICE, Reading(before=before))) for before in range(3)]
    assert all(report.certificate is not None for report in reports)


def test_it_is_predicted_and_drawn() -> None:
    program = lowered(small())
    # Four waves read a kilobyte eight times for a tile, and load 16 KiB, at 128 bytes a clock.
    prediction = predict(program, band=False)
    assert (prediction.busiest, prediction.least_cycles) == ("LDS port", 4 * 8 * 1024 / 128)
    assert "mma0_0_0" in show(CompiledProgram.of(program), record(program)).svg()


def test_the_command_takes_a_table() -> None:
    table = read_table(small())
    assert HandMade(table=table, reading=Reading(before=1)).compile_for(DEVICE) == lowered(small(), before=1)


def test_the_command_checks_a_table(tmp_path: Path) -> None:
    """What an author has lowered is proved as it is."""
    file = tmp_path / "made_for_test.py"
    file.write_text(
        "from rota.lift.hipblaslt import HandMade, Reading\n"
        "from rota.lift.schedule_table import read_table\n"
        "from tests.lift.small_table import small\n"
        "table = HandMade(table=read_table(small()), reading=Reading(before=1))\n"
    )
    result = CliRunner().invoke(main, ["check", f"{file}:table"])
    assert result.exit_code == 0, result.output


def test_its_loop_has_an_op_for_each_instruction() -> None:
    loop = loop_of(read_table(small()))
    assert [sum(op.kind is kind for op in loop.ops) for kind in (OpKind.DMA, OpKind.LDS_READ, OpKind.MMA)] == [4, 8, 8]
    assert loop.lds_bytes({"A": 2, "B": 2}) == 2 * 2 * 64 * 64 * 2
