"""A plan as a folder: the host program in C++, the plan that it reads, the code objects, and what buffers hold."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from zlib import crc32

from rota.bench.bench_plan import BenchBuffer, BenchCase, BenchPlan, KernelLaunch

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$+-")
_NO_BYTES = "-"


def write_bench(plan: BenchPlan, *, back: str) -> dict[str, bytes]:
    """The files of the folder by name; `back` is the command that reads the results."""
    found = {each.name: each.code for each in plan.objects}
    for number, case in enumerate(plan.cases):
        found |= {_data_name(number, at): each.data for at, each in enumerate(case.buffers) if each.data is not None}
    found["plan.txt"] = "\n".join([*_list_lines(plan), ""]).encode()
    words = {
        "SUBJECT": ", ".join(case.name for case in plan.cases), "ARCH": plan.arch, "BACK": back,
        "OBJECTS": ", ".join(f"`{each.name}`" for each in plan.objects), "ROUNDS": str(plan.rounds),
        "FLUSH": str(plan.flush_bytes >> 20),
    }  # fmt: skip
    for name in ("bench.cpp", "Makefile", "README.md"):
        text = files("rota.bench").joinpath("host", f"{name}.txt").read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        found[name] = text.encode()
    return found


def _list_lines(plan: BenchPlan) -> Iterator[str]:
    """Each line a word that says what it is, and its values; `end` is the last one, so that a cut file is noticed."""
    yield f"plan {plan.subjects.digest}"
    yield f"arch {plan.arch}"
    yield f"rounds {plan.rounds}"
    yield f"seed {plan.seed}"
    yield f"flush {plan.flush_bytes}"
    for each in plan.objects:
        yield f"object {_encode(each.name)} {len(each.code)} {crc32(each.code):x} {each.digest}"
    for number, case in enumerate(plan.cases):
        yield from _list_case(number, case)
    yield "end"


def _list_case(number: int, case: BenchCase) -> Iterator[str]:
    yield f"case {_encode(case.name)}"
    for at, each in enumerate(case.buffers):
        yield f"buffer {each.size} {each.skew} {_describe_fill(_data_name(number, at), each)}"
    for candidate in case.candidates:
        about = "; ".join(map(str, candidate.launches))
        yield f"candidate {_encode(candidate.name)} {_encode(about)}"
        for launch in candidate.launches:
            yield from _list_launch(launch)


def _describe_fill(name: str, buffer: BenchBuffer) -> str:
    if buffer.scratch:
        return "scratch"
    if buffer.drawn is not None:
        return f"drawn {buffer.drawn.width} {b''.join(buffer.drawn.codes).hex()} {buffer.drawn.seed}"
    return "zeros" if buffer.data is None else f"data {name} {crc32(buffer.data):x}"


def _list_launch(launch: KernelLaunch) -> Iterator[str]:
    sizes = " ".join(map(str, (*launch.grid, *launch.block, launch.dynamic_lds)))
    yield f"launch {launch.obj} {_encode(launch.kernel)} {sizes} {launch.segment.hex() or _NO_BYTES}"
    for each in launch.pointers:
        yield f"pointer {each.offset} {each.buffer} {each.displacement}"


def _data_name(case: int, buffer: int) -> str:
    return f"case{case}_buffer{buffer}.bin"


def _encode(text: str) -> str:
    """One word: other characters as %XX for each byte."""
    return "".join(chr(each) if chr(each) in _PLAIN else f"%{each:02X}" for each in text.encode())
