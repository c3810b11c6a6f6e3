"""`rota report`: the verdicts of a store as static pages and tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.cli.output import give, json_option, tell, write_files
from rota.errors import CODES, ToolchainError

if TYPE_CHECKING:
    from rota.fleet.verdict_pages import Adjudication


@click.command(
    epilog="\b\nExamples:\n  rota report verdicts -o site\n  rota report verdicts --known known.toml -o site"
)
@click.argument("store", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="The pages' folder."
)
@click.option(
    "--known",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What people found out about causes: a TOML file with tables [[cause]].",
)
@json_option
def report(*, store: Path, output: Path, known: Path | None) -> None:
    """Write the verdicts of the last run in STORE as pages.

    STORE is a folder in which `rota check FOLDER --store STORE` keeps verdicts.  The pages need no server and no other
    file: index.html with a table of all kernels, and a page for each kernel with findings.  verdicts.csv, and
    verdicts.parquet where pyarrow is installed, have the same table for programs.  The same verdicts give the same
    bytes; SHA256SUMS has their digests.  How long the run took is in times.csv and run.json alone.

    A [[cause]] of --known has files (patterns), code, ends (how the instructions of both ends begin), says (public fix,
    read by hand, false alarm or disputed), text, and source, a link.
    """
    from rota.fleet.verdict_pages import SUMS, VerdictSite, sum_files
    from rota.fleet.verdict_store import VerdictStore
    from rota.workers.parquet import write_parquet

    with VerdictStore(store) as opened:
        run = opened.last_run()
    if run is None:
        raise click.UsageError(f"{store} holds no run; `rota check FOLDER --store {store}` makes one")
    site = VerdictSite(run, () if known is None else _read_adjudications(known))
    pages = site.build()
    write_files(output, pages.items())
    files = {name: text.encode() for name, text in pages.items()}
    written = ["index.html", "verdicts.csv"]
    try:
        write_parquet({"verdicts": site.table()}, str(output))
        written.append("verdicts.parquet")
        files[written[-1]] = (output / written[-1]).read_bytes()
    except ToolchainError as error:  # the pages don't need it
        tell(str(error))
    sums = sum_files(files.items())
    write_files(output, [(SUMS, sums)])
    digests = {name: digest for digest, name in map(str.split, sums.splitlines())}
    kernels = sum(name.startswith("kernels/") for name in pages)
    lines = [f"{len(run.rows):,} kernels, {kernels:,} with a page of findings"]
    lines += [f"wrote {output / name}  sha256 {digests[name][:16]}" for name in written]
    give(
        "\n".join(lines),
        {
            "kernels": len(run.rows), "pages": kernels, "written": [str(output / name) for name in written],
            "digests": {name: digests[name] for name in written},
        },
    )  # fmt: skip


_LISTS, _TEXTS = frozenset({"files", "ends"}), frozenset({"code", "says", "text", "source"})
_NEEDED = frozenset({"files", "code", "says", "text"})


def _read_adjudications(file: Path) -> tuple[Adjudication, ...]:
    """What the file says; a usage error that says which cause is malformed, and how."""
    try:
        said = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file} can't be read: {error}") from error
    listed = said.get("cause")
    if said.keys() != {"cause"} or not isinstance(listed, list):
        raise click.UsageError(f"{file} holds something else than tables [[cause]]")
    found = []
    for number, each in enumerate(listed, 1):
        try:
            found.append(_make_adjudication(each))
        except ValueError as error:
            raise click.UsageError(f"{file}, cause {number}: {error}") from error
    return tuple(found)


def _make_adjudication(said: Mapping[str, Any]) -> Adjudication:
    from rota.fleet.verdict_pages import FIXED, SAID, Adjudication

    for name, value in said.items():
        texts = value if name in _LISTS and isinstance(value, list) else [value]
        if name not in _LISTS | _TEXTS or (name in _LISTS) is not isinstance(value, list):
            raise ValueError(f"{name} = {value!r:.80} isn't a field of a cause")
        if not all(isinstance(each, str) for each in texts):
            raise ValueError(f"{name} holds something that is no text")
    if missing := _NEEDED - said.keys():
        raise ValueError(f"it doesn't say {' and '.join(sorted(missing))}")
    if said["says"] not in SAID:
        raise ValueError(f"it says {said['says']!r:.80}; known are {', '.join(SAID)}")
    if said["says"] == FIXED and not said.get("source"):
        raise ValueError("it names no source of the public fix")
    if said["code"] not in CODES:
        raise ValueError(f"there is no finding {said['code']!r:.80}")
    return Adjudication(
        files=tuple(said["files"]), code=said["code"], ends=tuple(said.get("ends", ())), says=said["says"],
        text=said["text"], source=said.get("source", ""),
    )  # fmt: skip
