"""Every dependency of rota states a licence, and the list has them all."""

from __future__ import annotations

import pytest

from tests.campaigns.pages import licences

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself


def test_what_rota_needs_is_listed_with_a_licence(capsys: pytest.CaptureFixture[str]) -> None:
    assert licences.main([]) == 0
    listed = {line.split(" | ")[0].removeprefix("| ").lower() for line in capsys.readouterr().out.splitlines()}
    assert {"ortools", "click", "jinja2", "msgpack", "numpy", "pyelftools", "markupsafe"} <= listed
    assert "pytest" not in listed
