"""Raw text that would be read wrong without a message: text in another language than English, and wrapped lines."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from derivlang.sources.doubts import is_divided, is_not_english, is_wrapped
from tests.commands import run, written
from tests.helpers import ROOT

FRENCH = (
    "L'enfant dort dans la maison du fond, et qu'il rêve d'une maison n'étonne personne ici. Sa sœur lit un livre "
    "que son oncle lui a prêté hier, pendant que leur mère prépare une soupe de légumes pour le dîner. Dehors, "
    "quelques voisins parlent du temps, des récoltes et du prix des pommes au marché, comme chaque soir d'automne.\n"
) * 3
ENGLISH = (
    "The child sleeps in the back room, and that it dreams of a house is a surprise to nobody here. Her sister reads "
    "a book that their uncle gave to her yesterday, while their mother makes some soup for dinner. Outside, a few "
    "neighbours talk about the weather, crops, and what apples cost at market, as on every evening in autumn.\n"
) * 3


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (FRENCH, (), True),
        (FRENCH, ("--lang", "fr"), False),
        (FRENCH, ("--lang", "en"), False),
        (FRENCH, ("--words", "space"), False),
        (FRENCH[:200], (), False),  # too little to judge by
        ("Привет, мир. Как дела?\n", (), True),
        (ENGLISH, (), False),
    ],
)
def test_text_that_is_divided_by_the_rules_of_another_language_is_told(
    text: str, options: tuple[str, ...], told: bool, tmp_path: Path
) -> None:
    ran = run("make", "--t", "inv", written(tmp_path / "a.txt", text), "-o", tmp_path / "out", *options)
    assert ("hardly a word is English" in ran.err) == told
    if not options:
        table = written(tmp_path / "b.csv", f'text,label\n"{text}",1\n')
        ran = run("make", "--t", "inv", table, "-o", tmp_path / "table")
        assert ("hardly a word is English" in ran.err) == told


def test_a_treebank_that_counts_as_english_is_told(tmp_path: Path) -> None:
    lines = "1\tкот\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tспит\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    for name, options, told in (
        ("a.conllu", (), True),
        ("a.conllu", ("--lang", "ru"), False),
        ("ru_x-ud-test.conllu", (), False),
    ):
        ran = run("make", "--t", "inv", written(tmp_path / name, lines), "-o", tmp_path / "out", "--force", *options)
        assert ("it counts as English; --lang names its language" in ran.err) == told


@pytest.mark.parametrize(("place", "of"), [(0, 4), (3, 5)])
def test_a_paragraph_in_another_language_is_told(place: int, of: int, tmp_path: Path) -> None:
    lines = [ENGLISH.splitlines()[0]] * of
    lines[place] = " ".join(FRENCH.splitlines())
    source = written(tmp_path / "a.txt", "".join(f"{line}\n" for line in lines))
    make = ("make", "--t", "inv", source, "-o", tmp_path / "out")
    told = f"a.txt: divided as English, with hardly an English word: 1 text of the first {of}, \"L'enfant dort"
    assert told in run(*make).err
    assert "hardly" not in run(*make, "--force", "--lang", "en").err


@pytest.mark.parametrize(
    ("language", "advice"),
    [
        ("FR", "pass --lang fr"),
        ("fr-FR", "pass --lang fr"),
        ("french", "pass --lang fr"),
        ("xyz", "pass --lang xx for"),
    ],
)
def test_a_language_that_is_not_written_as_its_code(language: str, advice: str, tmp_path: Path) -> None:
    told = run("make", "--t", "inv", written(tmp_path / "a.txt", "Oui .\n"), "--lang", language, code=2).err
    assert f"no word rules for the language {language!r} [language]\n  {advice}" in told


def test_words_of_names_and_texts_in_other_scripts_are_not_english() -> None:
    assert is_not_english([" ".join(f"{chr(0x430 + n % 32)}{n}" for n in range(60))])
    assert not is_not_english([" ".join([*map(str, range(95)), *["and"] * 5])])
    assert not is_not_english(["la la la"] * 100)


def test_words_that_are_divided_already_are_told(tmp_path: Path) -> None:
    words = ENGLISH.replace(".", " .").replace(",", " ,") * 2
    for options, told in (((), True), (("--words", "space"), False), (("--words", "spacy"), False)):
        for text, file in ((words, "a.txt"), (f'text,label\n"{words}",1\n', "a.csv")):
            ran = run("make", "--t", "inv", written(tmp_path / file, text), "-o", tmp_path / "out", "--force", *options)
            assert (f"{file}: the words look divided already" in ran.err) == told
    assert not is_divided([words[:200]])
    assert not is_divided([FRENCH.replace(";", " ;")])


def test_wrapped_lines_are_told(tmp_path: Path) -> None:
    words = ENGLISH.replace("\n", " ") * 3
    wrapped = "\n\n".join(textwrap.fill(words[part:], 72) for part in range(3)) + "\n"
    few, wide = textwrap.fill(words[:700], 66), textwrap.fill(words, 125)
    for text, told in (
        (wrapped, True),
        (few, True),
        (wide, True),
        (ENGLISH * 3, False),
        (textwrap.fill(words, 30), False),
    ):
        ran = run("make", "--t", "inv", written(tmp_path / "a.txt", text), "-o", tmp_path / "out", "--force")
        assert ("look wrapped at one width" in ran.err) == told
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder" / "a.txt", "One line.\n")
    written(tmp_path / "folder" / "b.txt", wrapped)
    assert "b.txt: the lines look wrapped" in run("make", "--t", "inv", tmp_path / "folder", "-o", tmp_path / "f").err
    (tmp_path / "FILE").write_bytes(wrapped.replace("\n", "\r\n").encode())
    ran = run("make", "--t", "inv", written(tmp_path / "a.txt", wrapped), "-o", tmp_path / "out", "--force")
    command = ran.err.partition("of each paragraph: ")[2].splitlines()[0]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    joined = [" ".join(block.split()) for block in wrapped.split("\n\n")]
    assert [line.strip() for line in (tmp_path / "NEW").read_text("utf-8").splitlines()] == joined


def test_prose_with_tabs_is_not_a_table(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "\tIt rained .\n\tBo left .\nShe\tsang .\n")
    run("make", "--t", "inv", path, "-o", tmp_path / "out")


def test_verses_and_short_lines_are_not_wrapped() -> None:
    licence = [f"{line}\n" for line in (ROOT / "LICENSE").read_text("utf-8").splitlines() if line.strip()]
    assert is_wrapped(licence[:100])
    assert not is_wrapped([f"{line.strip()}.\n" for line in licence])
    assert not is_wrapped([line[: 8 + 7 * (at % 9)].strip() + "\n" for at, line in enumerate(licence)])
