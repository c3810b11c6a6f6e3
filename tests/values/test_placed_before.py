"""What a search found is kept, and checked and proved again when it is recalled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rota import GFX942, GFX950
from rota.kernels.gemm import BF16, GemmShape
from rota.solver.memory import SETTING, keep, recall, remembering
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop

LOOP = GemmShape(name="kept", instruction=BF16, mma=(16, 32), rows=128, columns=128, waves=4).loop(instructions=False)


def compiled() -> CompiledLoop:
    with remembering():
        return compile_loop(LOOP, GFX950)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(SETTING, str(tmp_path / "kept"))
    return tmp_path / "kept"


def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was searched for")

    monkeypatch.setattr("rota.values.compile_loop.list_placements", refuse)
    monkeypatch.setattr("rota.values.compile_loop.find_faster_order", refuse)


def test_a_second_time_nothing_is_searched_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled()
    assert len(list(folder.iterdir())) == 1
    no_search(monkeypatch)
    again = compiled()
    assert (again.prologue, again.kernel, again.epilogue) == (first.prologue, first.kernel, first.epilogue)
    assert again.certificate == first.certificate is not None
    assert (again.modulo and again.modulo.certificate.proof) == (first.modulo and first.modulo.certificate.proof)
    assert again.quality == first.quality


def test_what_was_tampered_with_is_searched_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled()
    (file,) = folder.iterdir()
    kept = json.loads(file.read_text())
    searches: list[str] = []

    def starts(*_: Any, **__: Any) -> Any:
        searches.append("starts")
        return [(first.modulo, first.placement)]

    def order(_: Any) -> None:
        searches.append("order")

    monkeypatch.setattr("rota.values.compile_loop.list_placements", starts)
    monkeypatch.setattr("rota.values.compile_loop.find_faster_order", order)
    for change, sought in (
        ({"starts": [0] * len(kept["starts"])}, ["starts", "order"]),
        ({"interval": 1}, ["starts", "order"]),
        ({"interval": "2"}, ["starts", "order"]),
        ({"barriers": [True]}, ["starts", "order"]),
        ({"copies": [["A", 1], ["nothing", 1]]}, ["starts", "order"]),
        ({"landing_slack": 10**6}, ["starts", "order"]),
        ({"order": "no"}, ["starts", "order"]),
        ({"order": [0, 0]}, ["order"]),
        ({"order": list(reversed(range(len(first.kernel))))}, ["order"]),
    ):
        file.write_text(json.dumps(kept | change))
        again = compiled()
        assert searches == sought, change
        assert again.certificate is not None
        searches.clear()
    for text in ("", "[]", "null", '{"starts": {}}'):
        file.write_text(text)
        compiled()
        assert searches == ["starts", "order"]
        searches.clear()


def test_it_can_be_turned_off_and_a_library_call_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_loop(LOOP, GFX950)
    assert not folder.exists()
    with remembering():
        keep("question", [1])
        assert recall("question") == [1]
        monkeypatch.setenv(SETTING, "off")
        keep("another", [1])
        assert recall("question") is None
    assert len(list(folder.iterdir())) == 1


def test_by_default_it_is_in_the_user_s_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with remembering():
        keep("question", {"a": 1})
        assert recall("question") == {"a": 1}
    assert (tmp_path / "rota").is_dir()


def test_questions_that_differ_in_what_counts_have_answers_of_their_own(folder: Path) -> None:
    with remembering():
        for number, question in enumerate([(LOOP, GFX950), (LOOP, GFX942), (LOOP, GFX950, True), ({"a", "b"},)]):
            keep(question, number)
        assert recall((LOOP, GFX950)) == 0
        assert recall((LOOP, GFX942)) == 1
        assert recall(({"b", "a"},)) == 3
        with pytest.raises(TypeError, match="question"):
            recall(object())
    assert len(list(folder.iterdir())) == 4


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(SETTING, str(tmp_path / "file" / "folder"))
    with remembering():
        keep("question", 1)
        assert recall("question") is None
