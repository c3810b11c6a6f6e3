"""The command as a user types it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from click.testing import CliRunner, Result

from rota.cli.main import main


def rota(line: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, shlex.split(line), prog_name="rota")


def data(line: str, status: int = 0) -> Any:
    """What a command gives as JSON; nothing else may stand on stdout."""
    result = rota(f"{line} --json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)
