"""Fixed text of emitted source: what stands in for words, and that nothing in the files is dead."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from rota.emit.text import Template
from rota.targets.cdna4 import MI355X

FILES = [
    (package, file.name)
    for package in ("rota.emit", "rota.languages")
    for file in files(package).joinpath("templates").iterdir()
]


def template(*lines: str) -> Template:
    made = Template("rota.emit", "none")
    vars(made)["_sections"] = {"all": [*lines]}
    return made


def test_words_and_their_attributes_are_replaced() -> None:
    made = template("int @name@ = @machine.lanes.value@ / @count@;  // @name@")
    lines = made.lines("all", name="lanes", machine=MI355X, count=2)
    assert [*lines] == ["int lanes = 64 / 2;  // lanes"]


def test_a_line_that_is_a_word_becomes_any_number_of_lines_with_its_indentation() -> None:
    made = template("{", "  @some@", "@none@", "  @text@", "}")
    lines = made.lines("all", some=(f"{each};" for each in "ab"), none=(), text="c;")
    assert [*lines] == ["{", "  a;", "  b;", "  c;", "}"]


def test_a_word_that_is_not_given_is_an_error() -> None:
    with pytest.raises(KeyError):
        [*template("@name@").lines("all")]


@pytest.mark.parametrize(("package", "file"), FILES, ids=lambda each: each)
def test_every_section_is_used(package: str, file: str) -> None:
    source = "".join(path.read_text("utf-8") for path in Path(str(files(package))).rglob("*.py"))
    text = files(package).joinpath("templates", file).read_text("utf-8")
    sections = re.findall(r"^==== (\w+)$", text, re.MULTILINE)
    assert sections
    assert [name for name in sections if f'"{name}"' not in source] == []
