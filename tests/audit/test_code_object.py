"""Code objects: what notes may leave out is unknown, what they have wrong is a finding, and damage is bounded."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import msgpack
import pytest
from elftools.elf.elffile import ELFFile

from rota.errors import RotaError, ToolchainError
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised
from tests.shared import shared
from tests.wording.golden import mentions

pytestmark = pytest.mark.thorough  # runs for seconds

SECTION_TABLE, SEGMENT_SIZE, SECTION_SIZE, SECTIONS = 40, 54, 58, 60  # where the ELF header has them
BYTES = (0x00, 0x01, 0x7F, 0x80, 0xDB, 0xDD, 0xDF, 0xFF)  # edges of fields, and MessagePack's longest lengths


@cache
def intact() -> bytes:
    source = 'extern "C" __attribute__((global)) void f(int* o, int n) { *o = n; }'
    return find_toolchain().compile(source, "gfx942").hsaco


def with_metadata(packed: bytes, hsaco: bytes | None = None) -> bytes:
    """The code object with other bytes in its metadata note, at most as many as it has."""
    changed = bytearray(hsaco or intact())
    (note,) = (
        note
        for segment in ELFFile(BytesIO(changed)).iter_segments("PT_NOTE")
        for note in segment.iter_notes()  # type: ignore[attr-defined]  # all segments of this kind have notes
    )
    at, size = note["n_offset"], note["n_descsz"]
    assert len(packed) <= size
    struct.pack_into("<I", changed, at + 4, len(packed))
    start = at + 12 + len(b"AMDGPU\0\0")
    changed[start : start + size] = packed.ljust(size, b"\0")
    return bytes(changed)


def with_notes(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The code object with other notes of its kernel; an argument less makes room for them."""
    segments = ELFFile(BytesIO(intact())).iter_segments("PT_NOTE")
    (packed,) = (note["n_descdata"] for segment in segments for note in segment.iter_notes())  # type: ignore[attr-defined]
    notes = msgpack.unpackb(packed)
    (kernel,) = notes["amdhsa.kernels"]
    kernel[".args"].pop()
    change(kernel)
    return with_metadata(msgpack.packb(notes))


def without(key: str) -> bytes:
    return with_notes(lambda kernel: kernel.pop(key))


def test_every_code_object_that_others_shipped_is_read() -> None:
    """73 of the hand-written ones count no spills, 69 no AGPRs."""
    paths = sorted(shared("kernels/aiter").glob("*.co"))
    read = [kernel for path in paths for kernel in read_kernels(path.read_bytes())]
    assert len(paths) == len(read) == 75
    assert sum(kernel.spills is None for kernel in read) == 73
    assert sum(kernel.agprs is None for kernel in read) == 69


@pytest.mark.parametrize(
    ("key", "fact"),
    [(".vgpr_spill_count", "vgpr_spills"), (".sgpr_spill_count", "sgpr_spills"), (".agpr_count", "agprs")],
)
def test_a_number_that_may_be_left_out_is_unknown(key: str, fact: str) -> None:
    (kernel,) = read_kernels(without(key))
    assert getattr(kernel, fact) is None
    assert kernel.spills == (0 if fact == "agprs" else None)


def test_arguments_and_their_names_may_be_left_out() -> None:
    (kernel,) = read_kernels(without(".args"))
    assert kernel.arguments == ()
    (kernel,) = read_kernels(with_notes(lambda kernel: kernel[".args"][0].pop(".name", None)))
    assert kernel.arguments[0].name == "arg0"
    (kernel,) = read_kernels(with_notes(lambda kernel: kernel[".args"][0].update({".name": "out"})))
    assert kernel.arguments[0].name == "out"


@pytest.mark.parametrize(
    "key",
    [
        ".vgpr_count", ".sgpr_count", ".group_segment_fixed_size", ".private_segment_fixed_size",
        ".kernarg_segment_size", ".max_flat_workgroup_size", ".args",
    ],
)  # fmt: skip
def test_what_a_launch_needs_is_missed_by_name(key: str) -> None:
    """The descriptor, which the hardware goes by, has the number; that it isn't in the notes is said."""
    (kernel,) = read_kernels(without(key))
    assert kernel.unnoted == (key,)


def test_a_kernel_without_any_name() -> None:
    def nameless(kernel: dict[str, Any]) -> None:
        del kernel[".name"], kernel[".symbol"]

    raised("T103", lambda: read_kernels(with_notes(nameless)))
    for key in (".name", ".symbol"):
        assert [kernel.name for kernel in read_kernels(without(key))] == ["f"]


@pytest.mark.parametrize("value", [None, True, -1, 2**32, 1.5, "7", [7], {}, msgpack.ExtType(5, b"")])
@pytest.mark.parametrize("key", [".vgpr_count", ".vgpr_spill_count"])
def test_a_number_that_is_none(key: str, value: object) -> None:
    hsaco = with_notes(lambda kernel: kernel.update({key: value}))
    assert mentions(raised("T103", lambda: read_kernels(hsaco)).message, key)


@pytest.mark.parametrize("arguments", [{}, 3, [3], [[]], [{".offset": 0, ".size": 8}]])
def test_arguments_that_are_none(arguments: object) -> None:
    hsaco = with_notes(lambda kernel: kernel.update({".args": arguments}))
    raised("T103", lambda: read_kernels(hsaco))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xc1",  # never used
        b"\x81\xa1a",  # cut short
        b"\x01\x02",  # one value too many
        b"\x81\x91\x01\x01",  # a list as a key
        b"\xa1\xff",  # no UTF-8
        b"\xdf\xff\xff\xff\xff",  # 2**32 - 1 entries
        b"\xdd\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\x91" * 400,  # a list in a list in a list ...
        b"\xdd\x00\x00\x01\x00" * 80,
    ],
    ids=lambda packed: packed[:8].hex(),
)
def test_metadata_that_is_no_map(packed: bytes) -> None:
    raised("T103", lambda: read_kernels(with_metadata(packed)))


def test_nesting_beyond_any_stack() -> None:
    """The note is made longer than the file's own: it is put after everything else."""
    changed, deep = bytearray(intact()), b"\x91" * 200_000
    where = len(changed)
    changed += struct.pack("<III8s", 7, len(deep), 32, b"AMDGPU") + deep
    segments = struct.unpack_from("<Q", changed, 32)[0]
    for number in range(struct.unpack_from("<H", changed, 56)[0]):
        header = segments + 56 * number
        if struct.unpack_from("<I", changed, header)[0] == 4:  # PT_NOTE
            struct.pack_into("<Q", changed, header + 8, where)
            struct.pack_into("<Q", changed, header + 32, 20 + len(deep))
    assert "StackError" in raised("T103", lambda: read_kernels(bytes(changed))).message


def test_a_stripped_code_object_is_read() -> None:
    """Without .symtab: .dynsym, by which the loader goes, has the descriptors too."""
    stripped = bytearray(intact())
    table, (sections,) = _sections(stripped), struct.unpack_from("<H", stripped, SECTIONS)
    kinds = {struct.unpack_from("<I", stripped, table + 64 * number + 4)[0]: number for number in range(sections)}
    struct.pack_into("<I", stripped, table + 64 * kinds[2] + 4, 0)
    assert read_kernels(bytes(stripped)) == read_kernels(intact())
    renamed = bytes(stripped).replace(b"f.kd\0", b"f.ke\0")
    assert "f.kd" in raised("T103", lambda: read_kernels(renamed)).message


def test_a_symbol_with_two_addresses_or_one_that_is_not_loaded() -> None:
    both = bytearray(intact())
    values = [
        section["sh_offset"] + 24 * number + 8
        for section in ELFFile(BytesIO(both)).iter_sections()
        if section["sh_type"] in {"SHT_DYNSYM", "SHT_SYMTAB"}
        for number, symbol in enumerate(section.iter_symbols())  # type: ignore[attr-defined]
        if symbol.name == "f.kd"
    ]
    assert len(values) == 2
    struct.pack_into("<Q", both, values[0], 2**40)
    assert "f.kd" in raised("T103", lambda: read_kernels(bytes(both))).message
    struct.pack_into("<Q", both, values[1], 2**40)
    assert mentions(raised("T103", lambda: read_kernels(bytes(both))).message, "f.kd", "0x10000000000")


def _sections(hsaco: bytes | bytearray) -> int:
    (table,) = struct.unpack_from("<Q", hsaco, SECTION_TABLE)
    return int(table)


def test_a_table_of_endless_entries_without_size() -> None:
    """With 2**16 - 1 in the header, section 0 counts the segments: 2**32 - 1 here, all of them the same."""
    endless = bytearray(intact())
    struct.pack_into("<HH", endless, SEGMENT_SIZE, 0, 0xFFFF)
    struct.pack_into("<I", endless, _sections(endless) + 44, 0xFFFFFFFF)
    start = time.monotonic()
    raised("T103", lambda: read_kernels(bytes(endless)))
    struct.pack_into("<HH", endless, SEGMENT_SIZE, 56, 8)
    struct.pack_into("<HH", endless, SECTION_SIZE, 0, 0)  # 0 sections: section 0 counts them, too
    struct.pack_into("<Q", endless, _sections(endless) + 32, 2**63)
    raised("T103", lambda: read_kernels(bytes(endless)))
    assert time.monotonic() - start < 5


def test_many_symbols_with_one_long_name() -> None:
    """Work that grows with the square of the file: each of 20,000 symbols has a name of half the file."""
    long = bytearray(intact())
    where = len(long)
    long += bytes(24 * 20_000) + b"n" * 500_000 + b"\0"
    table = _sections(long)
    for number in range(struct.unpack_from("<H", long, SECTIONS)[0]):
        header = table + 64 * number
        (kind,) = struct.unpack_from("<I", long, header + 4)
        if kind == 2:  # SHT_SYMTAB
            struct.pack_into("<QQ", long, header + 24, where, 24 * 20_000)
            names = table + 64 * struct.unpack_from("<I", long, header + 40)[0]
            struct.pack_into("<QQ", long, names + 24, where + 24 * 20_000, 500_001)
    start = time.monotonic()
    raised("T103", lambda: read_kernels(bytes(long)))
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("seed", range(20))
def test_a_code_object_cut_short_is_a_finding(seed: int) -> None:
    """The section table stands last, so that no byte can be missing."""
    length = Random(seed).randrange(len(intact()))
    with pytest.raises(ToolchainError):
        read_kernels(intact()[:length])


@pytest.mark.parametrize("part", ["header", "notes", "sections", "anywhere"])
def test_changed_bytes_end_in_facts_or_in_a_finding(part: str) -> None:
    """A share of some 5,000 such changes of code objects of several compilers, none of which ended otherwise."""
    random, whole = Random(part), intact()
    notes = whole.index(b"amdhsa.kernels") - 40
    among = {
        "header": range(6, 64 + 56 * 8),
        "notes": range(notes, notes + 600),
        "sections": range(_sections(whole), len(whole)),
        "anywhere": range(len(whole)),
    }[part]
    start = time.monotonic()
    for _ in range(60):
        changed = bytearray(whole)
        for at in random.choices(among, k=random.randint(1, 4)):
            changed[at] = random.choice((*BYTES, random.randrange(256)))
        try:
            kernels = read_kernels(bytes(changed))
        except RotaError as error:
            assert {finding.code for finding in error.findings} <= {"T103", "I111"}  # noqa: PT017
        else:
            assert all(isinstance(kernel.vgprs, int) for kernel in kernels)
    assert time.monotonic() - start < 30
