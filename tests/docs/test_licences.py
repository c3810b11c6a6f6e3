"""Every dependency of rota states a licence, the list has them all, and the bill of materials is a CycloneDX one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rota.version import __version__
from tests.campaigns.pages import licences
from tests.campaigns.pages.licences import Licence, Needed, Package

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

PURL = re.compile(r"pkg:pypi/(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)@(?P<version>[\w.~%-]+)")


def test_what_rota_needs_is_listed_with_a_licence(capsys: pytest.CaptureFixture[str]) -> None:
    assert licences.main([]) == 0
    listed = {line.split(" | ")[0].removeprefix("| ").lower() for line in capsys.readouterr().out.splitlines()}
    assert {"ortools", "click", "jinja2", "msgpack", "numpy", "pyelftools", "markupsafe"} <= listed
    assert "pytest" not in listed


def test_the_bill_of_materials_has_what_the_format_requires(tmp_path: Path) -> None:
    assert licences.main(["--extras", "hip", "--sbom", str(tmp_path / "sbom.json")]) == 0
    document: dict[str, Any] = json.loads((tmp_path / "sbom.json").read_text("utf-8"))
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    own = document["metadata"]["component"]
    assert (own["name"], own["version"], own["licenses"]) == ("rota", __version__, [{"expression": "Apache-2.0"}])
    every = [own, *document["components"]]
    refs = [each["bom-ref"] for each in every]
    assert len(set(refs)) == len(refs)
    for each in every:
        assert each["type"] == "library"
        assert each["name"]
        found = PURL.fullmatch(each["purl"])
        assert found is not None
        assert found["name"] == re.sub(r"[-_.]+", "-", each["name"]).lower()
        assert found["version"] == each["version"]
        (stated,) = each["licenses"]
        assert stated.get("expression") or stated["license"]["name"]
    assert {"ortools", "ziglang", "MarkupSafe"} <= {each["name"] for each in every}
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert sorted(edges) == sorted(refs)
    assert {end for ends in edges.values() for end in ends} == set(refs) - {own["bom-ref"]}


def test_the_bill_of_materials_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for file in (first, second):
        licences.main(["--sbom", str(file)])
    assert first.read_bytes() == second.read_bytes()
    document = json.loads(first.read_text("utf-8"))
    assert "serialNumber" not in document
    assert "timestamp" not in document["metadata"]
    names = [each["bom-ref"] for each in document["components"]]
    assert names == sorted(names)


def test_a_licence_that_is_not_stated_is_named() -> None:
    silent = Package("Silent_One", "1.0+cpu", Licence("", is_expression=False), "rota", ())
    free = Package("free", "2", Licence("BSD License", is_expression=False), "rota", ("silent-one", "gone"))
    needed = Needed(("free", "gone"), {"free": free, "silent-one": silent}, ("gone",))
    document: Any = licences.describe_materials(needed, frozenset())
    first, second = document["components"]
    assert first["licenses"] == [{"license": {"name": "BSD License"}}]
    assert "licenses" not in second
    assert second["properties"] == [licences.NOT_STATED]
    assert second["purl"] == "pkg:pypi/silent-one@1.0%2Bcpu"
    assert {"name": "rota:not-installed", "value": "gone"} in document["metadata"]["properties"]
    assert [each["dependsOn"] for each in document["dependencies"]] == [[first["purl"]], [second["purl"]], []]


def test_a_package_that_is_not_installed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(licences, "_read_project", lambda: {"dependencies": ["no-such-package-of-rota>=1"]} | _OPTIONAL)
    assert licences.main([]) == 1
    assert "not installed, and so not listed: no-such-package-of-rota" in capsys.readouterr().out


_OPTIONAL: dict[str, object] = {"optional-dependencies": {}, "license": "Apache-2.0"}


@pytest.mark.parametrize(
    ("marker", "extras", "installed"),
    [
        ("python_version >= '3.11'", "", True),
        ('python_version < "3.9"', "", False),
        ("python_full_version < '4' and sys_platform != 'an older one'", "", True),
        ("(os_name == 'a' or os_name == 'b') or implementation_name in 'cpython pypy'", "", True),
        ("extra == 'test-full'", "", False),
        ("extra == 'Test_Full'", "test-full", True),
        ("extra == 'a' and python_version < '3.9'", "a", False),
        ("extra == 'b'", "a,b", True),
    ],
)
def test_a_marker_says_what_is_installed(marker: str, extras: str, installed: bool) -> None:
    assert licences.holds(marker, frozenset(filter(None, extras.split(",")))) is installed


def test_a_marker_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="python_version"):
        licences.holds("python_version + 1", frozenset())
