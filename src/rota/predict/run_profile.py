"""Profiles: takes a calibration, keeps it under a name, gives it back to predictions of the same device and type.

They are small JSON files in the folder that `ROTA_PROFILES` names, else in the user's configuration.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from rota.errors import Finding, MeasureError, did_you_mean
from rota.predict.calibrate import Calibration
from rota.predict.predict_problem import Correction
from rota.predict.tiled_gemm import TiledGemm

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_FACTORS = ("start", "loop", "memory")


def folder() -> Path:
    """Where profiles are kept."""
    chosen = os.environ.get("ROTA_PROFILES")
    return Path(chosen) if chosen else Path.home() / ".config" / "rota" / "profiles"


def keep(found: Calibration, kernel: TiledGemm, source: str) -> Path:
    """Write a profile; one of that name is replaced."""
    name = found.correction.name
    if not _NAME.fullmatch(name):
        raise _unusable(f"{name!r:.60} can't be a profile's name: letters, digits, and . _ - between them")
    path = folder() / f"{name}.json"
    data = {
        "format": FORMAT,
        "device": kernel.device.name,
        "type": kernel.element,
        "kernel": kernel.name,
        "tile": list(kernel.tile),
        "runs": found.correction.runs,
        **{factor: getattr(found.correction, factor) for factor in _FACTORS},
        "error_before": found.error_before,
        "error_after": found.error_after,
        "source": source,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=2) + "\n")
    except OSError as error:
        raise _unusable(f"profile {name} can't be written: {error.strerror or error}") from error
    return path


def correction_named(name: str, kernel: TiledGemm) -> Correction:
    """What a profile says about a kernel, if it is about its device and type."""
    path = folder() / f"{name}.json"
    known = sorted(each.stem for each in folder().glob("*.json")) if folder().is_dir() else []
    if not _NAME.fullmatch(name) or name not in known:
        raise _unusable(f"no profile is named {name!r:.60}", *did_you_mean(name, known), "`rota calibrate` makes one")
    data = _read(path, name)
    own = (kernel.device.name, kernel.element)
    if (data.get("device"), data.get("type")) != own:
        raise _unusable(
            f"profile {name} is about {data.get('type')} on {data.get('device')}, {kernel.name} multiplies {own[1]} on "
            f"{own[0]}",
            "make a profile from runs of that type on that device",
        )
    return Correction(name, data["runs"], *(float(data[factor]) for factor in _FACTORS))


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise _unusable(f"profile {name} can't be read: {error}") from error
    whole = isinstance(data, dict) and data.get("format") == FORMAT and isinstance(data.get("runs"), int)
    if not whole or not all(_is_factor(data.get(factor)) for factor in _FACTORS):
        raise _unusable(f"profile {name} is not what `rota calibrate` writes", "make it again")
    return dict(data)


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _unusable(message: str, *fixes: str) -> MeasureError:
    return MeasureError(Finding(code="M205", message=message, fixes=fixes))
