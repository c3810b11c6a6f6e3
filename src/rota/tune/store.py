"""The store: one SQLite file in a folder, which is the truth about a tuned library.

One process writes, under a lock; any number read. A row is there whole or not at all, whenever its writer is killed
(write-ahead log). What is wrong with the file or the disk is a finding: S201, S202, S203.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from rota.errors import TuneError
from rota.tune.point import PointRow, make_row

FILE, LOCK = "library.sqlite", "library.lock"
FORMAT = 1
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', '1');
CREATE TABLE points (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, point TEXT NOT NULL, status TEXT NOT NULL,
    code TEXT NOT NULL, message TEXT NOT NULL, facts TEXT NOT NULL, answer TEXT NOT NULL, seconds REAL NOT NULL,
    attempts INTEGER NOT NULL, written REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE choices (
    ranking TEXT NOT NULL, shape TEXT NOT NULL, choice TEXT NOT NULL, PRIMARY KEY (ranking, shape)
) WITHOUT ROWID;
CREATE TABLE measured (
    kernel TEXT NOT NULL, device TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL, k INTEGER NOT NULL,
    split_k INTEGER NOT NULL, us REAL NOT NULL, source TEXT NOT NULL, PRIMARY KEY (kernel, device, m, n, k, split_k)
) WITHOUT ROWID;
"""
_POINT = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Store:
    def __init__(self, folder: Path, *, write: bool = False) -> None:
        self.folder, self.path = folder, folder / FILE
        self._lock: IO[str] | None = None
        if write:
            self._lock = _lock(folder)
        elif not self.path.is_file():
            raise TuneError.of(
                "S401",
                f"{folder} holds no tuned library",
                evidence=(("looked for", FILE),),
                fixes=("`rota tune` makes one: -o names its folder",),
            )
        try:
            with self._findings():
                self._base = self._open(write=write)
        except BaseException:
            self._release()
            raise

    def _open(self, *, write: bool) -> sqlite3.Connection:
        if write:
            base = sqlite3.connect(self.path, isolation_level=None)
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = FULL")
        else:
            base = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        if write and not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            base.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
        found = base.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self._refuse_damaged(found)
        row = base.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        if row is None or row[0] != str(FORMAT):
            raise self._refuse_damaged(f"its format is {row and row[0]}; this rota writes {FORMAT}")
        return base

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """The log becomes part of the file, and the next writer may come."""
        with contextlib.suppress(sqlite3.Error):
            self._base.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def put(self, *rows: PointRow) -> None:
        """Write all rows or none, waiting for the disk once; whoever is killed afterwards leaves them there."""
        with self._findings(), self._transaction():
            self._base.executemany(_POINT, map(_values, rows))

    def rows(self, keys: Iterable[str] | None = None) -> dict[str, PointRow]:
        """Rows by key; all of them, or those of some keys as far as they are there."""
        names = "key, kind, point, status, code, message, facts, answer, seconds, attempts"
        with self._findings():
            wanted = None if keys is None else frozenset(keys)
            found = self._base.execute(f"SELECT {names} FROM points ORDER BY name, key").fetchall()  # noqa: S608  # fixed
        said = (dict(zip(names.split(", "), values, strict=True)) for values in found)
        return {
            each["key"]: make_row(each | {name: json.loads(each[name]) for name in ("point", "facts")})
            for each in said
            if wanted is None or each["key"] in wanted
        }

    def say(self, **values: object) -> None:
        """Facts about the library as a whole, such as what it was asked for."""
        with self._findings(), self._transaction():
            for name, value in values.items():
                self._base.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    def recall(self, name: str) -> Any:  # noqa: ANN401  # whatever was said
        with self._findings():
            row = self._base.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def choose(self, ranking: str, choices: Iterable[tuple[str, Mapping[str, object]]]) -> None:
        """What was chosen for shapes under a ranking; older rankings go."""
        with self._findings(), self._transaction():
            self._base.executemany(
                "INSERT OR REPLACE INTO choices VALUES (?, ?, ?)",
                ((ranking, shape, json.dumps(choice, sort_keys=True)) for shape, choice in choices),
            )

    def list_choices(self, ranking: str) -> dict[str, dict[str, Any]]:
        with self._findings():
            found = self._base.execute("SELECT shape, choice FROM choices WHERE ranking = ?", (ranking,)).fetchall()
        return {shape: json.loads(choice) for shape, choice in found}

    def forget_rankings(self, but: Sequence[str]) -> None:
        marks = ", ".join("?" * len(but))
        with self._findings(), self._transaction():
            self._base.execute(f"DELETE FROM choices WHERE ranking NOT IN ({marks})", tuple(but))  # noqa: S608  # marks

    def measure(self, runs: Iterable[tuple[str, str, int, int, int, int, float, str]]) -> None:
        """Measured runs: kernel, device, M, N, K, split, microseconds, source; a later one replaces an earlier."""
        with self._findings(), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO measured VALUES (?, ?, ?, ?, ?, ?, ?, ?)", runs)

    def list_runs(self) -> list[tuple[str, str, int, int, int, int, float, str]]:
        """All measured runs, in an order of their own."""
        with self._findings():
            return self._base.execute(
                "SELECT kernel, device, m, n, k, split_k, us, source FROM measured ORDER BY 1, 2, 3, 4, 5, 6"
            ).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    @contextmanager
    def _findings(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            name = getattr(error, "sqlite_errorname", "") or type(error).__name__
            if name.startswith(_DAMAGED) or "no such table" in str(error):
                raise self._refuse_damaged(str(error)) from error
            raise refuse_unusable(self.path, str(error), name) from error

    def _refuse_damaged(self, why: str) -> TuneError:
        return TuneError.of(
            "S202",
            f"{self.path.name} is damaged, or is not a store: {why}",
            evidence=(("file", self.path.name),),
            fixes=(
                "restore it, or take another folder: what it held is computed again",
                "`sqlite3 library.sqlite .recover` may save rows",
            ),
        )


def refuse_unusable(path: Path, why: str, name: str = "") -> TuneError:
    """S201: nothing is lost of what was written before."""
    full = "full" in why.lower() or name.startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    fixes = ("make room on the disk",) if full else ("a folder that can be written to: -o",)
    return TuneError.of(
        "S201",
        f"{path.name} can't be used: {why}",
        evidence=(("file", path.name), *((("error", name),) if name else ())),
        fixes=(*fixes, "then run the same command again: it computes only what is missing"),
    )


def _lock(folder: Path) -> IO[str]:
    """The lock of the folder's writer, who is named in it; the system takes it back when its holder ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise refuse_unusable(folder / FILE, error.strerror or str(error)) from error
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return lock  # a system without such locks: SQLite's own are left
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise TuneError.of(
            "S203",
            f"another process is tuning into {folder.name}",
            evidence=(("process", holder),),
            fixes=("wait for it; `tune status` and its folder say how far it is", "or take another folder: -o"),
        ) from error
    with contextlib.suppress(OSError):
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
    return lock


def _values(row: PointRow) -> tuple[object, ...]:
    point, facts = json.dumps(row.point.data()), json.dumps(dict(row.facts))
    told = row.status.value, row.code, row.message, facts, row.answer, row.seconds, row.attempts
    return row.key, row.kind.value, row.point.name, point, *told, time.time()
