"""Results of a tuned library as two Parquet files, on a disk or an object store.

A place is whatever fsspec opens: a folder, s3://bucket/path, gs://bucket/path, memory://path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rota.errors import ToolchainError, TuneError
from rota.tune.tune_library import TunedLibrary


def write_parquet(library: TunedLibrary, place: str) -> list[str]:
    """`points.parquet`, what became of every loop, and `choices.parquet`, the kernel of every shape."""
    try:
        import fsspec
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ToolchainError.of(
            "T301", f"Parquet files need the package {error.name}", fixes=("pip install 'rota[parquet]'",)
        ) from error
    written = []
    try:
        files, root = fsspec.core.url_to_fs(place)
        files.makedirs(root, exist_ok=True)
        for name, rows in (("points", _points(library)), ("choices", _choices(library))):
            path = f"{root.rstrip('/')}/{name}.parquet"
            with files.open(path, "wb") as out:
                parquet.write_table(pa.Table.from_pylist(list(rows)), out)
            written.append(f"{place.rstrip('/')}/{name}.parquet")
    except (OSError, ValueError, ImportError) as error:
        raise TuneError.of("S201", f"{place} can't be written: {error}") from error
    return written


def _points(library: TunedLibrary) -> Iterator[dict[str, Any]]:
    for row in library.rows:
        point = row.point
        about: dict[str, Any] = {"key": row.key, "name": point.name, "device": point.device, "type": point.element}
        about |= {"tile": "x".join(map(str, point.tile)), "waves": point.waves, "status": row.status.value}
        clocks = {name: row.facts.get(name) for name in ("loop_clocks", "matrix_clocks")}
        said = {"code": row.code, "message": row.message, **clocks, "seconds": row.seconds, "attempts": row.attempts}
        yield about | said


def _choices(library: TunedLibrary) -> Iterator[dict[str, Any]]:
    for table in library.tables:
        for shape, choice in table.choices.items():
            sides = {"m": shape.m, "n": shape.n, "k": shape.k, "type": table.ranking.element, "out": shape.result}
            chosen = {name: choice[name] for name in ("kernel", "split_k", "us", "basis", "near")}
            yield {"device": table.device, **sides, **chosen}
