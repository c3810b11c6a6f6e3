"""The store of verdicts: rows by the key of their content, and what each run found in which file.

Several processes may write at once; each transaction is short. Only a row whose process failed is written again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rota.fleet.kernel_job import KernelRow, make_row
from rota.version import __version__
from rota.workers.sqlite_file import SqliteFile

SETTING = "ROTA_STORE"
"""The environment variable that names the folder of verdicts."""


class FleetRow(NamedTuple):
    """A row with the file that its kernel is from, as it was named."""

    file: str
    row: KernelRow

    @property
    def subject(self) -> str:
        return f"{self.file}:{self.row.kernel}" if self.row.kernel else self.file


class FleetRun(NamedTuple):
    """What was found by one run: all that it was asked for, in the order of files; `facts` are about machines."""

    rows: tuple[FleetRow, ...]
    place: str = ""
    ended: float = 0.0
    version: str = __version__
    number: int = 0
    facts: Mapping[str, Any] = MappingProxyType({})


class VerdictStore(SqliteFile):
    FILE = "verdicts.sqlite"
    TABLES = """
CREATE TABLE verdicts (
    key TEXT PRIMARY KEY, kernel TEXT NOT NULL, status TEXT NOT NULL, row TEXT NOT NULL, written REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (number INTEGER PRIMARY KEY, place TEXT NOT NULL, version TEXT NOT NULL, ended REAL NOT NULL);
CREATE TABLE members (
    run INTEGER NOT NULL, at INTEGER NOT NULL, file TEXT NOT NULL, key TEXT NOT NULL, row TEXT,
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
"""
    WHAT = "verdicts"
    MADE_BY = "`rota check FOLDER --store STORE` makes one"

    def put(self, *rows: KernelRow) -> None:
        """Write all rows or none."""
        values = [(row.key, row.kernel, row.status, json.dumps(row.data()), time.time()) for row in rows]
        with self._findings(), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", values)

    def rows(self, keys: Iterable[str]) -> dict[str, KernelRow]:
        """Rows of these keys, as far as they are there."""
        found = {}
        with self._findings():
            for key in keys:
                row = self._base.execute("SELECT row FROM verdicts WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = make_row(json.loads(row[0]))
        return found

    def record(self, run: FleetRun) -> int:
        """Keep what a run found; a row without a key is kept with the run."""
        with self._findings(), self._transaction():
            ended = (run.place, run.version, time.time())
            number = self._base.execute("INSERT INTO runs (place, version, ended) VALUES (?, ?, ?)", ended).lastrowid
            members = [
                (number, at, each.file, each.row.key, None if each.row.key else json.dumps(each.row.data()))
                for at, each in enumerate(run.rows)
            ]
            self._base.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?)", members)
        self.say(**{_about(number): dict(run.facts)})
        return number or 0

    def last_run(self, place: str | None = None) -> FleetRun | None:
        """The last one, or the last one of a place; None if there is none."""
        where, given = ("", ()) if place is None else (" WHERE place = ?", (place,))
        with self._findings():
            found = self._base.execute(
                f"SELECT number, place, version, ended FROM runs{where} ORDER BY number DESC LIMIT 1",  # noqa: S608  # fixed
                given,
            ).fetchone()
            if found is None:
                return None
            number, place, version, ended = found
            query = (
                "SELECT members.file, coalesce(members.row, verdicts.row) FROM members"
                " LEFT JOIN verdicts ON verdicts.key = members.key WHERE run = ? ORDER BY at"
            )
            members: Sequence[tuple[str, str]] = self._base.execute(query, (number,)).fetchall()
        rows = tuple(FleetRow(file, make_row(json.loads(row))) for file, row in members)
        return FleetRun(rows, place, ended, version, number, self.recall(_about(number)) or {})


def _about(run: int | None) -> str:
    return f"run {run}"


def default_store() -> Path:
    """Where verdicts are kept if nobody says: the user's cache, or what the environment names."""
    if named := os.environ.get(SETTING):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "rota" / "verdicts"
