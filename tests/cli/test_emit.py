from __future__ import annotations

import re
from pathlib import Path

import pytest

from rota import GFX942
from rota.cli.commands.emit import source_of
from rota.emit.document.exchange import from_json
from rota.kernels.catalogue import shipped_kernels
from tests.cli.command import data, rota

pytestmark = pytest.mark.thorough  # runs for seconds


def test_a_document_holds_the_schedule() -> None:
    result = rota("emit ping_pong --form json")
    assert result.exit_code == 0
    listed = data("show ping_pong --listing")
    assert [str(entry.op) for entry in from_json(result.stdout).kernel] == [entry["op"] for entry in listed["kernel"]]


@pytest.mark.parametrize("kernel", ["four_wave", "gemm_small", "gemm_fp8", "gemm_small_mi300x"])
def test_a_gemm_is_written_under_the_name_it_was_asked_for(kernel: str) -> None:
    coarse, variant = ("", "") if kernel == "four_wave" else ("--set instructions=false", "_instructions_False")
    assert f" {kernel}{variant}(" in data(f"emit {kernel} {coarse}")["source"]


def named(command: str) -> str:
    found = re.search(r"void (\w+)\((?:const void\*|Ops&)", data(command)["source"])
    assert found is not None
    return found[1]


@pytest.mark.parametrize("form", ["hip", "skeleton"])
def test_kernels_of_different_settings_have_different_names(form: str) -> None:
    """So that they can be one program."""
    emit = f"emit gemm_small --form {form}"
    assert named(emit) == "gemm_small"
    assert named(f"{emit} --set remainder=1") == "gemm_small_tail1"
    assert named(f"{emit} --set rows=256 --set remainder=2") == "gemm_small_rows_256_tail2"
    other = "v_mfma_f32_16x16x32_f16"
    assert named(f"emit four_wave --form {form} --set instruction={other}") == f"four_wave_instruction_{other}"


def test_a_machine_is_named_by_its_device_and_what_is_long_by_a_number() -> None:
    kernel = shipped_kernels()["gemm_small"]
    compiled = kernel.compile()
    skeleton = source_of(kernel.but("machine", GFX942), compiled, "skeleton")
    assert "void gemm_bf16_128x128x64_4wave_mi300x(" in skeleton
    long = source_of(kernel.but("note", "a" * 99), compiled, "skeleton")
    assert re.search(r"void gemm_bf16_128x128x64_4wave_note_[0-9a-f]{8}\(", long)


def test_source_goes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rota("emit gemm_small --set instructions=false --form skeleton -o order.h").stdout == "order.h\n"
    assert Path("order.h").read_text("utf-8") == rota("emit gemm_small --set instructions=false --form skeleton").stdout


def test_a_whole_kernel_is_written_with_what_was_asked_for() -> None:
    emit = "emit four_wave --form kernel"
    assert named(emit) == "four_wave_fp32"
    assert named(f"{emit} --with output=f16 --with epilogue=alpha,relu") == "four_wave_f16_alpha_relu"
    assert "four_wave_f16_launch(" in data("emit four_wave --form launcher --with output=f16")["source"]


def test_a_project_is_a_folder(tmp_path: Path) -> None:
    written = data(f"emit four_wave --form kernel --with output=f16 --project {tmp_path / 'new'}")["written"]
    assert {Path(each).name for each in written} == {path.name for path in (tmp_path / "new").iterdir()}
    assert {"four_wave_f16.hip", "four_wave_f16.h", "CMakeLists.txt"} <= {Path(each).name for each in written}


@pytest.mark.parametrize(
    "told", ["--form kernel --with output", "--with output=f16 --with output=f16 --form kernel", "--project folder"]
)
def test_what_can_t_be_meant_is_a_usage_error(told: str) -> None:
    assert rota(f"emit four_wave {told}").exit_code == 2


def test_what_is_no_gemm_is_a_finding() -> None:
    result = rota("emit attention --set instructions=false")
    assert result.exit_code == 1
    assert result.stderr.startswith("error[T203]")
    assert data("emit attention --set instructions=false", status=1)["findings"][0]["code"] == "T203"


@pytest.mark.parametrize(
    ("kernel", "form", "works"),
    [
        ("gemm_small", "mojo", "--set instructions=false"),
        ("gemm_fp8", "gluon", "--set instructions=false"),
        ("ping_pong", "gluon", "--set target.pipeline.warp_stagger.enabled=false"),
    ],
)
def test_a_refusal_names_the_setting_that_works(kernel: str, form: str, works: str) -> None:
    (finding,) = data(f"emit {kernel} --form {form}", status=1)["findings"]
    assert finding["code"] == "T203"
    assert any(f"`{works}`" in fix for fix in finding["fixes"])
    assert data(f"emit {kernel} --form {form} {works}")["source"]


@pytest.mark.parametrize("form", ["hip", "gluon", "flydsl", "mojo"])
def test_attention_is_written_in_the_form_that_a_refusal_names(form: str) -> None:
    whole = "rota.kernels.attention:SMALL_TILE --set time_limit=0"
    (loop,) = data(f"emit attention --set instructions=false --form {form}", status=1)["findings"]
    assert any("`rota emit rota.kernels.attention:HEAD_128 --form kernel`" in fix for fix in loop["fixes"])
    (finding,) = data(f"emit {whole} --form {form}", status=1)["findings"]
    assert finding["code"] == "T203"
    assert "`--form kernel`" in finding["fixes"][0]
    assert data(f"emit {whole} --form kernel")["source"]


def test_a_refusal_says_how_a_geometry_is_given(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (text,) = [each for each in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "my_gemm.py" in each]
    (tmp_path / "my_gemm.py").write_text(text)
    asked = f"emit {tmp_path / 'my_gemm.py'}:MyGemm"
    (finding,) = data(asked, status=1)["findings"]
    assert finding["code"] == "T202"
    settings = next(found[1] for fix in finding["fixes"] if (found := re.search(r"`(--set geometry[^`]*)`", fix)))
    assert data(f"{asked} {settings}")["source"]


def test_the_matrix_instruction_of_a_body_in_tiles_is_the_one_that_was_set() -> None:
    assert "v_mfma_f32_16x16x32_f16 " in data("emit four_wave --set instruction=v_mfma_f32_16x16x32_f16")["source"]
    other = data("emit four_wave --set instruction=v_mfma_f32_32x32x16_bf16", status=1)
    assert other["findings"][0]["code"] == "T203"


def test_a_compiler_that_is_not_there_is_a_finding() -> None:
    result = rota("audit ping_pong --compiler no-such-compiler")
    assert result.exit_code == 1
    assert result.stderr.startswith("error[T101]")


@pytest.mark.usefixtures("_toolchain")
def test_the_machine_code_is_the_schedule() -> None:
    result = rota("audit ping_pong")
    assert result.exit_code == 0
    assert result.stdout.startswith("ping_pong by ")
    assert data("audit gemm_small")["exact"] is True


@pytest.mark.usefixtures("_toolchain")
def test_machine_code_that_is_not_the_schedule_ends_in_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_barrier(*arguments: object) -> str:
        source = source_of(*arguments)  # type: ignore[arg-type]
        assert "__builtin_amdgcn_s_barrier();" in source
        return source.replace("__builtin_amdgcn_s_barrier();", "", 1)

    monkeypatch.setattr("rota.cli.code_file.source_of", without_a_barrier)
    given = data("audit ping_pong", status=1)
    assert given["ok"] is False
    assert "I205" in {finding["code"] for finding in given["audit"]["findings"]}


@pytest.mark.usefixtures("_toolchain")
def test_machine_code_of_the_element_that_was_set_is_audited_and_run() -> None:
    assert data("audit four_wave --set instruction=v_mfma_f32_16x16x32_f16")["exact"] is True
    assert data("run four_wave --set instruction=v_mfma_f32_16x16x32_f16 --trips 0 --seeds 0")["ok"] is True
