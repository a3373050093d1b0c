"""CoNLL-U in and out: notes in MISC, sentences without trees, comments, and exports that the UD validator takes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.commands import ROOT, make, run, trees, written
from tests.transforms import EVERY, SAMPLES, few

CASES = ROOT / "tests" / "cases"
# Valid at level 2: multiword tokens, an empty node and what depends on it, notes that hold for an order, words that
# reach each other in DEPS, a sentence of marks only, and a word with a space.
VALID = """\
# newdoc id = d
# global.Entity = eid-etype-head-other
# sent_id = d-1
# text = The old dog won't bark and the cat fish, I think.
1	The	the	DET	DT	Definite=Def|PronType=Art	3	det	3:det	Entity=(e1-animal-3-new
2	old	old	ADJ	JJ	Degree=Pos	3	amod	3:amod	_
3	dog	dog	NOUN	NN	Number=Sing	6	nsubj	6:nsubj	Entity=e1)
4-5	won't	_	_	_	_	_	_	_	_
4	will	will	AUX	MD	VerbForm=Fin	6	aux	6:aux	_
5	not	not	PART	RB	_	6	advmod	6:advmod	_
6	bark	bark	VERB	VB	VerbForm=Inf	0	root	0:root	CxnElt=6:Coordination.First,9:Coordination.Second
7	and	and	CCONJ	CC	_	9	cc	9.1:cc	_
8	the	the	DET	DT	Definite=Def|PronType=Art	9	det	9:det	_
9	cat	cat	NOUN	NN	Number=Sing	6	conj	9.1:nsubj	_
9.1	eats	eat	VERB	VBZ	VerbForm=Fin	_	_	6:conj:and	CopyOf=6|Entity=(e3-x-1-new)
10	fish	fish	NOUN	NN	Number=Sing	9	orphan	9.1:obj	SpaceAfter=No
11	,	,	PUNCT	,	_	13	punct	13:punct	_
12	I	I	PRON	PRP	Person=1	13	nsubj	13:nsubj	_
13	think	think	VERB	VBP	Number=Sing	6	parataxis	6:parataxis	PARSEME:MWE=1:VID|SpaceAfter=No
14	.	.	PUNCT	.	_	6	punct	6:punct	_

# sent_id = d-2
# text = It's the house that she in 20 000 visits gives up !
1-2	It's	_	_	_	_	_	_	_	_
1	It	it	PRON	PRP	_	4	nsubj	4:nsubj	_
2	's	be	AUX	VBZ	VerbForm=Fin	4	cop	4:cop	_
3	the	the	DET	DT	_	4	det	4:det	_
4	house	house	NOUN	NN	Number=Sing	0	root	0:root|10:obj	NamedEntity=B-LOC
5	that	that	PRON	WDT	PronType=Rel	10	obj	4:ref	NamedEntity=I-LOC
6	she	she	PRON	PRP	_	10	nsubj	10:nsubj	NamedEntity=Yes
7	in	in	ADP	IN	_	9	case	9:case	_
8	20 000	20000	NUM	CD	NumType=Card	9	nummod	9:nummod	_
9	visits	visit	NOUN	NNS	Number=Plur	10	obl	10:obl:in	_
10	gives	give	VERB	VBZ	VerbForm=Fin	4	acl:relcl	4:acl:relcl	PARSEME:MWE=1:VPC.full;2:LVC.full
11	up	up	ADP	RP	_	10	compound:prt	10:compound:prt	PARSEME:MWE=1
12	!	!	PUNCT	.	_	4	punct	4:punct	_

# sent_id = d-3
# text = ...!
1	...	...	PUNCT	.	_	0	root	0:root	SpaceAfter=No
2	!	!	PUNCT	.	_	1	punct	1:punct	_

"""


def undone(out: Path) -> bytes:
    back = out.with_name(f"{out.name}.conllu")
    run("undo", out, "-o", back)
    return back.read_bytes()


def exported(out: Path, *options: object) -> str:
    file = out.with_name(f"{out.name}.export.conllu")
    run("export", out, "--format", "conllu", "-o", file, *options)
    return file.read_text("utf-8")


def misc(text: str) -> list[str]:
    return [line.split("\t")[9] for line in text.splitlines() if line[:1].isdigit()]


def column(text: str, number: int) -> list[str]:
    return [line.split("\t")[number] for line in text.splitlines() if line.split("\t")[0].isdecimal()]


# notes in MISC


def sentence(*notes: str, empty: str = "") -> str:
    words = [f"{i}\tw{i}\tw{i}\tNOUN\t_\t_\t{i - 1}\tdep\t_\t{note}" for i, note in enumerate(notes, start=1)]
    words[0] = words[0].replace("dep", "root")
    return "\n".join([*words, *([f"{len(words)}.1\tx\tx\tNOUN\t_\t_\t_\t_\t1:dep\t{empty}"] if empty else [])]) + "\n\n"


LEFT_OUT = "misc-{}-dropped"


@pytest.mark.parametrize(
    ("spec", "notes", "expected", "dropped"),
    [
        ("inv", "CopyOf=1 A=b Head=2", "Head=2 A=b CopyOf=3", {}),
        ("inv", "CxnElt=1:A.B,3:C.D#2 _ _", "_ _ CxnElt=3:A.B,1:C.D#2", {}),
        ("inv", "CheckAttachment=2 CopyOf=-1 CopyOf=2.1|G=2", "CopyOf=2.1|G=2 CopyOf=-1 CheckAttachment=2", {}),
        ("inv", "CopyOf=9 Head=0 _", "_ Head=0 _", {"CopyOf": 1}),
        (
            "inv",
            "PARSEME:MWE=1:VID;2 PARSEME:MWE=2:LVC PARSEME:MWE=1",
            "PARSEME:MWE=1:VID PARSEME:MWE=2:LVC PARSEME:MWE=1;2",
            {},
        ),
        ("inv", "PARSEME:MWE=* PARSEME:NE=1:P PARSEME:NE=1", "PARSEME:NE=1:P PARSEME:NE=1 PARSEME:MWE=*", {}),
        ("inv", "Entity=(e1-x Gloss=( A=1|Entity=e1)|SpaceAfter=No", "A=1 Gloss=( _", {"Entity": 2}),
        (
            "inv",
            "NamedEntity=B-PER NamedEntity=Yes LUWBILabel=I",
            "_ NamedEntity=Yes _",
            {"NamedEntity": 1, "LUWBILabel": 1},
        ),
        ("inv", "Bridge=1<2|SplitAnte=1<3,2<3 XML=<a> XML=</a>", "_ _ _", {"Bridge": 1, "SplitAnte": 1, "XML": 2}),
        ("identity", "Entity=(e1-x CopyOf=1|PDTB=a:1-2 Entity=e1)", "Entity=(e1-x CopyOf=1|PDTB=a:1-2 Entity=e1)", {}),
        ("trans:greek", "Entity=(e1-x CopyOf=1 Entity=e1)", "Entity=(e1-x CopyOf=1 Entity=e1)", {}),
    ],
)
def test_notes_that_hold_for_an_order_follow_it(
    spec: str, notes: str, expected: str, dropped: dict[str, int], tmp_path: Path
) -> None:
    """`inv` turns all three words, as none is a mark. A second sentence of the same notes counts them by itself."""
    path = written(tmp_path / "a.conllu", 2 * sentence(*notes.split()))
    result = make(spec, path, tmp_path / "out")
    assert misc(exported(tmp_path / "out")) == 2 * expected.split()
    assert result["dropped"] == {LEFT_OUT.format(name): 2 * n for name, n in dropped.items()}
    assert undone(tmp_path / "out") == path.read_bytes()
    run("verify", tmp_path / "out")


def test_notes_of_deleted_and_inserted_words_and_of_empty_nodes(tmp_path: Path) -> None:
    text = sentence("CopyOf=2", "PARSEME:MWE=1:VID", "PARSEME:MWE=1", "CxnElt=2:A,4:B", empty="CopyOf=4|Entity=(e1)")
    path = written(tmp_path / "a.conllu", text.replace("w2\tNOUN", "w2\tDET"))
    dropped = make("drop:upos=DET", path, tmp_path / "out")["dropped"]
    assert misc(exported(tmp_path / "out")) == ["_", "PARSEME:MWE=1:VID", "CxnElt=3:B", "CopyOf=3"]
    assert dropped == {"misc-CopyOf-dropped": 1, "misc-CxnElt-dropped": 1, "misc-Entity-dropped": 1}
    assert undone(tmp_path / "out") == path.read_bytes()
    make("inv:mark=R", path, tmp_path / "marked")
    assert column(exported(tmp_path / "marked"), 1) == ["w4", "w3", "w2", "R", "w1"]
    assert misc(exported(tmp_path / "marked"))[:2] == ["CxnElt=3:A,1:B", "CopyOf=1"]
    assert undone(tmp_path / "marked") == path.read_bytes()


def test_what_is_left_out_is_one_line_by_key(tmp_path: Path) -> None:
    said = run("make", "--t", "inv", written(tmp_path / "a.conllu", VALID), "-o", tmp_path / "out").out
    line = next(line for line in said.splitlines() if "notes of misc" in line)
    assert line.endswith(": Entity 3, NamedEntity 2")


def test_the_cases_with_coreference_and_expressions(tmp_path: Path) -> None:
    for name, expected in (
        ("a13_coref", ["_"] * 9),
        ("a15_cupt_in_misc", ["PARSEME:MWE=1:VPC.full", "_", "_", "PARSEME:MWE=1", "_", "_"]),
    ):
        path = CASES / "data" / f"{name}.conllu"
        make("inv", path, tmp_path / name)
        assert misc(exported(tmp_path / name)) == expected
        assert undone(tmp_path / name) == path.read_bytes()


# sentences without a whole tree, and comments

PARTIAL = sentence("_", "_", "_").replace("\t1\tdep", "\t_\tdep")


@pytest.mark.parametrize("name", ["a12_nohead", "a12b_all_", "a4_roots", "a5_comments", "a10_gap", PARTIAL])
@pytest.mark.parametrize("spec", ["identity", "inv", "perm", "trans,inv", "drop:upos=PUNCT", "hop"])
def test_no_tree_is_needed_to_move_words(name: str, spec: str, tmp_path: Path) -> None:
    path = CASES / "data" / f"{name}.conllu" if "\t" not in name else written(tmp_path / "a.conllu", name)
    make(spec, path, tmp_path / "out")
    run("verify", tmp_path / "out")
    assert undone(tmp_path / "out") == path.read_bytes()
    text = exported(tmp_path / "out")
    if spec != "drop:upos=PUNCT":
        before = path.read_text("utf-8")
        assert Counter(column(text, 6)).keys() & {"_", "0"} == Counter(column(before, 6)).keys() & {"_", "0"}
        assert Counter(column(text, 7)) == Counter(column(before, 7))


@pytest.mark.parametrize(
    ("name", "line", "what"), [("a12_nohead", 2, "has no head"), ("a4_roots", 5, "a word before it is the root")]
)
@pytest.mark.parametrize("spec", ["syn:fr", "inv,sov:svo", "swap"])
def test_transforms_of_trees_refuse_it(name: str, line: int, what: str, spec: str, tmp_path: Path) -> None:
    path = CASES / "data" / f"{name}.conllu"
    ran = run("make", "--t", spec, path, "-o", tmp_path / "out", code=1)
    assert f"{path}:{line}" in ran.err
    assert what in ran.err


def test_several_roots_stay_where_words_are_deleted(tmp_path: Path) -> None:
    make("drop:upos=PUNCT", CASES / "data" / "a4_roots.conllu", tmp_path / "out")
    assert column(exported(tmp_path / "out"), 6) == ["0", "0"]


def test_comments_before_an_empty_line_belong_to_the_next_sentence(tmp_path: Path) -> None:
    text = "# one\n\n\n# two\n\n" + sentence("_") + "# three\n\n" + sentence("_", "_")
    path = written(tmp_path / "a.conllu", text)
    assert make("inv", path, tmp_path / "out")["splits"]["train"]["documents"] == 2
    assert undone(tmp_path / "out") == path.read_bytes()
    assert exported(tmp_path / "out").startswith("# one\n# two\n# text = w1\n1\t")


def test_comments_after_the_last_sentence_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu", sentence("_") + "# one\n\n# two\n")
    err = run("make", "--t", "inv", path, "-o", tmp_path / "out").err
    assert "2 comment lines after the last sentence left out" in err


def test_a_large_file_is_not_cut_between_comments_and_their_sentence(tmp_path: Path) -> None:
    from derivlang.formats.conllu import cut, read
    from derivlang.formats.opening import Piece

    path = written(tmp_path / "a.conllu", ("# a\n\n# b\n\n\n" + sentence("_", "_")) * 50)
    for target in (1, 40, 100):
        begins = cut(path, path.stat().st_size, target)
        pieces = [Piece(*ends) for ends in zip(begins, [*begins[1:], path.stat().st_size], strict=True)]
        rows = [row for piece in pieces for rows in read(path, piece=piece) for row in rows.table.to_pylist()]
        assert len(begins) > 10
        assert [row["comments"] for row in rows] == [["# a", "", "# b", "", ""]] * 50


# exports


@cache
def validator() -> Any:
    from udtools import Validator

    return Validator(lang="ud", level=2, output=None)


def incidents(path: Path) -> Counter[str]:
    return Counter(incident.testid for incident in validator().validate_files([str(path)]).error_tracker)


SPECS = [
    str(one)
    for one in few(EVERY)
    if {*one.needs} <= {"head", "upos", "feats", "lemmas"} and not isinstance(one, SAMPLES) and one.name != "drop-punct"
]


@pytest.mark.parametrize("options", [(), ("--mwt", "atomic")])
def test_the_validator_finds_nothing_new_in_exports(options: tuple[str, ...], tmp_path: Path) -> None:
    """Over the default and the last setting of each transform; one in three with multiword tokens as one word."""
    source = written(tmp_path / "a.conllu", VALID)
    assert not incidents(source)
    found = {}
    for number, spec in enumerate(SPECS[:: 3 if options else 1]):
        out = tmp_path / f"out{number}"
        make(spec, source, out, *options)
        exported(out)
        if new := incidents(out.with_name(f"{out.name}.export.conllu")):
            found[spec] = new
    assert not found


@pytest.mark.parametrize(
    "spec",
    ["identity", "hop", "case:suffix=free", "inv:mark=R", "drop:function", "drop:upos=VERB+NOUN", "drop:upos=PUNCT"],
)
def test_exports_are_valid_and_undo_is_exact(spec: str, tmp_path: Path) -> None:
    for number, source in enumerate((written(tmp_path / "a.conllu", VALID), CASES / "orders" / "multiword.conllu")):
        out = tmp_path / f"out{number}"
        make(spec, source, out)
        run("verify", out)
        text = exported(out)
        assert incidents(out.with_name(f"{out.name}.export.conllu")) <= incidents(source)
        assert "_" not in column(text, 8)
        assert undone(out) == source.read_bytes()


def test_the_text_of_an_export_has_its_multiword_tokens(tmp_path: Path) -> None:
    make("identity", CASES / "orders" / "multiword.conllu", tmp_path / "out")
    assert "# text = Dogs won't bark\n" in exported(tmp_path / "out")
    make("identity", trees(tmp_path), tmp_path / "other")
    assert "# text = Je vais au parc ( demain ) .\n" in exported(tmp_path / "other")


def test_sentences_without_words_are_not_exported(tmp_path: Path) -> None:
    make("drop:upos=PUNCT", written(tmp_path / "a.conllu", VALID), tmp_path / "out")
    err = run("export", tmp_path / "out", "-o", tmp_path / "x.conllu").err
    assert "1 sentence without words left out: CoNLL-U cannot hold them" in err
    assert (tmp_path / "x.conllu").read_text("utf-8").count("# sent_id") == 2


def test_a_tree_with_a_branching_root_stays_one_tree(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", "( (S (NP Ann) (VP ran)) (X !) )\n( (S Bo) )\n")
    for spec, lines in (
        ("identity", ["( (S (NP Ann) (VP ran)) (X !) )", "(S Bo)"]),
        ("inv", ["( (S (VP ran) (NP Ann)) (X !) )", "(S Bo)"]),
    ):
        out = tmp_path / spec
        make(spec, path, out)
        run("export", out, "-o", tmp_path / f"{spec}.mrg")
        assert (tmp_path / f"{spec}.mrg").read_text().splitlines() == lines
        run("undo", out, "-o", tmp_path / f"{spec}.back.mrg")
        assert (tmp_path / f"{spec}.back.mrg").read_bytes() == path.read_bytes()
