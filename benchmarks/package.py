"""The package as users get it: takes nothing, builds it, installs it without the checkout, and tries what README shows.

    python -m benchmarks.package [--pure]

Prints the sizes of sdist and wheel and how long the install took, for every Python that is found; ends with an error
if the wheel holds what it shouldn't, or if a command, README's first example or the tutorial, typed literally, fails
there.  With --pure it does the same with the wheel for platforms that have no native core.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tests.docs.blocks import blocks_of

ROOT = Path(__file__).parents[1]
COMMANDS = (
    ("--version",),
    ("kernels",),
    ("check", "ping_pong"),
    ("check", "gemm_small"),
    ("explain", "R102"),
    ("show", "gemm_small", "--html", "page.html"),
)


def main() -> None:
    """Build, look inside, install, try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pure", action="store_true", help="also the wheel without the native core")
    tried = [True, False] if parser.parse_args().pure else [False]
    with tempfile.TemporaryDirectory() as scratch:
        for pure in tried:
            python = _tried(Path(scratch, "pure" if pure else "native"), pure=pure)
        blocks = blocks_of((ROOT / "README.md").read_text("utf-8"))
        example = next(block.text for block in blocks if block.language == "python" and block.excuse is None)
        print("README's first example:")
        print(_run(str(python), "-c", example, at=Path(scratch)), end="")
        path = os.pathsep.join((str(python.parent), os.environ["PATH"]))
        print(_run(sys.executable, "-m", "tests.docs.tutorial", at=ROOT, PATH=path).splitlines()[-1])


def _tried(scratch: Path, *, pure: bool) -> Path:
    """The last interpreter that the wheel was installed for."""
    dist = scratch / "dist"
    scratch.mkdir()
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(dist), at=ROOT, ROTA_PURE="1" if pure else "")
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    stray = [name for name in names if not re.match(r"rota/|rota-[^/]*\.dist-info/", name)]
    if stray:
        raise SystemExit(f"the wheel holds {stray[:5]}")
    if any(name.endswith(".so") for name in names) is wheel.name.endswith("-none-any.whl"):
        raise SystemExit(f"{wheel.name} is not for what it holds")
    sizes = (f"{kind} {file.stat().st_size / 1024:,.0f} KiB" for kind, file in (("sdist", sdist), ("wheel", wheel)))
    print(f"{wheel.name}: {', '.join(sizes)}, {len(names)} files")
    for number, interpreter in enumerate(_interpreters()):
        python = _installed(wheel, scratch / f"venv{number}", interpreter)
        for command in COMMANDS:
            shown = _run(str(python.parent / "rota"), *command, at=scratch).splitlines()
            print(f"$ rota {' '.join(command)}\n{shown[0]}")
    return python


def _interpreters() -> list[str]:
    """Every Python that rota supports and this machine has; the running one last, which tries the rest."""
    own = f"python3.{sys.version_info.minor}"
    others = (f"python3.{minor}" for minor in range(11, 14))
    found = [path for name in others if name != own and (path := shutil.which(name)) is not None]
    return [*filter(_runs, found), sys.executable]


def _runs(interpreter: str) -> bool:
    """A name on the path may stand for a version that isn't switched on."""
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def _installed(wheel: Path, venv: Path, interpreter: str) -> Path:
    """The interpreter of a fresh environment that holds the wheel and what it needs."""
    started = time.perf_counter()
    _run(interpreter, "-m", "venv", str(venv), at=ROOT)
    python = venv / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    _run(str(python), "-m", "pip", "install", *quiet, "-c", str(ROOT / "constraints.txt"), str(wheel), at=ROOT)
    version = _run(str(python), "--version", at=ROOT).strip()
    print(f"installed for {version} with all it needs in {time.perf_counter() - started:.0f} s")
    return python


def _run(*command: str, at: Path, **environment: str) -> str:
    """What a command prints; nothing of the checkout is on its path."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ran = subprocess.run(command, cwd=at, env=clean | environment, check=False, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)[:200]}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.stdout


if __name__ == "__main__":
    main()
