"""sort: the words of a sentence by their counts in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.core.lexicon import escape
from derivlang.formats.word_counts import read_counts
from derivlang.pipeline import Pipeline
from derivlang.transforms import sort
from tests.commands import run, written
from tests.strategies import any_word, batch_of, few_words, scan_words, units_of
from tests.transforms import GIVEN

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)


@given(
    rows=units_of(st.one_of(few_words, any_word, scan_words)),
    numbers=st.randoms(use_true_random=False),
    rare=st.booleans(),
)
def test_sort_is_pythons(tmp_path_factory: pytest.TempPathFactory, rows, numbers, rare) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(rows)
    words = batch.types.to_pylist()
    counts = {word: numbers.randint(0, 3) for word in words if numbers.random() < 0.8}
    path = tmp_path_factory.mktemp("counts") / "counts.tsv"
    path.write_bytes("".join(f"{escape(word)}\t{count}\n" for word, count in {**counts, "x y": 2}.items()).encode())
    order = Pipeline.parse(f"sort:{path}{':first=rare' if rare else ''}").order(batch)
    for k, begin in enumerate(batch.sentences[:-1].tolist()):
        end = int(batch.sentences[k + 1] - batch.tails[k])

        def place(i: int) -> int:
            count = counts.get(words[batch.words[i]], 0)
            return count if rare else -count

        assert order.index[begin:end].tolist() == sorted(range(begin, end), key=place)
        assert order.index[end : batch.sentences[k + 1]].tolist() == list(range(end, batch.sentences[k + 1]))


def test_the_example_of_the_module_is_right() -> None:
    source, _, derived = (sort.__doc__ or "").splitlines()[2].strip().partition("   ->   ")
    assert run("derive", source, "--t", f"sort:{GIVEN['sort']['counts']}").out.strip() == derived
    assert str(read_counts(Path(GIVEN["sort"]["counts"]))) == (
        "{'the': 9, 'of': 7, 'One': 5, 'old': 4, 'crossed': 3, 'lake': 3, 'ferries': 2}"
    )


def test_a_dictionary_of_a_set_holds_its_counts(tmp_path: Path) -> None:
    run("make", "--t", "trans", "demo", "-o", tmp_path / "set")
    run("dict", tmp_path / "set", "-o", tmp_path / "dict.tsv")
    assert read_counts(tmp_path / "dict.tsv")["the"] > 50
    run("make", "--t", f"sort:{tmp_path}/dict.tsv", "demo", "-o", tmp_path / "sorted")
    (tmp_path / "dict.tsv").unlink()  # the set keeps a copy
    assert "are right" in run("verify", tmp_path / "sorted").out


@given(counts=st.dictionaries(WORDS, st.integers(0, 10**18 - 1), min_size=1, max_size=6), header=st.booleans())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, counts, header) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("counts") / "a.tsv"
    lines = [
        *(["\ufeffword\tcount"] if header else []),
        *(f"{escape(word)}\t{count}" for word, count in counts.items()),
    ]
    path.write_bytes("\n".join(lines).encode())
    assert read_counts(path) == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.tsv:1: the file has no word with a count"),
        ("word\tcount\n", "a.tsv:1: the file has no word with a count"),
        ("the\t1\nof 2\n", "a.tsv:2: 'of 2' is not a word and its count, separated by a tab"),
        ("the\t1\nof\t-2\n", "a.tsv:2: 'of\\t-2' is not a word and its count"),
        ("the\t1\n\nthe\t2\n", "a.tsv:3: the word 'the' has the counts 1 and 2"),
    ],
)
def test_a_broken_file_is_one_message(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", text)
    with pytest.raises(DataError) as caught:
        read_counts(path)
    assert message in str(caught.value)
    assert message in run("derive", "a b", "--t", f"sort:{path}", code=1).err


def test_sort_needs_counts() -> None:
    assert "sort needs the counts of words" in run("derive", "a b", "--t", "sort", code=2).err
