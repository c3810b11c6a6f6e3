"""No file of the repository names a folder of somebody's machine."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}

# An absolute path into a home, work or scratch folder; not the same letters inside a URL or a relative path.
# The folder names are joined here so that this file doesn't match itself.
FOLDERS = ("home", "root", "tmp", "work", "Users")
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:" + "|".join(FOLDERS) + r")/")


def _repository_files() -> Iterator[Path]:
    """Tracked files, and new ones that aren't ignored: a mistake should show before it is committed."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    files = (ROOT / name for name in listing.stdout.split("\0") if name)
    return (file for file in files if file.is_file())


def _text(file: Path) -> str:
    """What the file says, unpacked; nothing if it isn't text."""
    content = UNPACK.get(file.suffix, bytes)(file.read_bytes())
    try:
        return "" if b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git lists the files")
def test_no_file_names_a_machine_path() -> None:
    hits = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in _repository_files()
        for number, line in enumerate(_text(file).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert hits == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_pattern_finds_a_machine_path(folder: str) -> None:
    path = f"/{folder}/x"
    assert MACHINE_PATH.search(path)
    assert MACHINE_PATH.search(f'open("{path}")')
    assert MACHINE_PATH.search(f"file://{path}") is None
    assert MACHINE_PATH.search(f"https://example.org{path}") is None
    assert MACHINE_PATH.search(f"src{path}") is None
