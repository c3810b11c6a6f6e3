"""Objects out of the history of a repository that is not part of the project, read with git.

`ROTA_HISTORY` names its git directory; this is the only place that asks for it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SETTING = "ROTA_HISTORY"


def history_folder() -> Path | None:
    """The git directory that the setting names, if it names one."""
    folder = os.environ.get(SETTING)
    return Path(folder) if folder else None


def read_version(history: Path, commit: str, path: str) -> bytes:
    """A file as a commit has it."""
    return _git(history, "cat-file", "blob", f"{commit}:{path}")


def list_objects(history: Path, folder: str, commit: str = "HEAD") -> list[str]:
    """The paths of the code objects below a folder, as a commit has them, in git's order."""
    names = _git(history, "ls-tree", "-r", "--name-only", "-z", commit, "--", folder).decode().split("\0")
    return [name for name in names if name.endswith((".co", ".hsaco"))]


def _git(history: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(history), *arguments], capture_output=True, check=True).stdout
