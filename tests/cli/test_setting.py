from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import click
import pytest

from rota import GFX942, KernelGeometry, ScheduleConfig, SchedulingStrategy, TargetProfile
from rota.cli.arguments import apply_settings, leaves, with_settings
from rota.kernels.catalogue import shipped_kernels
from rota.kernels.gemm import GEMM_SHAPES, GemmShape
from rota.kernels.kernel import Kernel
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded


def setting(kernel: str, text: str, name: str) -> object:
    return apply_settings(shipped_kernels()[kernel], text).settings()[name].value


@pytest.mark.parametrize("path", ["config.auto_drain", "auto_drain", "waits.auto_drain"])
def test_a_field_is_named_by_its_path_its_end_or_its_strategy(path: str) -> None:
    config = setting("ping_pong", f"{path}=yes", "config")
    assert isinstance(config, ScheduleConfig)
    assert config.auto_drain is True


def test_the_schedule_follows_the_setting() -> None:
    waits = [data(f"check ping_pong {words}")["summary"]["waits"] for words in ("", "--set waits.auto_drain=true")]
    assert waits[0] < waits[1]


def test_several_settings_add_up() -> None:
    kernel = apply_settings(apply_settings(shipped_kernels()["four_wave"], "BM=128"), "geometry.BN = 0x80")
    assert kernel.settings()["geometry"].value == KernelGeometry(BM=128, BN=128)
    assert kernel.compile().lds_bytes == 2 * (128 + 128) * 64 * 2


def test_values_are_parsed_by_type() -> None:
    shape = setting("gemm_small", "mma=32x16", "shape")
    assert isinstance(shape, GemmShape)
    assert shape.mma == (32, 16)
    assert setting("gemm_small", "machine=MI300X", "machine") is GFX942
    assert setting("gemm_small", "stagger=on", "stagger") is True
    config = setting("ping_pong", "scheduling=greedy", "config")
    assert isinstance(config, ScheduleConfig)
    assert config.scheduling is SchedulingStrategy.GREEDY
    assert getattr(setting("gemm_small", "time_limit=0.5", "scheduler"), "time_limit", None) == 0.5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("auto_drain", ("field=value",)),
        ("auto_drian=true", ("auto_drain",)),
        ("auto_drain=maybe", ("maybe",)),
        ("BM=large", ("large",)),
        ("lgkm_per_load_a=3", ("geometry.lgkm_per_load_a", "config.lgkm_per_load_a")),
        ("target.machine=mi35x", ("mi355x",)),
        ("loop_carried.role=computer", ("compute",)),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_usage_error(text: str, names: tuple[str, ...]) -> None:
    result = rota(f"check four_wave --set {text}")
    assert result.exit_code == 2
    worded(result.output)
    assert mentions(result.output, *names)


@pytest.mark.parametrize(
    ("text", "names"), [("mma=16x²", ("--set", "16x²")), ("mma=16", ("16x16",)), ("time_limit=soon", ("soon",))]
)
def test_the_same_for_a_loop_by_values(text: str, names: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError) as caught:
        apply_settings(shipped_kernels()["gemm_small"], text)
    worded(str(caught.value))
    assert mentions(caught.value, *names)


def test_a_value_outside_its_range_is_a_finding() -> None:
    result = rota("check four_wave --set geometry.BM=0")
    assert result.exit_code == 1
    assert "error[D102]: KernelGeometry.BM is 0" in result.output


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Options:
    limit: int | None = 3
    colour: Colour | int = 1


def with_options(options: Options) -> GemmShape:
    return replace(GEMM_SHAPES[0], name=str(options))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limit=none", Options(limit=None)),
        ("limit=7", Options(limit=7)),
        ("colour=red", Options(colour=Colour.RED)),
        ("colour=4", Options(colour=4)),
    ],
)
def test_optional_fields_and_alternatives_of_a_functions_parameter(text: str, expected: Options) -> None:
    kernel = apply_settings(Kernel(name="k", source=with_options), text)
    assert kernel.settings()["options"].value == expected
    assert getattr(kernel.settings()["shape"].value, "name", "") == str(expected)


def test_what_fits_none_of_the_alternatives_is_refused() -> None:
    with pytest.raises(click.UsageError) as caught:
        apply_settings(Kernel(name="k", source=with_options), "colour=blue")
    worded(str(caught.value))
    assert mentions(caught.value, "blue")


def test_settings_are_listed_as_they_would_be_typed() -> None:
    listed = data("kernels four_wave")
    assert listed["config.scheduling"] == "identity"
    assert listed["geometry.is_fp8"] == "false"
    assert listed["target.machine"] == "mi355x"
    assert data("kernels gemm_small --set mma=32x16")["shape.mma"] == "32x16"
    kernel = shipped_kernels()["gemm_small"]
    for name, value in data("kernels gemm_small").items():
        again = apply_settings(kernel, f"{name}={value}")
        assert {leaf.name: leaf.value for leaf in leaves(again)} == {leaf.name: leaf.value for leaf in leaves(kernel)}


def test_a_number_without_end_is_still_json() -> None:
    assert data("kernels gemm_small --set scheduler.time_limit=inf")["scheduler.time_limit"] == "inf"


def test_settings_that_fit_only_together_are_put_in_together() -> None:
    texts = ["target.pipeline.depth=3", "target.pipeline.num_partitions=3"]
    for some in (texts, texts[::-1]):
        target = with_settings(shipped_kernels()["ping_pong"], some).settings()["target"].value
        assert isinstance(target, TargetProfile)
        assert (target.pipeline.depth, target.pipeline.num_partitions) == (3, 3)


def test_of_a_field_that_is_set_twice_the_last_counts() -> None:
    kernel = with_settings(
        shipped_kernels()["gemm_small"], ["shape.depth=128", "stagger=on", "depth=32", "stagger=off"]
    )
    shape = kernel.settings()["shape"].value
    assert isinstance(shape, GemmShape)
    assert (shape.depth, kernel.settings()["stagger"].value) == (32, False)


def test_a_parameter_is_set_though_its_default_makes_nothing() -> None:
    def made(depth: int = 0) -> GemmShape:
        return replace(GEMM_SHAPES[2], depth=depth)

    made.__annotations__ = {"depth": int}
    assert with_settings(Kernel(name="k", source=made), ["depth=128"]).geometry().BK == 128


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 9000, str(2**63), str(-(2**64))])
def test_a_number_that_no_machine_has_is_a_usage_error(number: str) -> None:
    refused = rota(f"check single_buffer --set num_k_tiles={number}")
    assert refused.exit_code == 2
    worded(refused.output)
    assert len(refused.output) < 500


@pytest.mark.parametrize(
    ("setting", "reader"),
    [
        ("geometry.vm_per_load_a=9", "nothing"),
        ("geometry.is_fp8=true", "nothing"),
        ("geometry.BM=128", "predictions"),
        ("waves=4", "predictions"),
    ],
)
def test_a_setting_that_the_schedule_is_the_same_without_is_noted(setting: str, reader: str) -> None:
    told = rota(f"check ping_pong --set {setting} --notes")
    assert told.exit_code == 0
    (note,) = [line for line in told.output.splitlines() if "P109" in line]
    assert setting.partition("=")[0] in note
    assert reader in note


def test_a_setting_that_reaches_the_schedule_is_not_noted() -> None:
    assert "P109" not in rota("check four_wave --set geometry.BM=128 --notes").output
    assert "P109" not in rota("check ping_pong --set target.pipeline.vm_per_load_a=3 --notes").output
