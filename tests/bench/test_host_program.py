"""The host program as it runs against a stand-in for HIP: which calls, in which order, with which bytes."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rota.bench.bench_plan import BenchBuffer, DrawnElements
from rota.bench.bench_results import COLUMNS
from tests.bench.host import LAUNCH, build_program, read_calls, run_folder, small_plan, write_folder
from tests.wording.golden import mentions, worded


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def measured(folder: Path, **settings: object) -> list[dict[str, str]]:
    write_folder(folder, small_plan())
    done = run_folder(folder, **settings)
    assert done.returncode == 0, done.stderr
    return rows_of(folder)


def test_the_columns_are_those_that_are_read(tmp_path: Path) -> None:
    rows = measured(tmp_path)
    assert tuple(rows[0]) == COLUMNS
    assert [row["mode"] for row in rows] == ["compared"] * 2 + ["cold"] * 8 + ["warm"] * 8
    assert {row["rows"] for row in rows} == {"18"}
    assert [row["row"] for row in rows] == [str(number) for number in range(1, 19)]
    first = rows[0]
    assert first["device"] == "Stand-in   simulated "  # without what a CSV would have to quote
    assert (first["arch"], first["clock_mhz"], first["memory_clock_mhz"], first["units"]) == (
        "gfx942", "2100", "1300", "304"
    )  # fmt: skip
    assert (first["bytes"], first["launch"], first["bits"]) == ("196", str(LAUNCH), "first")


def test_times_are_those_of_one_launch_and_cold_ones_follow_a_flush(tmp_path: Path) -> None:
    """Two events are 2 us apart by themselves; a flush costs the next launch 20."""
    rows = [row for row in measured(tmp_path, US="50,40", COLD=20) if row["us"]]
    times = {(row["candidate"], row["mode"], float(row["us"])) for row in rows}
    assert {(one, mode, round(us)) for one, mode, us in times} == {
        ("before", "cold", 72), ("after", "cold", 62), ("before", "warm", 52), ("after", "warm", 42)
    }  # fmt: skip
    assert {float(row["empty_us"]) for row in rows} == {2.0}


def test_arguments_are_the_bytes_of_the_plan_with_pointers_to_the_buffers(tmp_path: Path) -> None:
    measured(tmp_path)
    launches = [call.split() for call in read_calls(tmp_path) if call.startswith("hipModuleLaunchKernel")]
    assert {tuple(each[1:9]) for each in launches} == {
        (number, "3", "2", "1", "64", "1", "1", "128") for number in "01"
    }  # fmt: skip
    for each in launches:
        segment = bytes.fromhex(each[9])
        assert segment[16:] == LAUNCH.segment[16:]
        x, y = (int.from_bytes(segment[at : at + 8], "little") for at in (0, 8))
        assert (x % 16, y % 16) == (8, 0)  # 4 of the skew, 4 of the displacement
        assert each[10:12] == ["96", "96"]  # what is left of each buffer from there on
    functions = [call for call in read_calls(tmp_path) if call.startswith("hipModuleGetFunction")]
    assert functions == ["hipModuleGetFunction 0 add one", "hipModuleGetFunction 1 add one"]


def test_every_launch_starts_from_equal_buffers(tmp_path: Path) -> None:
    measured(tmp_path)
    sums = [call.split(" sum ")[1] for call in read_calls(tmp_path) if " sum " in call]
    assert len(sums) == 3 + 20 + 8 + 16  # compared, warmed up, cold, warm
    assert len(set(sums)) == 1


def draw(codes: list[bytes], count: int, state: int) -> bytes:
    """SplitMix64, written once more."""
    found, mask = b"", (1 << 64) - 1
    for _ in range(count):
        state = state + 0x9E3779B97F4A7C15 & mask
        bits = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
        found += codes[(bits ^ bits >> 31) % len(codes)]
    return found


def test_elements_are_drawn_by_their_seed(tmp_path: Path) -> None:
    plan = small_plan()
    codes = (b"ab", b"cd", b"ef")
    drawn = BenchBuffer(size=100, drawn=DrawnElements(width=2, codes=codes, seed=99))
    case = replace(plan.cases[0], buffers=(drawn, plan.cases[0].buffers[1]))
    write_folder(tmp_path, replace(plan, cases=(case,)))
    assert run_folder(tmp_path).returncode == 0
    content, total = draw([*codes], 50, 99), 0
    assert {content[at : at + 2] for at in range(0, 100, 2)} == {*codes}
    for each in content[LAUNCH.pointers[0].displacement :] + bytes(96):
        total = (31 * total + each) & 0xFFFF_FFFF
    assert {call.split(" sum ")[1] for call in read_calls(tmp_path) if " sum " in call} == {str(total)}


def test_scratch_is_neither_compared_nor_restored(tmp_path: Path) -> None:
    plan = small_plan()
    case = replace(plan.cases[0], buffers=(plan.cases[0].buffers[0], BenchBuffer(size=96, scratch=True)))
    write_folder(tmp_path, replace(plan, cases=(case,)))
    done = run_folder(tmp_path)  # what the stand-in's kernel writes is all in there
    assert (done.returncode, mentions(done.stderr, "add")) == (1, True)
    assert [call for call in read_calls(tmp_path) if call.startswith("hipMemcpy")] == [
        "hipMemcpy 1 100",
        "hipMemcpy 2 100",
    ]


def letters(folder: Path) -> str:
    """The calls after the comparison: r restores, f flushes, e is an event, 0 and 1 are launches."""
    names = {"hipMemcpyAsync 3 96": "r", "hipMemsetAsync 4096": "f", "hipEventRecord": "e"}
    found = "".join(
        names.get(call, call.split()[1] if call.startswith("hipModuleLaunch") else "") for call in read_calls(folder)
    )
    return found.removeprefix("ee" * 21)


def test_the_order_of_calls(tmp_path: Path) -> None:
    measured(tmp_path)
    found = letters(tmp_path)
    assert found.startswith("001" + "r0r1" * 10)
    timed = found.removeprefix("001" + "r0r1" * 10)
    assert re.fullmatch(r"(rfe[01]e){8}(r0re0e|r1re1e){8}", timed)


def test_rounds_come_in_pairs_of_opposite_order(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan(rounds=40, names=("a", "b", "c")))
    assert run_folder(tmp_path).returncode == 0
    for mode in ("cold", "warm"):
        orders: dict[int, list[str]] = {}
        for row in rows_of(tmp_path):
            if row["mode"] == mode:
                assert int(row["position"]) == len(orders.setdefault(int(row["round"]), []))
                orders[int(row["round"])].append(row["candidate"])
        assert [*orders] == list(range(40))
        assert all(orders[2 * each] == orders[2 * each + 1][::-1] for each in range(20))
        assert len({tuple(each) for each in orders.values()}) == 6  # all that there are


def test_the_orders_are_those_of_the_seed(tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_folder(folder, replace(small_plan(rounds=20), seed=seed))
        assert run_folder(folder).returncode == 0
        found.append(letters(folder))
    assert found[0] == found[1] != found[2]


def test_every_call_that_fails_ends_the_program(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan(rounds=1))
    assert run_folder(tmp_path).returncode == 0
    calls = read_calls(tmp_path)
    assert len(calls) > 150
    (tmp_path / "results.csv").unlink()
    first = {call.split()[0]: number for number, call in reversed([*enumerate(calls, 1)])}
    last = {call.split()[0]: number for number, call in enumerate(calls, 1)}
    assert len(first) == 19
    for name, number in [*first.items(), *last.items()]:
        done = run_folder(tmp_path, FAIL=number)
        assert done.returncode == 2, (name, number)
        assert name in done.stderr
        assert not (tmp_path / "results.csv").exists()


@pytest.mark.thorough  # starts the program hundreds of times
def test_each_call_that_fails_ends_the_program(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan(rounds=1))
    assert run_folder(tmp_path).returncode == 0
    calls = read_calls(tmp_path)
    (tmp_path / "results.csv").unlink()
    for number, call in enumerate(calls, 1):
        done = run_folder(tmp_path, FAIL=number)
        assert (done.returncode, call.split()[0] in done.stderr) == (2, True), (number, call)
        assert not (tmp_path / "results.csv").exists()


def test_another_architecture_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan())
    done = run_folder(tmp_path, ARCH="gfx950")
    assert (done.returncode, mentions(worded(done.stderr), "gfx950", "gfx942")) == (3, True)
    assert not [call for call in read_calls(tmp_path) if "Module" in call or "Malloc" in call]
    assert not (tmp_path / "results.csv").exists()


def test_a_kernel_with_other_results_is_named_and_not_timed(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan(names=("a", "b", "c")))
    done = run_folder(tmp_path, WRONG=1)
    assert (done.returncode, mentions(worded(done.stderr), "b", "add", 95, 1)) == (4, True)
    rows = rows_of(tmp_path)
    assert {(row["candidate"], row["bits"]) for row in rows} == {("a", "first"), ("b", "differ"), ("c", "same")}
    assert [row["mode"] for row in rows if row["candidate"] == "b"] == ["compared"]
    assert len([row for row in rows if row["candidate"] == "c"]) == 9


def test_results_that_vary_by_themselves_are_not_compared(tmp_path: Path) -> None:
    assert {row["bits"] for row in measured(tmp_path, VARY=1)} == {"vary"}


def test_a_launch_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan())
    done = run_folder(tmp_path, IDLE=1)
    assert (done.returncode, mentions(worded(done.stderr), "add")) == (1, True)
    assert not (tmp_path / "results.csv").exists()


@pytest.mark.parametrize("name", ["before.hsaco", "after.hsaco", "case0_buffer0.bin"])
def test_a_file_that_was_replaced_is_refused(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, small_plan())
    content = bytearray((tmp_path / name).read_bytes())
    content[3] ^= 1
    (tmp_path / name).write_bytes(content)
    done = run_folder(tmp_path)
    assert (done.returncode, name in done.stderr) == (1, True)
    (tmp_path / name).unlink()
    assert run_folder(tmp_path).returncode == 1


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan())
    plan = tmp_path / "plan.txt"
    lines = plan.read_text().splitlines()
    assert lines[-1] == "end"
    for number, line in enumerate(lines):
        for instead in (line.split()[0], f"{line} "[:3], line.replace(line.split()[0], "unknown", 1)):
            if instead != line:  # "end" has one word
                plan.write_text("\n".join([*lines[:number], instead, *lines[number + 1 :], ""]))
                assert run_folder(tmp_path).returncode == 1, (number, instead)
    plan.write_text("\n".join(lines[:-1]))
    assert run_folder(tmp_path).returncode == 1


def test_options(tmp_path: Path) -> None:
    write_folder(tmp_path, small_plan())
    done = run_folder(tmp_path, "--rounds", "2", "--out", "other.csv", "--device", "0", "--plan", "plan.txt")
    assert done.returncode == 0
    assert len((tmp_path / "other.csv").read_text().splitlines()) == 1 + 2 + 4 + 4
    assert run_folder(tmp_path, "--device", "1").returncode == 2
    for words in (("--rounds",), ("--rounds", "0"), ("--unknown", "1"), ("--plan", "nowhere.txt")):
        assert run_folder(tmp_path, *words).returncode == 1
    assert run_folder(tmp_path, "--out", "nowhere/results.csv").returncode == 1


@pytest.mark.thorough  # compiles with sanitizers
def test_sanitizers_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sanitized = build_program("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    monkeypatch.setattr("tests.bench.host.build_program", lambda: sanitized)
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # the program ends and leaves its memory to the system
    write_folder(tmp_path, small_plan(names=("a", "b", "c")))
    assert run_folder(tmp_path).returncode == 0
    assert run_folder(tmp_path, WRONG=2).returncode == 4
