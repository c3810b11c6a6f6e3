"""Licences of what rota needs: takes the installed packages, gives a table of each with its version and licence.

    python -m benchmarks.licences [--extras hip,prove,trace] [--sbom FILE]

Everything that rota depends on, directly or not, as pyproject.toml says; with `--extras` also what these bring.
`--sbom` writes the same as a bill of materials, in CycloneDX 1.6. Ends with an error if a package states no licence,
or isn't installed and so can't be read.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rota.version import __version__

ROOT = Path(__file__).parents[3]
NOT_STATED = {"name": "rota:licence", "value": "not stated"}
"""The property of a component whose metadata states no licence."""
_CLASSIFIER = "License :: OSI Approved :: "


class Licence(NamedTuple):
    """What metadata states: an SPDX expression, or the words of a classifier or of free text."""

    text: str
    is_expression: bool


class Package(NamedTuple):
    """An installed package, the packages that it needs, and the first one that needs it."""

    name: str
    version: str
    licence: Licence
    why: str
    needs: tuple[str, ...]


class Needed(NamedTuple):
    """All that rota needs: what is installed, by normalized name, and the names of what isn't."""

    direct: tuple[str, ...]
    packages: Mapping[str, Package]
    missing: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if a licence is unknown, or a package is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", default="")
    parser.add_argument("--sbom", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    extras = frozenset(filter(None, given.extras.split(",")))
    needed = find_needed(extras)
    rows = [needed.packages[name] for name in sorted(needed.packages)]
    print("| package | version | licence | needed by |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {row.version} | {row.licence.text or 'not stated'} | {row.why} |")
    unknown = sum(not row.licence.text for row in rows)
    print(f"\n{len(rows)} packages, {unknown} without a stated licence")
    if needed.missing:
        print(f"not installed, and so not listed: {', '.join(needed.missing)}")
    if given.sbom is not None:
        document = describe_materials(needed, extras)
        given.sbom.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return int(bool(unknown or needed.missing))


def find_needed(extras: frozenset[str]) -> Needed:
    """Each package once, breadth first, so that `why` is the nearest package that needs it."""
    project = _read_project()
    optional = project["optional-dependencies"]
    own = [*project["dependencies"], *(line for extra in sorted(extras) for line in optional[extra])]
    direct = _select(own, extras)
    packages: dict[str, Package] = {}
    missing: list[str] = []
    asked: dict[str, frozenset[str]] = {}
    queue = [("rota", name, wanted) for name, wanted in direct.items()]
    while queue:
        parent, name, wanted = queue.pop(0)
        known = asked.get(name)
        if known is not None and wanted <= known:
            continue
        asked[name] = wanted | (known or frozenset())
        try:
            found = distribution(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        below = {each: more for each, more in _select(requires(name) or (), asked[name]).items() if each != name}
        why = packages[name].why if name in packages else parent
        packages[name] = Package(found.metadata["Name"], found.version, licence_of(found), why, tuple(sorted(below)))
        queue.extend((name, each, more) for each, more in below.items())
    return Needed(tuple(sorted(direct)), packages, tuple(sorted(set(missing))))


def licence_of(package: Distribution) -> Licence:
    """The SPDX expression, else the classifiers, else the first line of the free text."""
    metadata = package.metadata
    for expression in metadata.get_all("License-Expression") or ():
        return Licence(str(expression), is_expression=True)
    classified = [
        each.removeprefix(_CLASSIFIER) for each in metadata.get_all("Classifier") or () if _CLASSIFIER in each
    ]
    if classified:
        return Licence(", ".join(classified), is_expression=False)
    text = "\n".join(metadata.get_all("License") or ()).strip()
    return Licence(text.splitlines()[0][:60] if text else "", is_expression=False)


def describe_materials(needed: Needed, extras: frozenset[str]) -> dict[str, object]:
    """A CycloneDX 1.6 document: the same packages give the same bytes, so it has no time and no serial number."""
    names = sorted(needed.packages)
    refs = {name: package_url(name, needed.packages[name].version) for name in names}
    own = _component("rota", "rota", __version__, Licence(_read_project()["license"], is_expression=True))
    graph = {str(own["bom-ref"]): needed.direct} | {refs[name]: needed.packages[name].needs for name in names}
    properties = [
        {"name": "rota:extras", "value": ",".join(sorted(extras))},
        {"name": "rota:platform", "value": sys.platform},
        {"name": "rota:python", "value": default_environment()["python_version"]},
        *({"name": "rota:not-installed", "value": name} for name in needed.missing),
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own, "properties": properties},
        "components": [
            _component(name, package.name, package.version, package.licence)
            for name, package in ((name, needed.packages[name]) for name in names)
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": [refs[name] for name in needs if name in refs]} for ref, needs in graph.items()
        ],
    }


def package_url(name: str, version: str) -> str:
    """The purl of a package on PyPI."""
    return f"pkg:pypi/{canonicalize_name(name)}@{quote(version, safe='')}"


def holds(marker: str, extras: frozenset[str]) -> bool:
    """True if this interpreter installs a requirement with this marker, where `extras` are asked for."""
    return any(Marker(marker).evaluate({"extra": extra}) for extra in sorted(extras) or ("",))


def _component(ref_name: str, name: str, version: str, licence: Licence) -> dict[str, object]:
    url = package_url(ref_name, version)
    stated: dict[str, object]
    if not licence.text:
        stated = {"properties": [NOT_STATED]}
    elif licence.is_expression:
        stated = {"licenses": [{"expression": licence.text}]}
    else:
        stated = {"licenses": [{"license": {"name": licence.text}}]}
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, **stated}


def _read_project() -> dict[str, Any]:
    """What the checkout says of rota, whatever an installed version said."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _select(lines: Sequence[str], extras: frozenset[str]) -> dict[str, frozenset[str]]:
    """The requirements that apply here, by normalized name, each with the extras that it asks for."""
    selected: dict[str, frozenset[str]] = {}
    for each in map(Requirement, lines):
        if each.marker is None or holds(str(each.marker), extras):
            name = canonicalize_name(each.name)
            selected[name] = selected.get(name, frozenset()) | frozenset(map(canonicalize_name, each.extras))
    return selected
