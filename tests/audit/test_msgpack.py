"""MessagePack against the byte patterns of its specification."""

from __future__ import annotations

import pytest

from rota.audit.msgpack import unpack


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xc0", None),
        (b"\xc2", False),
        (b"\xc3", True),
        (b"\xcc\xff", 255),
        (b"\xcd\x01\x00", 256),
        (b"\xce\x00\x02\x00\x00", 131072),
        (b"\xcf" + b"\0" * 7 + b"\x05", 5),
        (b"\xd0\x80", -128),
        (b"\xd1\xff\x00", -256),
        (b"\xd2\xff\xff\xff\xfe", -2),
        (b"\xd3" + b"\xff" * 8, -1),
        (b"\xca\x3f\x80\x00\x00", 1.0),
        (b"\xcb\x3f\xf0" + b"\0" * 6, 1.0),
        (b"\xa3abc", "abc"),
        (b"\xd9\x20" + b"x" * 32, "x" * 32),
        (b"\xda\x01\x00" + b"y" * 256, "y" * 256),
        (b"\xdb\x00\x00\x00\x01z", "z"),
        (b"\x93\x01\xa1a\xc0", [1, "a", None]),
        (b"\xdc\x00\x02\x01\x02", [1, 2]),
        (b"\xdd\x00\x00\x00\x01\x90", [[]]),
        (b"\x82\xa1a\x01\xa1b\x80", {"a": 1, "b": {}}),
        (b"\xde\x00\x01\xa1a\x01", {"a": 1}),
        (b"\xdf\x00\x00\x00\x01\xa1a\x91\x05", {"a": [5]}),
    ],
)
def test_values(packed: bytes, value: object) -> None:
    assert unpack(packed) == value


def test_what_notes_never_use_is_refused() -> None:
    with pytest.raises(ValueError, match="tag 0xc1"):
        unpack(b"\xc1")
