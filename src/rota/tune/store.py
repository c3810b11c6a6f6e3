"""The store: one SQLite file in a folder, which is the truth about a tuned library.

One process writes, under a lock; any number read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rota.tune.point import PointRow, make_row
from rota.workers.sqlite_file import SqliteFile

_TABLES = """
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


class Store(SqliteFile):
    FILE, LOCK = "library.sqlite", "library.lock"
    TABLES = _TABLES
    WHAT = "tuned library"
    MADE_BY = "`rota tune` makes one: -o names its folder"

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


def _values(row: PointRow) -> tuple[object, ...]:
    point, facts = json.dumps(row.point.data()), json.dumps(dict(row.facts))
    told = row.status.value, row.code, row.message, facts, row.answer, row.seconds, row.attempts
    return row.key, row.kind.value, row.point.name, point, *told, time.time()
