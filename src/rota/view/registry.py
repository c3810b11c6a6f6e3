"""Views by name: takes nothing, gives the registry of rota's own and those that installed packages register.

A view is a function of what is shown (`rota.view.show.Shown`), a compiled schedule and the scene of its predicted
steady state, that gives text.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from rota.registry import Registry

if TYPE_CHECKING:
    from rota.view.show import Shown

View: TypeAlias = "Callable[[Shown], str]"

VIEWS: Registry[View] = Registry(
    what="view",
    group="rota.views",
    own=MappingProxyType(
        {
            "text": "rota.view.show:Shown.__str__",
            "svg": "rota.view.show:Shown.svg",
            "html": "rota.view.show:Shown.html",
        }
    ),
    expected="a function that takes what is shown and gives text",
    lacks=lambda made: None if callable(made) else "can't be called",
)
