"""A repository made for a test: HIP kernels, their settings, and what a runner of GitHub does with rota's action."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
SETTINGS = 'device = "mi355x"\nbaseline = "known.json"\n\n[[kernels]]\nname = "tile_*"\nblock = "16x16"\n'
MEAN = """#include <hip/hip_runtime.h>

__global__ __launch_bounds__(256) void row_mean(const float* x, float* y, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[blockIdx.x * n + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  float all = 0;
  for (int i = 0; i < 256; i++) all += part[i];
  if (threadIdx.x == 0) y[blockIdx.x] = all / n;
}
"""
TILE = """#include <hip/hip_runtime.h>

extern "C" __global__ void tile_swap(const float* x, float* y) {
  __shared__ float tile[16][17];
  tile[threadIdx.y][threadIdx.x] = x[16 * threadIdx.y + threadIdx.x];
  y[16 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
"""It lacks its barrier, which the baseline knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    status: int
    lines: tuple[str, ...]

    def annotations(self, kind: str = "error") -> list[str]:
        return [line for line in self.lines if line.startswith(f"::{kind} ")]


class Repository:
    """A git repository with two kernels; one of them has a finding that its baseline knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in {"rota.toml": SETTINGS, "mean.hip": MEAN, "tile.hip": TILE, "known.json": ""}.items():
            (folder / name).write_text(text)
        (folder / "known.json").write_text('{"rota_baseline": 2, "known": []}')
        self.run("git", "init", "--quiet", "-b", "main")
        self.run("rota", "check", ".", "--write-baseline", "known.json")
        self.commit("add kernels")

    def run(self, *command: str, **more: str) -> Done:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "GITHUB_WORKSPACE": str(self.folder), **more}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return Done(status=done.returncode, lines=tuple((done.stdout + done.stderr).splitlines()))

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", message)

    def change(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert text.count(old) == 1
        (self.folder / file).write_text(text.replace(old, new))

    def act(self, action: Path = ROOT / "action.yml", *, install: bool = False, **inputs: str) -> Done:
        """What a runner does with a composite action: its steps in order, until one fails."""
        said: dict[str, Any] = yaml.safe_load(action.read_text("utf-8"))
        given = {name: each["default"] for name, each in said["inputs"].items()} | inputs
        done = Done(status=0, lines=())
        for step in said["runs"]["steps"]:
            if "Install" in step["name"] and not install:
                continue
            environment = {name: self._fill(text, given, action) for name, text in step.get("env", {}).items()}
            assert step["shell"] == "bash"
            # As GitHub's runner calls it: https://docs.github.com/actions/reference/workflow-syntax, "shell".
            more = self.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"], **environment)
            done = Done(status=more.status, lines=(*done.lines, *more.lines))
            if more.status:
                break
        return done

    @staticmethod
    def _fill(text: str, inputs: dict[str, str], action: Path) -> str:
        for name, value in inputs.items():
            text = text.replace(f"${{{{ inputs.{name} }}}}", value)
        text = text.replace("${{ github.action_path }}", str(action.parent))
        assert "${{" not in text
        return text
