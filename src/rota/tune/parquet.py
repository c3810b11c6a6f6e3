"""Results of a tuned library as two Parquet files, on a disk or an object store.

A place is whatever fsspec opens: a folder, s3://bucket/path, gs://bucket/path, memory://path.
"""

from __future__ import annotations

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
                parquet.write_table(pa.Table.from_pylist(rows), out)
            written.append(f"{place.rstrip('/')}/{name}.parquet")
    except (OSError, ValueError, ImportError) as error:
        raise TuneError.of("S201", f"{place} can't be written: {error}") from error
    return written


def _points(library: TunedLibrary) -> list[dict[str, Any]]:
    return [
        {
            "key": row.key,
            "name": row.point.name,
            "device": row.point.device,
            "type": row.point.element,
            "tile": "x".join(map(str, row.point.tile)),
            "waves": row.point.waves,
            "status": row.status.value,
            "code": row.code,
            "message": row.message,
            "loop_clocks": row.facts.get("loop_clocks"),
            "matrix_clocks": row.facts.get("matrix_clocks"),
            "seconds": row.seconds,
            "attempts": row.attempts,
        }
        for row in library.rows
    ]


def _choices(library: TunedLibrary) -> list[dict[str, Any]]:
    return [
        {
            "device": table.device,
            "m": shape.m,
            "n": shape.n,
            "k": shape.k,
            "type": table.ranking.element,
            "out": shape.result,
            **{name: choice[name] for name in ("kernel", "split_k", "us", "basis", "near")},
        }
        for table in library.tables
        for shape, choice in table.choices.items()
    ]
