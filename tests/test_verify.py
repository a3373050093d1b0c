"""What `verify` finds in a set whose hashes were forged, and what no command does with a hostile one."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.seal import hash_of
from derivlang.store.card import card
from derivlang.store.manifest import Derived
from tests import commands
from tests.commands import make, once, run, shards, snapshot, wiki, written

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And  more ! \n" for i in range(60))
KINDS = ["wiki", "trees", "entities", "pairs", "questions"]


@once
def _text(folder: Path) -> None:
    make("trans,perm", wiki(folder, TEXT), folder / "out", "--shard-tokens", 300)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    _text(tmp_path)
    return tmp_path / "out"


def found(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = run("verify", out, "--json", code=None).json
    return result


def forge(out: Path) -> None:
    """Bring all hashes of a manifest up to date, as somebody does who changes a set with care."""
    file = out / "derivlang.json"
    manifest = json.loads(file.read_text("utf-8"))
    for entry in manifest["splits"].values():
        for shard in entry["shards"]:
            content = (out / shard["file"]).read_bytes()
            shard |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest["sha256"] = hash_of(manifest)
    file.write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")


def rewrite(shard: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = change(pq.read_table(shard))
    pq.write_table(table, shard, compression="zstd", store_schema=False)


# Files


def test_an_extra_shard_is_found_and_never_removed(text: Path, tmp_path: Path) -> None:
    extra = text / "data" / "test-00009-of-00010.parquet"
    extra.write_bytes(shards(text)[0].read_bytes())
    result = found(text)
    assert [problem["file"] for problem in result["problems"]] == [f"data/{extra.name}"]
    ran = run("make", "--t", "trans,perm", tmp_path / "wiki.test.tokens", "-o", text, "--shard-tokens", 300, code=1)
    assert extra.name in ran.err
    assert extra.exists()


@pytest.mark.parametrize(
    "name", ["data/notes.txt", "data/deep/x.parquet", "lexicon.tsv", "notes.txt", "more/x.parquet"]
)
def test_a_foreign_file_is_found(text: Path, name: str) -> None:
    written(text / name, "foreign")
    (problem,) = found(text)["problems"]
    assert name.startswith(problem["file"])


def test_what_a_hub_adds_is_known(text: Path) -> None:
    for name in (".gitattributes", ".cache/huggingface/x", ".git/config", "data/.DS_Store"):
        written(text / name, "of the hub")
    result = found(text)
    assert (result["ok"], result["notes"]) == (True, [])


@pytest.mark.parametrize("edit", ["edited", "missing"])
def test_an_edited_card_is_noted(text: Path, edit: str) -> None:
    card = text / "README.md"
    if edit == "edited":
        card.write_text(card.read_text("utf-8") + "\nA word of thanks.\n", "utf-8")
    else:
        card.unlink()
    result = found(text)
    assert result["ok"]
    assert [note["file"] for note in result["notes"]] == ["README.md"]
    assert (
        f"note: README.md: the dataset card {'was edited' if edit == 'edited' else 'is missing'}"
        in run("verify", text).out
    )


# The manifest


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place of a JSON value that holds no other value, with it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None or not value:
        yield path, value
        return
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.5
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return [1] if isinstance(value, list) else {"x": 1} if isinstance(value, dict) else "x"


def test_each_leaf_of_a_manifest_is_checked(tmp_path: Path) -> None:
    """Of sets of three kinds: of the second and the third, the places that the former have not."""
    tried = set[tuple[Any, ...]]()
    for kind in ("wiki", "trees", "questions"):
        out = tmp_path / kind / "out"
        make("trans,inv", getattr(commands, kind)(tmp_path / kind), out)
        file = out / "derivlang.json"
        whole = file.read_text("utf-8")
        places = list(leaves(json.loads(whole)))
        assert len(places) > 50
        assert list(json.loads(whole))[-1] == "sha256"
        missed = []
        new = [(path, value) for path, value in places if path not in tried]
        assert new
        for path, value in new:
            commands.edit_manifest(out, path, other(value))
            if run("verify", out, code=None).code != 1:
                missed.append(path)
            file.write_text(whole, "utf-8")
        assert missed == []
        assert run("verify", out).code == 0
        tried.update(path for path, _ in places)


@pytest.mark.parametrize("kind", ["wiki", "questions"])
def test_a_manifest_without_a_field_or_of_other_types_is_one_error(tmp_path: Path, kind: str) -> None:
    """Its hash forged; whatever a command makes of it, it is no traceback.

    Each field has values of four kinds, and one of the others in turn; of each, `verify` and one other command in turn.
    """
    out = tmp_path / "out"
    make("trans,inv", getattr(commands, kind)(tmp_path), out)
    file = out / "derivlang.json"
    manifest = json.loads(file.read_text("utf-8"))
    readers: list[tuple[tuple[object, ...], tuple[int, ...]]] = [
        (("undo", out, "-o", tmp_path / "x"), (0, 1)),
        (("show", out), (0, 1)),
        (("export", out, "--format", "jsonl", "-o", tmp_path / "x"), (0, 1)),
        (("make", "--t", "inv", out, "-o", tmp_path / "other", "--force"), (0, 1, 2)),
    ]
    for number, (other, name) in enumerate(zip(cycle(([], [[]], -1)), manifest, strict=False)):
        for place, value in enumerate((None, 7, "x", {}, other)):
            changed = {**manifest, name: value}
            if value is None:
                del changed[name]
            written(file, json.dumps({**changed, "sha256": hash_of(changed)}))
            for command, codes in ((("verify", out), (0, 1)), readers[(number + place) % len(readers)]):
                assert run(*command, code=None).code in codes, (name, value, command)


def test_a_manifest_nested_deeply_is_one_error(text: Path) -> None:
    written(text / "derivlang.json", "[" * 100_000)
    for command in (
        ["verify"],
        ["undo", "-o", text.parent / "x"],
        ["show"],
        ["export", "--format", "text", "-o", text.parent / "x"],
    ):
        assert "[manifest]" in run(command[0], text, *command[1:], code=1).err


def test_a_line_end_changed_in_the_lexicon_is_found(tmp_path: Path) -> None:
    out = tmp_path / "set"
    run("make", "--t", "trans:overlap=20", "demo", "-o", out, "--splits", "test")
    lexicon = out / "lexicon.tsv"
    lexicon.write_bytes(lexicon.read_bytes().replace(b"changed\n", b"changed\r\n", 1))
    assert "lexicon.tsv" in run("verify", out, code=1).err


@pytest.mark.parametrize(
    "name",
    [
        "../x.parquet",
        "data/../../x.parquet",
        "{}",
        "data/sub/x.parquet",
        "x.parquet",
        "data",
        f"data/{'é' * 124}.parquet",
    ],
)
def test_a_path_that_no_shard_has_is_refused(text: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "x.parquet"
    outside.write_bytes(shards(text)[0].read_bytes())
    commands.edit_manifest(text, ["splits", "test", "shards", 0, "file"], name.replace("{}", str(outside)))
    forge_paths_refused(text, tmp_path)


@pytest.mark.parametrize("what", ["shard", "data", "lexicon"])
def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    make("trans:overlap=50", "wikitext103", out, "--data-dir", commands.wikitext103(tmp_path))
    at = {"shard": shards(out)[0], "data": out / "data", "lexicon": out / "lexicon.tsv"}[what]
    at.rename(tmp_path / "elsewhere")
    at.symlink_to(tmp_path / "elsewhere")
    forge_paths_refused(out, tmp_path)


def forge_paths_refused(out: Path, tmp_path: Path) -> None:
    for command in (
        ["verify"],
        ["undo", "-o", out.parent / "x"],
        ["show"],
        ["export", "--format", "text", "-o", out.parent / "x"],
    ):
        assert "[manifest]" in run(command[0], out, *command[1:], code=1).err
    assert "[manifest]" in run("make", "--t", "inv", out, "-o", tmp_path / "new", code=1).err


# Shards whose hashes are forged


def test_forging_alone_changes_nothing(text: Path) -> None:
    forge(text)
    assert found(text)["ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    make("trans,inv", getattr(commands, kind)(tmp_path), out)
    (shard,) = shards(out)
    whole = shard.read_bytes()
    for name in pq.read_schema(shard).names:
        rewrite(shard, lambda table, name=name: table.drop_columns([name]))  # type: ignore[misc]
        forge(out)
        (problem,) = found(out)["problems"]
        assert problem["file"] == f"data/{shard.name}", name
        assert name in problem["what"] or name == "deps"
        for command in (["undo"], ["export", "--format", "jsonl"]):
            assert run(command[0], out, *command[1:], "-o", out.parent / "x", code=None).code in (0, 1)
        shard.write_bytes(whole)


def test_no_command_reads_a_shard_that_was_changed(tmp_path: Path) -> None:
    """The row still fits together, so only the hash shows that a word is another."""
    out = tmp_path / "out"
    make("inv", wiki(tmp_path, "the cat sat .\n"), out)
    commands.change(shards(out)[0], "tokens", 0, [".", "sat", "dog", "the"])
    before = sorted(tmp_path.rglob("*"))
    for command in (["undo"], ["export", "--format", "text"], ["pair", "--format", "text"]):
        assert "[damaged]" in run(command[0], out, *command[1:], "-o", tmp_path / "x", code=1).err, command
    for command in ("show", "stats"):
        assert "[damaged]" in run(command, out, code=1).err
    ends = f"{out}: 0 rows checked, 1 file wrong; a file is checked up to its fault\n"
    assert run("verify", out, code=1).out.endswith(ends)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.list_(pa.int16()), pa.list_(pa.float32()), pa.list_(pa.string())]
)
def test_an_order_of_another_type_is_found(text: Path, kind: pa.DataType) -> None:
    shard = shards(text)[0]

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("order")
        return table.set_column(at, "order", table["order"].cast(kind))

    rewrite(shard, change)
    forge(text)
    (problem,) = found(text)["problems"]
    assert problem["file"] == f"data/{shard.name}"


def test_rows_exchanged_in_a_shard_are_found(text: Path) -> None:
    shard = shards(text)[0]
    for order in ([0, 2, 1], [1, 0, 2], [0, 1, 4, 3, 2]):
        whole = shard.read_bytes()
        rewrite(shard, lambda table: table.take([*order, *range(len(order), table.num_rows)]))  # noqa: B023
        forge(text)
        assert not found(text)["ok"], order
        shard.write_bytes(whole)


def test_rows_exchanged_between_shards_are_found(tmp_path: Path) -> None:
    for name in ("a.test.conllu", "b.test.conllu"):
        commands.trees(tmp_path / "in", name=name)
    make("perm", tmp_path / "in", tmp_path / "trees", "--shard-tokens", 1)
    make("perm", wiki(tmp_path, TEXT), tmp_path / "text", "--shard-tokens", 300)
    for out in (tmp_path / "trees", tmp_path / "text"):
        first, second = shards(out)[:2]
        one, two = pq.read_table(first), pq.read_table(second)
        for shard, rest, row in ((first, one, two), (second, two, one)):
            table = pa.concat_tables([row.slice(0, 1), rest.slice(1)])
            pq.write_table(table, shard, compression="zstd", store_schema=False)
        forge(out)
        assert not found(out)["ok"], out


def test_another_gap_is_found(text: Path) -> None:
    shard = shards(text)[0]
    gaps = pq.read_table(shard)["gaps"].to_pylist()
    row = next(i for i, values in enumerate(gaps) if "  " in values)
    commands.change(shard, "gaps", row, ["\t" if gap == "  " else gap for gap in gaps[row]])
    forge(text)
    (problem,) = found(text)["problems"]
    assert "source" in problem["what"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff A line .\n",
        "a b\r\nc  d\r\n",
        "\n\n a \n\n\n b",
        " x \n" * 3 + "\n \t\n",
        "e\u0301 \u00a0 x\u2028y \n",
        "\x0ca\n",
    ],
    ids=["mark", "dos", "empty lines", "white end", "odd spaces", "form feed"],
)
@pytest.mark.parametrize("suffix", ["txt", "tokens"])
@pytest.mark.parametrize("files", [1, 2])
def test_right_text_is_right(tmp_path: Path, content: str, suffix: str, files: int) -> None:
    """The text undone is compared with the source's hash; `--limit` and parts are right, too."""
    for number in range(files):
        written(tmp_path / "in" / f"{number}.test.{suffix}", content)
    for number, options in enumerate(([], ["--limit", 1], ["--shard-tokens", 1])):
        make("trans,inv", tmp_path / "in", tmp_path / str(number), *options)
        assert found(tmp_path / str(number))["problems"] == []


# Hostile numbers

HUGE = (2**31 - 1, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_of_a_shard_takes_much_memory(tmp_path: Path, kind: str) -> None:
    """What is allocated follows from the columns that are in memory, never from a number in them.

    Each column meets `verify` with each number, and each other command with one of them.
    """
    out = tmp_path / "out"
    make("trans,inv", getattr(commands, kind)(tmp_path), out)
    (shard,) = shards(out)
    whole = shard.read_bytes()
    schema = pq.read_schema(shard)
    others: list[list[Any]] = [
        ["undo", "-o", out.parent / "x"],
        ["show"],
        ["export", "--format", "jsonl", "-o", out.parent / "x"],
    ]
    for number, field in enumerate(schema):
        for place, value in enumerate(HUGE):
            changed = hostile(field.type, value)
            if changed is None:
                continue
            commands.change(shard, field.name, 0, changed)
            forge(out)
            for command in (["verify"], others[(number + place) % len(others)]):
                tracemalloc.start()
                ran = run(command[0], out, *command[1:], code=None)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert ran.code in (0, 1), (field.name, value, command)
                assert peak < 64 << 20, (field.name, value, command, peak)
            shard.write_bytes(whole)


def hostile(kind: pa.DataType, value: int) -> Any:
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        return [value, value]
    if pa.types.is_struct(kind):
        return {"text": ["x"], "answer_start": [value]}
    return value if pa.types.is_signed_integer(kind) else None


def test_a_shard_without_rows(text: Path) -> None:
    shard = shards(text)[0]
    rewrite(shard, lambda table: table.slice(0, 0))
    forge(text)
    assert not found(text)["ok"]
    for command in (
        ["undo", "-o", text.parent / "x"],
        ["show"],
        ["export", "--format", "text", "-o", text.parent / "x"],
    ):
        assert run(command[0], text, *command[1:], code=None).code in (0, 1)


def test_a_flipped_byte_in_the_name_of_a_column(text: Path) -> None:
    shard = shards(text)[0]
    whole = shard.read_bytes()
    at = whole.index(b"sentences")
    for flip in (0x80, 0xFF, 0x01):
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        for forged in (False, True):
            if forged:
                forge(text)
            (problem,) = found(text)["problems"]
            assert problem["file"] == f"data/{shard.name}"
            for command in (
                ["undo", "-o", text.parent / "x"],
                ["show"],
                ["export", "--format", "text", "-o", text.parent / "x"],
            ):
                assert run(command[0], text, *command[1:], code=None).code in (0, 1)


def test_a_count_of_twenty_digits_in_a_lexicon(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make("trans:overlap=50", "wikitext103", out, "--data-dir", commands.wikitext103(tmp_path))
    lexicon = (out / "lexicon.tsv").read_text("utf-8")
    written(out / "lexicon.tsv", lexicon.replace("\t5\t", f"\t{'9' * 20}\t", 1))
    ran = run("verify", out, code=1)
    assert str(out / "lexicon.tsv") in ran.err
    assert "[lexicon]" in ran.err


# The card


@pytest.mark.parametrize(
    "language", ["no", "fr]\nlicense: mit\nx: [", 'a"b', "zh-Hans", "null", "en: x", "#", "\u00e9", "e\x7fn"]
)
def test_the_card_holds_what_it_is_told_and_no_more(tmp_path: Path, language: str) -> None:
    yaml = pytest.importorskip("yaml")
    make("inv", wiki(tmp_path), tmp_path / "out", "--lang", language)
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    front = yaml.safe_load(text.split("---\n")[1])
    assert set(front) == {"license", "language", "tags", "configs"}
    assert front["language"] == [language]
    assert front["license"] == "other" or front["license"] == "unknown"


def test_the_card_shows_the_names_of_files_and_columns_as_text(text: Path) -> None:
    manifest = Derived(text).manifest
    name, option = "<img src=x onerror=alert(1)>|a`b &amp; a_b [c](d).txt", "--text-column=a\n<b>"
    hostile = {"name": name, "licence": "<b>", "citation": "&lt;b>\n<i>"}
    shown = card({**manifest, "spec": "lex:``", "options": [option], "source": {**manifest["source"], **hostile},
                  "changed": {"a|<b>\nc-split": 3}}, "lex:``")  # fmt: skip
    body = shown.split("---\n", 2)[2]
    safe = "&#60;img src=x onerror=alert(1)>|a&#96;b &#38;amp; a_b [c]&#40;d).txt"
    assert f"# {safe} under ``` lex:`` ```\n" in body
    assert f"\n{safe}; licence of the source: &#60;b>.\n\n&#38;lt;b>\n&#60;i>\n" in body
    assert "\n| a&#124;&#60;b> c-split | 3 |\n" in body
    assert [line[:4] for line in body.splitlines() if "<" in line] == ["    "]  # code: the recipe


def test_nothing_is_written_by_verify(text: Path) -> None:
    before, times = snapshot(text), {path: path.stat().st_mtime_ns for path in text.rglob("*")}
    found(text)
    assert snapshot(text) == before
    assert {path: path.stat().st_mtime_ns for path in text.rglob("*")} == times
