"""Two trees of rota that should do the same.

    python -m benchmarks.same_behaviour BEFORE AFTER [--only PART] [--kernels] [--steps N] [--save FILE]

BEFORE and AFTER are checkouts, or files of answers that --save wrote.  Both are asked the same questions through what
doesn't move when modules do, the command and the public names:

- `surface`: public names, their kinds and signatures;
- `emit`: every shipped kernel in every form, with several settings of whole kernels, without comments;
- `schedule`: every shipped kernel as a document, without seconds, lines of source, and reasons in words;
- `zoo`: the loops of `tests.emit.kernels`, as HIP, without comments;
- `verdict`, with `--kernels`: status, codes and severities for each kernel of the shared folder, proved within a
  number of steps, which is the same on every machine.  Wording may differ.

Prints each answer that differs and how many were compared; exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.campaigns.shared_folder import shared_folder

FORMS = ("hip", "kernel", "launcher", "gluon", "flydsl", "mojo", "skeleton")
WHOLE = (
    (),
    ("output=bf16", "epilogue=alpha,row_scale,column_scale,column_bias,relu,beta"),
    ("output=fp32", "epilogue=gelu", "group=1"),
    ("output=fp32", "epilogue=row_scale,gated_silu"),
    ("output=f16", "epilogue=row_bias,gelu_tanh", "xcds=1"),
)
WORDS = frozenset({"seconds", "source", "message", "role", "reason", "fixes", "evidence", "obligations", "assumptions"})
PYTHON = frozenset({"gluon", "flydsl", "mojo"})
SETTINGS = ((), ("instructions=false",), ("instructions=true",))
COMMENTS = {
    "c": re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL),
    "python": re.compile(r"^\s*#[^\n]*\n|  #[^\n]*|^\s*\"\"\".*?\"\"\"\n", re.DOTALL | re.MULTILINE),
}
COMMAND = "import sys; from rota.cli.main import main; main(sys.argv[1:], prog_name='rota')"
SURFACE = """
import inspect, json, rota, rota.pipeline
def told(each):
    if inspect.isclass(each):
        return ["class", *sorted(name for name in dir(each) if not name.startswith("_"))]
    try:
        return [type(each).__name__, str(inspect.signature(each)).replace("rota.", "")]
    except (TypeError, ValueError):
        return [type(each).__name__]
found = {}
for module in (rota, rota.pipeline):
    for name in sorted(module.__all__):
        signature = [each.rpartition(".")[2] if each.startswith("<") else each for each in told(getattr(module, name))]
        found[f"{module.__name__}.{name}"] = signature
print(json.dumps(found))
"""
ZOO = """
import json
from rota.emit.gemm.hip_gemm import emit_gemm
from tests.emit.kernels import ZOO
found = {}
for name, make in ZOO.items():
    compiled, geometry = make()
    found[name] = emit_gemm(compiled, geometry)
print(json.dumps(found))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", default="", help="questions that contain this text")
    parser.add_argument("--kernels", action="store_true", help="judge the kernels of the shared folder too")
    parser.add_argument(
        "--steps", type=int, default=40_000, help="for the proof of a kernel; the command's own is 150,000"
    )
    parser.add_argument("--save", type=Path, help="write what AFTER answers to this file, as it answers")
    options = parser.parse_args(arguments)
    before, after = (
        _load(tree, options.only)
        if tree.is_file()
        else dict(answers(tree.resolve(), options.only, kernels=options.kernels, steps=options.steps, save=save))
        for tree, save in ((options.before, None), (options.after, options.save))
    )
    different = [name for name in before | after if before.get(name) != after.get(name)]
    for name in different:
        print(f"DIFFERS {name}: {before.get(name, 'missing')} and {after.get(name, 'missing')}")
    parts = sorted({name.partition(" ")[0] for name in before})
    for part in parts:
        of_part = [name for name in before if name.startswith(f"{part} ")]
        print(f"{part}: {len(of_part)} compared, {sum(name in different for name in of_part)} differ")
    return 1 if different else 0


def answers(root: Path, only: str, *, kernels: bool, steps: int, save: Path | None = None) -> Iterator[tuple[str, str]]:
    """What a tree answers to each question, in short; each answer is appended to `save` at once."""
    for name, answer in _ask(root, only, kernels=kernels, steps=steps):
        if save is not None:
            with save.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([name, answer]) + "\n")
        yield name, answer


def _load(saved: Path, only: str) -> dict[str, str]:
    found = dict(json.loads(line) for line in saved.read_text("utf-8").splitlines())
    return {name: answer for name, answer in found.items() if only in name.partition(" ")[0]}


def _ask(root: Path, only: str, *, kernels: bool, steps: int) -> Iterator[tuple[str, str]]:
    if only in "surface":
        for name, signature in json.loads(_run(root, "-c", SURFACE)).items():
            yield f"surface {name}", json.dumps(signature)
    if only in "zoo":
        for name, text in json.loads(_run(root, "-c", ZOO)).items():
            yield f"zoo {name}", _digest(COMMENTS["c"].sub("", text))
    if only in "emit schedule":
        yield from _emit(root, only)
    if kernels and only in "verdict":
        folder = shared_folder("kernels")
        for file in sorted(path for path in folder.rglob("*") if path.suffix in {".hsaco", ".co"}):
            yield f"verdict {file.relative_to(folder)}", _judge(root, file, steps)


def _emit(root: Path, only: str) -> Iterator[tuple[str, str]]:
    names = [line.split()[0] for line in _rota(root, "kernels").splitlines() if line]
    for name, settings in itertools.product(names, SETTINGS):
        chosen = [word for each in settings for word in ("--set", each)]
        for form in FORMS if only in "emit" else ():
            for asked in WHOLE if form in {"kernel", "launcher"} else ((),):
                words = [word for each in asked for word in ("--with", each)]
                text = _rota(root, "emit", name, *chosen, "--form", form, *words)
                text = COMMENTS["python" if form in PYTHON else "c"].sub("", text)
                yield f"emit {name} {' '.join(settings)} {form} {' '.join(asked)}", _digest(text)
        if only in "schedule":
            text = _rota(root, "emit", name, *chosen, "--form", "json")
            if not text.startswith("exit "):
                text = json.dumps(_without_words(json.loads(text)))
            yield f"schedule {name} {' '.join(settings)}", _digest(text)


def _without_words(value: object) -> object:
    """A document without seconds, lines of source, and what only says in words why an entry is there."""
    if isinstance(value, dict):
        return {key: _without_words(each) for key, each in value.items() if key not in WORDS}
    return [_without_words(each) for each in value] if isinstance(value, list) else value


def _judge(root: Path, file: Path, steps: int) -> str:
    """Status, codes and severities: what doesn't change with the wording."""
    text = _rota(root, "check", str(file), "--json", "--steps", str(steps))
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return _digest(text)
    kept: list[object] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            kept.extend(value[key] for key in ("status", "code", "severity", "kernel") if key in value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(each)

    look(found)
    return f"{found.get('ok')} {len(kept)} {_digest(json.dumps(kept))}"


def _rota(root: Path, *words: str) -> str:
    return _run(root, "-c", COMMAND, *words, strict=False)


def _run(root: Path, *words: str, strict: bool = True) -> str:
    # Each tree keeps what its searches found to itself, so that a kernel is scheduled once per tree.
    cache = Path(tempfile.gettempdir()) / f"rota-same-{os.getpid()}" / hashlib.sha256(bytes(root)).hexdigest()[:8]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "ROTA_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=strict, cwd=root
    )
    codes = re.findall(r"\b(?:error|warning|note)\[([A-Z]\d+)\]", done.stderr)
    return done.stdout if done.returncode == 0 or done.stdout else f"exit {done.returncode} {codes}"


def _digest(text: str) -> str:
    return text if text.startswith("exit ") else hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
