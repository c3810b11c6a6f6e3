"""What a project says once about its kernels: `[tool.rota]` in pyproject.toml, or a file rota.toml.

    device = "mi355x"
    fail-on = "required"

    [[kernels]]
    name = "gemm_*"
    block = "16x16"

The first entry of `kernels` whose patterns match a kernel and its file says what differs for it. The command line wins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from rota.errors import did_you_mean
from rota.prove.causes import EvidenceLevel

FILE, TABLE = "rota.toml", "pyproject.toml"
_LEVELS = frozenset(each.value.replace(" ", "-") for each in EvidenceLevel)
_WORDS = {
    "lds-reads": {"strict", "lenient"},
    "vmcnt": {"in-order", "any-order"},
    "fail-on": _LEVELS,
    "assume": {"lds-in-bounds"},
}  # fmt: skip
_KINDS: dict[str, tuple[type, ...]] = {
    "block": (int, str, list), "device": (str,), "fail-on": (str,), "lds-reads": (str,), "vmcnt": (str,),
    "assume": (list,), "steps": (int,), "seconds": (int, float), "extents": (list,), "ranges": (list,),
    "same": (list,), "where": (list,),
}  # fmt: skip
_PROJECT: dict[str, tuple[type, ...]] = {
    **_KINDS, "baseline": (str,), "store": (str,), "jobs": (int,), "timeout": (int, float), "build-dir": (str,),
    "compiler": (str,), "flags": (list,), "kernels": (list,),
}  # fmt: skip
_KERNEL: dict[str, tuple[type, ...]] = {**_KINDS, "name": (str,), "file": (str,)}
_TEXTS = frozenset({"flags", "extents", "ranges", "same", "where"})
_PATHS = ("baseline", "store", "build-dir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings of a project, and of some of its kernels; paths are from the folder of the file that says them."""

    file: Path | None = None
    settings: Mapping[str, Any]
    kernels: tuple[Mapping[str, Any], ...] = ()

    def settings_for(self, file: str, kernel: str = "") -> dict[str, Any]:
        """What is said about a kernel of a file; without a kernel, about the file."""
        own = next((each for each in self.kernels if _matches(each, self._shorten(file), kernel)), {})
        return {**self.settings, **{name: value for name, value in own.items() if name not in {"name", "file"}}}

    def _shorten(self, file: str) -> str:
        if self.file is None:
            return file
        path, root = Path(file).resolve(), self.file.parent.resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


NO_PROJECT = Project(settings={})


def _matches(entry: Mapping[str, Any], file: str, kernel: str) -> bool:
    in_file = "file" not in entry or fnmatchcase(file, entry["file"]) or fnmatchcase(Path(file).name, entry["file"])
    # Before a file is compiled, its kernels aren't known: only entries without a name are about it.
    return in_file and ("name" not in entry or (kernel != "" and fnmatchcase(kernel, entry["name"])))


def find_project(start: Path) -> Project:
    """The nearest file with settings, from a folder upwards; no settings if there is none."""
    for folder in (start.resolve(), *start.resolve().parents):
        for name in (FILE, TABLE):
            file = folder / name
            if file.is_file() and (said := _read(file)) is not None:
                return _project(file, said)
    return NO_PROJECT


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if file.name == TABLE:  # somebody else's file, which somebody else's tool complains about
            return None
        raise click.UsageError(f"{file} can't be read: {error}") from error
    if file.name == FILE:
        return said
    tool = said.get("tool", {}).get("rota")
    return tool if isinstance(tool, dict) else None


def _project(file: Path, said: Mapping[str, Any]) -> Project:
    settings = _check(file, said, _PROJECT, "")
    kernels = []
    for number, entry in enumerate(settings.pop("kernels", []), 1):
        where = f"kernels, entry {number}: "
        if not isinstance(entry, dict):
            raise click.UsageError(f"{file}: {where}a table is expected")
        kernels.append(_check(file, entry, _KERNEL, where))
    for name in _PATHS:
        if name in settings:
            settings[name] = file.parent / settings[name]
    return Project(file=file, settings=settings, kernels=tuple(kernels))


def _check(file: Path, said: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], where: str) -> dict[str, Any]:
    found = {}
    for name, value in said.items():
        if name not in known:
            raise click.UsageError(f"{file}: {where}{name!r} is no setting; {'; '.join(did_you_mean(name, known))}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise click.UsageError(f"{file}: {where}{name} is {value!r}, which is no {known[name][0].__name__}")
        for word in value if isinstance(value, list) and name != "kernels" else [value]:
            if name in _WORDS and word not in sorted(_WORDS[name]):  # a word that can't be hashed is none, either
                raise click.UsageError(f"{file}: {where}{name} is {word!r}; known: {', '.join(sorted(_WORDS[name]))}")
            if name in _TEXTS and not isinstance(word, str):
                raise click.UsageError(f"{file}: {where}{name} has {word!r}, which is no text")
        found[name] = value
    if "block" in found:
        from rota.cli.code_file import BlockType

        block = found["block"]
        text = "x".join(map(str, block)) if isinstance(block, list) else str(block)
        try:
            found["block"] = BlockType().convert(text, None, None)
        except click.BadParameter as error:
            raise click.UsageError(f"{file}: {where}{error.message}") from error
    return found
