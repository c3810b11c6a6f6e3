"""Spaces and shapes: what is read, what is left out by arithmetic, and what is refused."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from rota.tune.space import (
    EXAMPLE,
    ProblemShape,
    Swizzle,
    TuneSpace,
    default_space,
    read_shapes,
    read_space,
    sift,
    space_of,
)
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_every_list_is_a_dimension() -> None:
    found = space_of(
        {
            "device": ["mi355x", "mi300x"],
            "tile": ["128x128x64"],
            "waves": [4, 8],
            "mma": [16, 32],
            "depth": [2, "auto"],
            "stagger": [False, True],
            "barriers": ["slack", "fewest"],
            "slack": ["auto", 0],
            "grain": "tiles",
            "split_k": [1, 2, 4],
            "swizzle": ["8x4", "1x1"],
        }
    )
    assert len(list(found.points())) == 2**7
    assert found.variants == 6
    assert found.swizzle == (Swizzle(8, 4), Swizzle(1, 1))
    assert len({point.name for point in found.points()}) == 2**7


def test_the_default_space_is_small_and_of_the_shapes_types() -> None:
    own, fp8, fp4 = ProblemShape(1, 64, 64), ProblemShape(1, 64, 64, "fp8"), ProblemShape(1, 64, 64, "fp4")
    for device in ("mi355x", "mi300x"):
        for shape, kind in ((own, "bf16"), (fp8, "fp8"), (fp4, "bf16")):
            found = sift(default_space([shape], [device]))
            assert {(point.element, point.device.lower()) for point in found.points} == {(kind, device)}
            assert len({point.tile for point in found.points}) == 9  # of every tile something is left
            assert len(found.points) <= 18
    assert default_space([own]).device == ("mi355x",)
    assert default_space([own, fp8]).type == ("bf16", "fp8")
    assert "'mi1'" in raised("S101", lambda: default_space([own], ["mi1"])).message


def test_arithmetic_leaves_out_what_can_be_no_kernel() -> None:
    found = sift(
        space_of(
            {
                "device": ["mi355x", "mi300x"],
                "tile": ["256x256x64", "48x64x64", "512x512x64"],
                "waves": 8,
                "depth": ["auto", 2, 3],
                "grain": "tiles",
            }
        )
    )
    why = {each.name: each.code for each in found.pruned}
    assert [point.name for point in found.points if point.device == "MI355X"] == [
        "bf16_256x256x64_w8_mma16_quadrants_mi355x",
        "bf16_256x256x64_w8_mma16_d2_quadrants_mi355x",
    ]
    assert why["bf16_256x256x64_w8_mma16_d3_quadrants_mi355x"] == "L103"  # 192 of 160 KiB
    assert why["bf16_256x256x64_w8_mma16_d2_quadrants_mi300x"] == "L103"  # 128 of 64 KiB
    assert why["bf16_48x64x64_w8_mma16_quadrants_mi355x"] == "D102"
    assert why["bf16_512x512x64_w8_mma16_quadrants_mi355x"] == "L104"  # accumulators alone fill the registers


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"tiles": "256x256x64"}, ("tiles",)),
        ({"tile": "256x256"}, ("256x256x64",)),
        ({"tile": []}, ("tile",)),
        ({"tile": ["64x64x64", "64x64x64"]}, ()),
        ({"waves": 5}, ("waves",)),
        ({"waves": "4"}, ("waves",)),
        ({"waves": True}, ("waves",)),
        ({"stagger": 1}, ("stagger",)),
        ({"barriers": "none"}, ("barriers",)),
        ({"device": "mi999"}, ("mi999",)),
        ({"device": ["mi355x", "mi999"]}, ("mi999",)),
        ({"type": "fp3"}, ("fp3",)),
        ({"split_k": 0}, ("split_k",)),
        ({"effort": -1}, ("effort",)),
        ({"effort": "much"}, ("effort",)),
        ({"swizzle": "8"}, ("8x4",)),
        ({"seed": list(range(2000)), "split_k": list(range(1, 600))}, ()),
    ],
)
def test_a_malformed_space_says_what_is_wrong(given: dict[str, object], names: tuple[str, ...]) -> None:
    assert mentions(raised("S101", lambda: space_of(given)).message, *names)


def test_a_space_is_a_file_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text('tile = ["128x128x64"]\nwaves = 4\n')
    assert read_space(path) == TuneSpace(tile=((128, 128, 64),), waves=(4,))
    path.write_text("tile = [")
    raised("S101", lambda: read_space(path))
    raised("S101", lambda: read_space(tmp_path / "missing.toml"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("M,N,K\n1,2,3\n4,5,6\n1,2,3\n", [(1, 2, 3, "", "bf16"), (4, 5, 6, "", "bf16")]),
        ("m, n, k\n1, 1280, 8192\n\n", [(1, 1280, 8192, "", "bf16")]),
        (
            "M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle\n80,256,5120,False,torch.bfloat16,torch.float32,False,False\n",
            [(80, 256, 5120, "bf16", "fp32")],
        ),
        ("M,N,K,q_dtype_w\n8,16,128,torch.float8_e4m3fnuz\n", [(8, 16, 128, "fp8", "bf16")]),
    ],
)
def test_files_of_shapes(tmp_path: Path, text: str, found: list[tuple[int, int, int, str, str]]) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text(text)
    assert list(read_shapes(path)) == [ProblemShape(*each) for each in found]


def test_a_models_config_gives_the_shapes_of_its_layers(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "torch_dtype": "bfloat16",
    }
    path.write_text(json.dumps(config))
    assert [shape[:3] for shape in read_shapes(path, tokens=(1,), parallel=2)] == [
        (1, 3072, 4096),
        (1, 4096, 2048),
        (1, 14336, 4096),
        (1, 4096, 7168),
    ]
    assert len(read_shapes(path)) == 60
    raised("S103", lambda: read_shapes(path, parallel=7))
    path.write_text(json.dumps(config | {"hidden_size": "4096"}))
    assert "hidden_size" in raised("S103", lambda: read_shapes(path)).message
    path.write_text("{")
    raised("S103", lambda: read_shapes(path))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ("shapes.csv:1",)),
        ("M,N\n1,2\n", ("shapes.csv:1", "M,N")),
        ("M,N,K\n", ("shapes.csv:1",)),
        ("M,N,K\n1,2\n", ("shapes.csv:2",)),
        ("M,N,K\n1,2,x\n", ("shapes.csv:2",)),
        ("M,N,K\n1,2,-3\n", ("-3",)),
        ("M,N,K\n1,2,3\n4,0,6\n", ("shapes.csv:3",)),
        ("M,N,K\n1,2,3\n4,5", ("shapes.csv:3",)),
        ("M,N,K\n1,2,99999999999\n", ("shapes.csv:2",)),
        ("M,N,K,outdtype\n1,2,3,torch.int4\n", ("int4",)),
    ],
)
def test_a_malformed_file_of_shapes_says_where(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text(text)
    assert mentions(raised("S103", lambda: read_shapes(path)).message, *names)


def test_a_file_of_shapes_that_is_missing(tmp_path: Path) -> None:
    raised("S103", lambda: read_shapes(tmp_path / "shapes.csv"))


def test_the_example_has_every_dimension() -> None:
    said = tomllib.loads(EXAMPLE)
    assert set(said) == {each.name for each in fields(TuneSpace)} - {"make"}
    found = sift(space_of(said))
    assert {point.device for point in found.points} == {"MI355X", "MI300X"}
