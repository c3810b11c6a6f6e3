"""Code objects of others: all are read, and how much of their code is known; `benchmarks/decoding.py` has all of it."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.decoding import code_objects, tally
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.object_file import read_code_object
from rota.isa.binary.toolchain import find_objdump
from rota.isa.code.misfit import told_otherwise
from tests.isa.malformed import campaign
from tests.shared import shared

LEAST = {"compiled": 94.0, "aiter": 90.0}  # percent, of what is drawn here
DRAWN = 8
SMALL = 12_000  # bytes
DAMAGED = 200


@pytest.mark.parametrize(("folder", "count"), [("compiled", 106), ("aiter", 75)])
def test_every_code_object_is_read(folder: str, count: int) -> None:
    paths = code_objects(shared(f"kernels/{folder}"))
    assert len(paths) == count
    for path in paths:
        for facts in read_kernels(path.read_bytes()):
            assert facts.arch in path.name
            assert facts.entry is not None
            assert facts.unnoted == ()


@pytest.mark.parametrize("folder", LEAST)
def test_what_is_known_of_some(folder: str) -> None:
    paths = [path for path in code_objects(shared(f"kernels/{folder}")) if path.stat().st_size < 10 * SMALL]
    result = tally(sorted(Random(13).sample(paths, DRAWN)))
    assert result.unread == []
    assert result.instructions > 1000
    assert result.share >= LEAST[folder], result.unknown.most_common(5)


def test_what_is_not_known_is_counted_by_name() -> None:
    result = tally([shared("kernels/aiter/gfx942__topk_per_row_decode__asm_top_k_per_row_decode.co")])
    assert result.unread == []
    assert result.instructions == sum(result.mnemonics.values())
    assert result.instructions - result.known == sum(result.unknown.values())


def test_hand_written_descriptors_agree_with_notes_and_instructions() -> None:
    paths = [path for path in code_objects(shared("kernels/aiter")) if path.stat().st_size < SMALL]
    for path in Random(5).sample(paths, 4):
        code = read_code_object(path.read_bytes(), find_objdump())
        for facts in code.kernels:
            assert told_otherwise(facts, code.instructions(facts.name)) == [], path.name


def test_damaged_code_objects_end_in_a_finding_or_are_read() -> None:
    paths = [path for path in code_objects(shared("kernels")) if path.stat().st_size < SMALL]
    result = campaign(paths, range(DAMAGED))
    assert (result.cases, result.defects) == (DAMAGED, [])
    assert result.codes["T103"] > DAMAGED // 8
    assert result.codes.keys() <= {"T103", "I101", "I102", "I111", "I132", "read"}
