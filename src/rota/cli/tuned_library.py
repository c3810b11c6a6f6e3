"""The kernels of a tuned library: takes its folder, writes every distinct kernel, its launcher and the header."""

from __future__ import annotations

from pathlib import Path

from rota.cli.output import give, write
from rota.cli.progress import progress


def emit_library(library: Path, output: Path) -> None:
    """Write the files; every schedule is proved again before."""
    from rota.tune.emitted_library import library_files
    from rota.tune.tune_library import library_in

    found = library_in(library)
    output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    with progress(f"writing the kernels of {library.name}"):
        for name, text in library_files(found):
            write(output / name, text)
            written.append(str(output / name))
    give("\n".join(written), {"library": str(library), "written": written})
