"""A file of SQLite in a folder that keeps rows, whoever is killed while it is written.

A row is there whole or not at all (write-ahead log). What is wrong with the file or the disk is a finding: S201, S202,
S203.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from rota.errors import TuneError

FORMAT = 1
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_META = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', '1');
"""
_PATIENCE = 60.0  # seconds for another writer's transaction


class SqliteFile:
    """Opened to read, or to write; a subclass says which file it is and what tables it has."""

    FILE: ClassVar[str]
    TABLES: ClassVar[str]
    WHAT: ClassVar[str]
    """What the file is, for who looks for it in vain."""
    MADE_BY: ClassVar[str]
    LOCK: ClassVar[str | None] = None
    """A file that only one writer may hold; None if writers take turns."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        self.folder, self.path = folder, folder / self.FILE
        self._lock: IO[str] | None = None
        if not write and not self.path.is_file():
            raise TuneError.of(
                "S401", f"{folder} holds no {self.WHAT}", evidence=(("looked for", self.FILE),), fixes=(self.MADE_BY,)
            )
        if write:
            self._lock = self._make_folder()
        try:
            with self._findings():
                self._base = self._open(write=write)
        except BaseException:
            self._release()
            raise

    def _open(self, *, write: bool) -> sqlite3.Connection:
        if write:
            base = sqlite3.connect(self.path, isolation_level=None, timeout=_PATIENCE)
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = FULL")
            base.execute("BEGIN IMMEDIATE")
            if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                base.execute("COMMIT")
            else:
                for statement in filter(None, map(str.strip, (_META + self.TABLES).split(";"))):
                    base.execute(statement)
                base.execute("COMMIT")
        else:
            base = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
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

    def say(self, **values: object) -> None:
        """Facts about the whole, such as what was asked for."""
        with self._findings(), self._transaction():
            for name, value in values.items():
                self._base.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    def recall(self, name: str) -> Any:  # noqa: ANN401  # whatever was said
        with self._findings():
            row = self._base.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

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
                f"`sqlite3 {self.path.name} .recover` may save rows",
            ),
        )

    def _make_folder(self) -> IO[str] | None:
        """The folder, and the lock of its writer, who is named in it; the system takes it back when its holder ends."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.LOCK is None:
                return None
            lock = (self.folder / self.LOCK).open("a+", encoding="utf-8")
        except OSError as error:
            raise refuse_unusable(self.path, error.strerror or str(error)) from error
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
                f"another process is tuning into {self.folder.name}",
                evidence=(("process", holder),),
                fixes=("wait for it; `tune status` and its folder say how far it is", "or take another folder: -o"),
            ) from error
        with contextlib.suppress(OSError):
            lock.seek(0)
            lock.truncate()
            lock.write(f"{os.getpid()}\n")
            lock.flush()
        return lock


def refuse_unusable(path: Path, why: str, name: str = "") -> TuneError:
    """S201: nothing is lost of what was written before."""
    full = "full" in why.lower() or name.startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    fixes = ("make room on the disk",) if full else ("take a folder that can be written to",)
    return TuneError.of(
        "S201",
        f"{path.name} can't be used: {why}",
        evidence=(("file", path.name), *((("error", name),) if name else ())),
        fixes=(*fixes, "then run the same command again: it computes only what is missing"),
    )
