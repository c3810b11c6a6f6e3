"""What the extension ladder promises: ten lines in somebody else's package, and no line of rota is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.extension.package import install, rota
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # compiles, or starts commands

EMITTER = '''
def as_csv(asked):
    """Every entry of the program, a row each."""
    rows = [f"{entry.phase.value},{entry.time_slot},{entry.op.kind.word},{entry.op}" for entry in asked.program.entries]
    return "\\n".join(["phase,slot,kind,op", *rows])
'''

SCHEDULER = '''
from rota.order.acyclic.greedy import measured


class LastFirst:
    """Of the ops that could come next, the one that the author wrote last."""

    def order(self, problem):
        before, order = problem.body.predecessors(), []
        while len(order) < len(before):
            ready = [n for n in range(len(before)) if n not in order and set(before[n]) <= set(order)]
            order.append(max(ready, key=lambda n: (-problem.partition_of(n), n)))
        return measured(problem, tuple(order), "last first")
'''

DEVICE = """
from dataclasses import replace

from rota.targets.cdna4 import MI355X

CLOCK = MI355X.timing.clock._replace(value=1200, source="made up: half of the MI355X's")
SLOW = replace(MI355X, name="MI355S", timing=replace(MI355X.timing, clock=CLOCK))
"""

VIEW = '''
def stalls(shown):
    """How often each band stalls."""
    lines = [f"{band.name}: {len(band.stalls)} stalls" for band in shown.scene.bands]
    return "\\n".join([shown.scene.headline, *lines])
'''

FRONT_END = '''
from rota.program.entry import Effect, Place, Space
from rota.program.entry import Entry, Op, Work
from rota.program.kinds import KIND_NAMED
from rota.program.lowered import LoweredProgram, TileProduct, TileSum
from rota.program.kinds import Phase

TILES = [Place(Space.LDS, name) for name in "AB"]
A, B = (Place(Space.REGISTER, name) for name in "AB")
C = Place(Space.ACCUMULATOR, "")


class Words:
    """A GEMM in five words, and not a wait or barrier among them."""

    words = (("load", (), TILES[:1]), ("load", (), TILES[1:]), ("fragment", TILES[:1], (A,)),
             ("fragment", TILES[1:], (B,)), ("mma", (A, B), (C,)))  # fmt: skip

    def compile_for(self, machine):
        kernel = []
        for slot, (word, reads, writes) in enumerate(self.words):
            kind, work = KIND_NAMED[word], Work(1, 1024, "v_mfma_f32_16x16x32_bf16" if word == "mma" else "")
            counter, fetches = machine.counter_of(kind), -1 if word == "load" else None  # trip 1 starts at k = 1
            effect = Effect(kind=kind, counter=counter, tokens=1 if counter else 0, reads=tuple(reads),
                            writes=tuple(writes), fetches=fetches)  # fmt: skip
            kernel.append(Entry(op=Op(kind=kind, name=f"{word}{slot}", work=work), effect=effect, time_slot=slot,
                                phase=Phase.KERNEL))  # fmt: skip
        return LoweredProgram(name="words", machine=machine, semantics=TileSum(products=(TileProduct(C, (A, B)),),
                              grid=(1, 1)), prologue=(), kernel=tuple(kernel), epilogue=(), tiles_per_trip=1,
                              tiles_outside=0, waves=4, origin="in words")  # fmt: skip
'''


def test_an_emitter(tmp_path: Path) -> None:
    environment = install(tmp_path, EMITTER, emitters="csv=as_csv")
    result = rota(environment, "emit", "ping_pong", "--form", "csv")
    assert result.returncode == 0, result.stderr
    head, *rows = result.stdout.splitlines()
    assert head == "phase,slot,kind,op"
    assert any(row.startswith("KERNEL,") and ",mma," in row for row in rows)
    misspelt = rota(environment, "emit", "ping_pong", "--form", "cvs")
    assert misspelt.returncode == 2
    worded(misspelt.stderr)
    assert mentions(misspelt.stderr, "cvs", "csv")


def test_a_scheduler(tmp_path: Path) -> None:
    environment = install(tmp_path, SCHEDULER, schedulers="LAST_FIRST=LastFirst")
    result = rota(environment, "check", "ping_pong", "--set", "scheduling=LAST_FIRST", "--set", "max_globals=0")
    assert result.returncode == 0, result.stderr
    worded(result.stdout)


def test_a_device(tmp_path: Path) -> None:
    environment = install(tmp_path, DEVICE, targets="mi355s=SLOW")
    listed = rota(environment, "targets", "mi355s")
    assert listed.returncode == 0, listed.stderr
    assert "1200 MHz" in listed.stdout
    speeds = {}
    for device in ("mi355x", "mi355s"):
        shown = rota(environment, "show", "single_buffer", "--set", f"target.machine={device}", "--json")
        assert shown.returncode == 0, shown.stderr
        told = json.loads(shown.stdout)["prediction"]
        assert told["machine"] == device.upper()
        speeds[device] = told["ceiling_tflops"]
    assert speeds["mi355s"] == pytest.approx(speeds["mi355x"] / 2)


def test_a_view(tmp_path: Path) -> None:
    environment = install(tmp_path, VIEW, views="stalls=stalls")
    result = rota(environment, "show", "ping_pong", "--form", "stalls")
    assert result.returncode == 0, result.stderr
    headline, *bands = result.stdout.splitlines()
    assert headline.startswith("ping_pong · ")
    assert bands
    assert all(band.endswith(" stalls") for band in bands)


def test_a_front_end(tmp_path: Path) -> None:
    """It is repaired, proved, listed and drawn; asked for as a kernel by name, or in a file."""
    environment = install(tmp_path, FRONT_END, kernels="words=Words")
    strict = rota(environment, "check", "words", "--set", "sync=strict")
    assert strict.returncode == 1
    assert "error[R10" in strict.stdout
    for kernel in ("words", f"{tmp_path / 'somebody_elses.py'}:Words", "somebody_elses:Words"):
        result = rota(environment, "check", kernel)
        assert result.returncode == 0, result.stderr
        worded(result.stdout)
        worded(result.stdout.rstrip())
    listed = json.loads(rota(environment, "show", "words", "--listing", "--json").stdout)
    assert {"barrier", "wait_vm(0)"} <= {entry["op"] for entry in listed["kernel"]}
    assert "words  " in rota(environment, "kernels").stdout


def test_a_front_ends_program_is_predicted(tmp_path: Path) -> None:
    result = rota(install(tmp_path, FRONT_END, kernels="words=Words"), "show", "words")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("words · ")


BROKEN = """
raise RuntimeError("out of luck")
"""


@pytest.mark.parametrize(
    ("group", "line"),
    [
        ("emitters", ("emit", "ping_pong", "--form", "theirs")),
        ("schedulers", ("check", "ping_pong", "--set", "scheduling=theirs")),
        ("views", ("show", "ping_pong", "--form", "theirs")),
        ("kernels", ("check", "theirs")),
    ],
)
def test_a_package_that_is_broken_is_named(tmp_path: Path, group: str, line: tuple[str, ...]) -> None:
    environment = install(tmp_path, BROKEN, **{group: "theirs=anything"})
    result = rota(environment, *line)
    assert result.returncode == 1
    told = result.stdout + result.stderr
    assert "error[D105]" in told
    worded(told)
    assert "theirs" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("class K:\n    def compile_for(self, machine):\n        return 3\n", "D104"),
        ("class K:\n    compile_for = 3\n", "D104"),
    ],
)
def test_what_is_no_program_is_refused(tmp_path: Path, source: str, code: str) -> None:
    result = rota(install(tmp_path, source, kernels="k=K"), "check", "k")
    assert result.returncode == 1
    assert f"error[{code}]" in result.stdout
