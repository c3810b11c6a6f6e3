"""Registries: every name of rota's own leads somewhere, and of two packages with one name neither is taken."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from rota.emit.forms import EMITTERS
from rota.errors import DeclarationError, Finding
from rota.kernels.catalogue import KERNELS, kernel_named
from rota.kernels.kernel import Kernel
from rota.order.acyclic.greedy import SCHEDULERS
from rota.registry import Registry
from rota.view.page import VIEWS
from tests.wording.golden import worded

ALL: tuple[Registry[Any], ...] = (EMITTERS, KERNELS, SCHEDULERS, VIEWS)


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.group)
def test_every_name_of_rotas_own_is_there(registry: Registry[Any]) -> None:
    for name in registry.own:
        assert registry.lacks(registry.named(name)) is None, name
    assert set(registry.names()) >= set(registry.own)


def test_a_shipped_kernel_is_called_by_its_name() -> None:
    for name in KERNELS.own:
        kernel = KERNELS.named(name)
        assert isinstance(kernel, Kernel)
        assert kernel.name == name == kernel_named(name).name


def register(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str]) -> None:
    found = EntryPoints(EntryPoint(name, value, "rota.emitters") for name, value in entries)
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: found.select(group=group))


def refusal(name: str) -> Finding:
    with pytest.raises(DeclarationError) as caught:
        EMITTERS.named(name)
    return worded(caught.value.findings[0])


def test_two_packages_with_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("csv", "builtins:str"), ("csv", "builtins:repr"))
    finding = refusal("csv")
    assert finding.code == "D105"
    assert [value for _, value in finding.evidence] == ["builtins:str", "builtins:repr"]


def test_one_package_that_is_found_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("csv", "builtins:str"), ("csv", "builtins:str"))
    assert EMITTERS.named("csv") is str


def test_rotas_own_name_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("json", "builtins:str"))
    assert EMITTERS.named("json") is not str
    assert EMITTERS.names()["json"] is None


def test_what_cannot_be_called_is_no_emitter(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("csv", "sys:maxsize"))
    refusal("csv")
