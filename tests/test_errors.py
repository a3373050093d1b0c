"""The exceptions: how a message reads, which exit code it gives, that it survives pickling, and near names."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DataError, DerivlangError, LayerError, StoreError, UsageError, unknown
from tests.helpers import CONTROLS, obeyed

KINDS = [DerivlangError, UsageError, DataError, LayerError, StoreError]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", [None, "fr.conllu:1482"])
@pytest.mark.parametrize("fix", [None, "correct the tree"])
def test_pickles_and_copies_with_all_its_fields(kind: type[DerivlangError], where: str | None, fix: str | None) -> None:
    error = kind("word 9 has head 31", where=where, fix=fix, id="head-range")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is kind
        assert (other.what, other.where, other.fix, other.id) == ("word 9 has head 31", where, fix, "head-range")
        assert str(other) == str(error)
        assert other.exit_code == error.exit_code


def test_a_message_is_place_fault_id_and_next_step() -> None:
    error = DataError("word 9 has head 31", where="fr.conllu:1482", fix="correct the tree", id="head-range")
    assert str(error) == "fr.conllu:1482: word 9 has head 31 [head-range]\n  correct the tree"
    assert str(DataError("no words", id="empty-file")) == "no words [empty-file]"
    assert str(DataError("no words", where="a.txt")) == "a.txt: no words [error]"


@given(*[st.text(st.sampled_from(CONTROLS + "aé\u0627\u200e"))] * 3)
def test_a_message_holds_no_character_that_a_terminal_obeys(where: str, what: str, fix: str) -> None:
    """What a stranger wrote neither hides a message nor forges a line of it; only a next step may have several."""
    error = DataError(what, where=where, fix=fix, id="x")
    assert not obeyed(str(error))
    assert str(error).count("\n") == (fix.count("\n") + 1 if fix else 0)
    assert error.what == what, "the fields are as they are"


def test_other_characters_of_a_message_stay() -> None:
    text = "Ünïcode\t\u0645\u0631\u062d\u0628\u0627 \u200f\u05e9 ქართული \U0001f600"
    assert text in str(DataError(text))


def test_a_name_that_no_file_has_is_cut_and_a_long_path_stays() -> None:
    path = "/".join(["folder" * 40] * 3)
    assert path in str(DataError("no words", where=path))
    message = str(unknown("transform", "(" * 400, ["inv"]))
    assert message.startswith(f"there is no transform '{'(' * 79}…")
    assert len(message) < 250


@pytest.mark.parametrize("kind", KINDS)
def test_exit_codes(kind: type[DerivlangError]) -> None:
    assert kind("x").exit_code == (2 if kind is UsageError else 1)


def test_the_tree_of_exceptions() -> None:
    assert issubclass(UsageError, DerivlangError)
    assert not issubclass(UsageError, DataError)
    assert issubclass(LayerError, DataError)
    assert issubclass(StoreError, DataError)


@pytest.mark.parametrize("raised", [DataError("x", where="a.txt:3"), UsageError("y", fix="z")])
def test_the_cause_is_not_lost(raised: DerivlangError) -> None:
    with pytest.raises(DerivlangError) as caught:
        raise raised from ValueError("why")
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wikitext3", "there is no source 'wikitext3'; did you mean wikitext103?"),
        ("ud:", "there is no source 'ud:'; did you mean ud?"),
        ("zzz", "there is no source 'zzz'; there are: ner, ud, wikitext103"),
        ("", "there is no source ''; there are: ner, ud, wikitext103"),
    ],
)
def test_unknown_names_answer_with_near_ones_or_all(name: str, message: str) -> None:
    error = unknown("source", name, ["wikitext103", "ud", "ner"])
    assert isinstance(error, UsageError)
    assert str(error) == f"{message} [unknown-source]"


def test_unknown_in_a_place_of_its_own() -> None:
    error = unknown("parameter of perm", "windw", {"window": 1, "seed": 2}, fix="see `derivlang ls`")
    assert str(error) == (
        "there is no parameter of perm 'windw'; did you mean window? [unknown-parameter]\n  see `derivlang ls`"
    )


def test_at_most_three_near_names() -> None:
    error = unknown("split", "test0", ["test1", "test2", "test3", "test4"])
    assert "did you mean " in error.what
    assert error.what.count(" or ") == 2
