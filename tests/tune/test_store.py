"""What goes wrong with a store ends in a finding, and loses nothing that was written before."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from rota.errors import TuneError
from rota.tune.point import JobKind, LoopPoint, PointRow, PointStatus
from rota.tune.tune_library import Store
from tests.findings.smallest import raised

POINT = LoopPoint(device="MI355X")
ROW = PointRow(
    key="k0", kind=JobKind.SOLVE, point=POINT, status=PointStatus.PROVED, facts={"loop_clocks": 1.0}, answer="{}"
)


def row(number: int, size: int = 0) -> PointRow:
    return replace(ROW, key=f"k{number}", message="x" * size)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        store.put(ROW)
        store.put(replace(ROW, key="k1", status=PointStatus.FAILED, code="S301"))
        store.put(replace(ROW, key="k1", status=PointStatus.REFUSED, code="L103"))
    with Store(tmp_path) as store:
        assert store.rows() == {"k0": ROW, "k1": replace(ROW, key="k1", status=PointStatus.REFUSED, code="L103")}
        assert store.rows(["k1", "k2"]).keys() == {"k1"}


def test_a_reader_is_not_in_the_way(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as writer, Store(tmp_path) as reader:
        writer.put(ROW)
        assert reader.rows() == {"k0": ROW}


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    with Store(tmp_path, write=True):
        finding = raised("S203", lambda: Store(tmp_path, write=True))
    assert ("process", str(os.getpid())) in finding.evidence
    Store(tmp_path, write=True).close()  # when the first has gone, the next may come


def _hold(folder: Path, ready: multiprocessing.synchronize.Event) -> None:
    store = Store(folder, write=True)
    store.put(ROW)
    ready.set()
    signal.pause()


def test_a_killed_writer_leaves_its_rows_and_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_hold, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    raised("S203", lambda: Store(tmp_path, write=True))
    process.kill()
    process.join()
    with Store(tmp_path, write=True) as store:
        assert store.rows() == {"k0": ROW}


@pytest.mark.parametrize("left", [10, 5000, 0.5, 0.9])
def test_a_truncated_file_is_damaged(tmp_path: Path, left: float) -> None:
    with Store(tmp_path, write=True) as store:
        for number in range(100):
            store.put(row(number, 1000))
    path = tmp_path / Store.FILE
    size = path.stat().st_size
    os.truncate(path, int(left if left > 1 else left * size))
    for write in (True, False):
        finding = raised("S202", lambda write=write: Store(tmp_path, write=write))  # type: ignore[misc]
        assert Store.FILE in finding.message


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / Store.FILE).write_text("M,N,K\n" * 100)
    raised("S202", lambda: Store(tmp_path, write=True))
    (tmp_path / Store.FILE).unlink()
    base = sqlite3.connect(tmp_path / Store.FILE)
    base.execute("CREATE TABLE other (x)")
    base.commit()
    base.close()
    raised("S202", lambda: Store(tmp_path, write=True))


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path, write=True).close()
    base = sqlite3.connect(tmp_path / Store.FILE)
    base.execute("UPDATE meta SET value = '99'")
    base.commit()
    base.close()
    assert "99" in raised("S202", lambda: Store(tmp_path, write=True)).message


def test_a_folder_without_a_library_says_so(tmp_path: Path) -> None:
    raised("S401", lambda: Store(tmp_path))


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "lib").write_text("")
    raised("S201", lambda: Store(tmp_path / "lib", write=True))


def _fill(folder: Path, answer: multiprocessing.connection.Connection) -> None:
    """On a disk that is full after 400 kB: the process may write no larger files."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Store(folder, write=True) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        number = 0
        try:
            while True:
                store.put(row(number, 20_000))
                number += 1
        except TuneError as error:
            answer.send((number, error.findings[0].code, error.findings[0].fixes))


def test_a_full_disk_ends_in_a_finding_and_loses_no_row(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_fill, args=(tmp_path, sender))
    process.start()
    written, code, fixes = receiver.recv()
    process.join()
    assert code == "S201"
    assert "make room on the disk" in fixes
    assert written > 2
    with Store(tmp_path, write=True) as store:
        assert len(store.rows()) == written
        store.put(row(written))  # and it goes on


def _as_nobody(folder: Path, answer: multiprocessing.connection.Connection) -> None:
    """root writes where it likes, so somebody else tries."""
    os.setuid(65534)
    try:
        Store(folder, write=True)
    except TuneError as error:
        answer.send(error.findings[0].code)
    else:
        answer.send("")


def test_a_store_that_may_not_be_written_is_a_finding(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        store.put(ROW)
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(0o555)
    context = multiprocessing.get_context("fork")
    if os.getuid() == 0:
        for parent in (tmp_path, *tmp_path.parents[:2]):
            parent.chmod(parent.stat().st_mode | 0o055)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_as_nobody, args=(tmp_path, sender))
        process.start()
        assert receiver.recv() == "S201"
        process.join()
    else:
        raised("S201", lambda: Store(tmp_path, write=True))
    tmp_path.chmod(0o755)


def test_a_change_is_whole_or_not_at_all(tmp_path: Path) -> None:
    def choices() -> object:
        yield "1x1x1:bf16", {"kernel": "a"}
        raise KeyboardInterrupt

    with Store(tmp_path, write=True) as store:
        with pytest.raises(KeyboardInterrupt):
            store.choose("r", choices())  # type: ignore[arg-type]
        assert store.list_choices("r") == {}
        store.choose("r", [("1x1x1:bf16", {"kernel": "a"})])
        store.choose("s", [("1x1x1:bf16", {"kernel": "b"})])
        store.forget_rankings(["s"])
        assert store.list_choices("r") == {}
        assert store.list_choices("s") == {"1x1x1:bf16": {"kernel": "b"}}
