"""Emitters by name: takes nothing, gives the registry of rota's own and those that installed packages register."""

from __future__ import annotations

from types import MappingProxyType

from rota.emit.emission import Emitter
from rota.registry import Registry

EMITTERS: Registry[Emitter] = Registry(
    what="emitter",
    group="rota.emitters",
    own=MappingProxyType(
        {
            "hip": "rota.emit.forms:hip",
            "kernel": "rota.emit.forms:kernel",
            "launcher": "rota.emit.forms:launcher",
            "skeleton": "rota.emit.forms:skeleton",
            "json": "rota.emit.forms:document",
            "gluon": "rota.languages.gluon_gemm:gluon",
            "flydsl": "rota.languages.flydsl_gemm:flydsl",
            "mojo": "rota.languages.mojo_gemm:mojo",
        }
    ),
    expected="a function that takes an Emission and gives text",
    lacks=lambda made: None if callable(made) else "can't be called",
)
