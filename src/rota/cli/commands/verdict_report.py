"""`rota report`: the verdicts of a store as static pages and tables."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli.output import give, json_option, tell, write_files
from rota.errors import ToolchainError


@click.command(epilog="\b\nExamples:\n  rota report verdicts -o site")
@click.argument("store", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="The pages' folder."
)
@json_option
def report(*, store: Path, output: Path) -> None:
    """Write the verdicts of the last run in STORE as pages.

    STORE is a folder in which `rota check FOLDER --store STORE` keeps verdicts.  The pages need no server and no other
    file: index.html with a table of all kernels, and a page for each kernel with findings.  verdicts.csv, and
    verdicts.parquet where pyarrow is installed, have the same table for programs.
    """
    from rota.fleet.verdict_pages import build_site
    from rota.fleet.verdict_store import VerdictStore, table_of
    from rota.workers.parquet import write_parquet

    with VerdictStore(store) as opened:
        run = opened.last_run()
    if run is None:
        raise click.UsageError(f"{store} holds no run; `rota check FOLDER --store {store}` makes one")
    pages = build_site(run)
    write_files(output, pages.items())
    written = ["index.html", "verdicts.csv"]
    try:
        write_parquet({"verdicts": table_of(run)}, str(output))
        written.append("verdicts.parquet")
    except ToolchainError as error:  # the pages don't need it
        tell(str(error))
    kernels = sum(name.startswith("kernels/") for name in pages)
    lines = [f"{len(run.rows):,} kernels, {kernels:,} with a page of findings"]
    give(
        "\n".join([*lines, *(f"wrote {output / name}" for name in written)]),
        {"kernels": len(run.rows), "pages": kernels, "written": [str(output / name) for name in written]},
    )
