"""Tables of rows as Parquet files, on a disk or an object store.

A place is whatever fsspec opens: a folder, s3://bucket/path, gs://bucket/path, memory://path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rota.errors import ToolchainError, TuneError


def write_parquet(tables: Mapping[str, Iterable[Mapping[str, Any]]], place: str) -> list[str]:
    """One file for each table; returns their names."""
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
        for name, rows in tables.items():
            path = f"{root.rstrip('/')}/{name}.parquet"
            with files.open(path, "wb") as out:
                parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), out)
            written.append(f"{place.rstrip('/')}/{name}.parquet")
    except (OSError, ValueError, ImportError) as error:
        raise TuneError.of("S201", f"{place} can't be written: {error}") from error
    return written
