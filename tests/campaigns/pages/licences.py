"""Licences of what rota needs: takes the installed packages, gives a table of each with its version and licence.

    python -m benchmarks.licences [--extras hip,prove,trace]

Everything that rota depends on, directly or not, as pyproject.toml says; with `--extras` also what these bring.  Ends
with an error if one states no licence.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
_NAME = re.compile(r"[\w.-]+")
_CLASSIFIER = "License :: OSI Approved :: "


class Licensed(NamedTuple):
    """A package, and the licence that its metadata states."""

    name: str
    version: str
    licence: str
    why: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if a licence is unknown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", default="")
    extras = frozenset(filter(None, parser.parse_args(arguments).extras.split(",")))
    rows = sorted(needed("rota", extras), key=lambda row: row.name.lower())
    print("| package | version | licence | needed by |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {row.version} | {row.licence or 'not stated'} | {row.why} |")
    print(f"\n{len(rows)} packages, {sum(not row.licence for row in rows)} without a stated licence")
    return int(any(not row.licence for row in rows))


def needed(root: str, extras: frozenset[str]) -> Iterator[Licensed]:
    """Each package once, with the first that needs it; what isn't installed is left out."""
    seen = {root}
    queue = [(root, extras)]
    while queue:
        parent, wanted = queue.pop(0)
        for name in _requirements(parent, wanted):
            if name in seen:
                continue
            seen.add(name)
            try:
                found = distribution(name)
            except PackageNotFoundError:
                continue  # for another platform, or another Python
            yield Licensed(found.metadata["Name"], found.version, licence_of(found), parent)
            queue.append((name, frozenset()))


def licence_of(package: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of the free text."""
    metadata = package.metadata
    for expression in metadata.get_all("License-Expression") or ():
        return str(expression)
    classified = [
        each.removeprefix(_CLASSIFIER) for each in metadata.get_all("Classifier") or () if _CLASSIFIER in each
    ]
    if classified:
        return ", ".join(classified)
    text = "\n".join(metadata.get_all("License") or ()).strip()
    return text.splitlines()[0][:60] if text else ""


def _own(extras: frozenset[str]) -> list[str]:
    """What the checkout needs, whatever an installed version needed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in sorted(extras) for line in optional[extra])]


def _requirements(package: str, extras: frozenset[str]) -> Iterator[str]:
    for line in _own(extras) if package == "rota" else requires(package) or ():
        requirement, _, marker = line.partition(";")
        named = re.findall(r"extra == ['\"](\w+)['\"]", marker)
        if not named or extras & set(named):
            found = _NAME.match(requirement.strip())
            if found is not None and found[0].lower() != package:
                yield found[0].lower()
