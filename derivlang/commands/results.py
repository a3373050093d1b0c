"""`DerivedSet` and `Run`, and what is done with them: `export`, `undo`, `push`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from derivlang.commands.command import Command, function, method
from derivlang.commands.evaluate import Evaluate
from derivlang.commands.folders import InFolder, set_size
from derivlang.core.dependencies import require_torch
from derivlang.core.errors import UsageError, unknown
from derivlang.core.names import split_name
from derivlang.core.settings import setting, typed
from derivlang.display.bar import ProgressBar
from derivlang.formats.places import STDOUT, OptionalPath, PathLike, located
from derivlang.formats.progress import stage
from derivlang.store.settings import ExportOptions, FileOptions, PushOptions

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from derivlang.display.view import View


@dataclass(frozen=True, eq=False, repr=False)
class Export(Command[dict[str, Any]], ExportOptions):
    """Write a derived set in another format, or a run's model with a tokenizer, for use in other tools.

    A line of the format pharaoh has the links i-j of one row, source word first, zero-based and sorted. The lines of
    text and pharaoh correspond, so `--format text --source`, `--format text` and `--format pharaoh` give an aligned
    corpus. Without -o the file goes to standard output and messages to standard error.

    The format transformers is of a run, or of one of its checkpoints: a folder with its model and the tokenizer of the
    derived language (with --source, of the source) for `AutoModel…` and `AutoTokenizer`. It reads words that are joined
    by one space.

    \b
    derivlang export OUT --split test --format text | head
    derivlang export OUT --split test -o test.jsonl
    derivlang export OUT --split test --format pharaoh -o test.links
    derivlang export RUN --format transformers -o MODEL
    """

    derived: PathLike
    out: OptionalPath = setting(
        None, "File to write; of transformers, a folder.", also="-o", unset="standard output", either=True, writes=True,
    )  # fmt: skip

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "rows", "spaces"}: the numbers of rows and of words with a space. Of a model return {"out",
        "language", "entries"}: the language and the size of its tokenizer; also "token_type_ids" if the model needs
        them."""
        from derivlang.store.export import export, format_of

        derived, options = located(self.derived), self.part(ExportOptions)
        if format_of(options, self.out or STDOUT) == "transformers":
            return self._model(derived)
        if self.target is not None:
            fix = "leave it out, or give --format transformers"
            raise UsageError("a derived set has no languages with names", where="--target", fix=fix, id="unused-option")
        with stage("exporting", total=set_size(derived, self.split)):
            return export(derived, options, self.out or STDOUT)

    def _model(self, run: Path) -> dict[str, Any]:
        require_torch()
        from derivlang.evaluation.export import export_model
        from derivlang.evaluation.trained import PretrainedRun
        from derivlang.training.checkpoint import run_and_step
        from derivlang.training.config import TOKEN_TYPES
        from derivlang.training.languages import DERIVED, SOURCE

        for word in typed(self, ("split", "documents")):
            option = word.partition("=")[0]
            raise UsageError(
                "does not apply to the model of a run", where=option, fix=f"leave {option} out", id="unused-option"
            )
        if self.out is None or self.out == STDOUT:
            raise UsageError("a folder cannot be written to standard output", where="-o", fix="name it", id="usage")
        trained = PretrainedRun.load(*run_and_step(run), self.target or "")
        result = export_model(trained, SOURCE if self.source else DERIVED, self.out, force=self.force)
        needs_ids = trained.language_ids and not self.source and trained.config.model_type in TOKEN_TYPES
        return result | ({"token_type_ids": trained.languages.numbers[DERIVED]} if needs_ids else {})


@dataclass(frozen=True, eq=False, repr=False)
class Undo(Command[list[dict[str, Any]]], FileOptions):
    """Restore the source's words, labels and text, in UTF-8; plain text byte for byte.

    Without -o the source goes to standard output and messages to standard error. With a folder, each split becomes
    a file in it.

    \b
    derivlang undo OUT -o FOLDER
    derivlang undo OUT --split test | head
    derivlang undo OUT --split test -o wiki.test.tokens
    """

    derived: PathLike
    out: OptionalPath = setting(
        None, "File to write, or folder for all splits.", also="-o", unset="standard output", either=True, writes=True,
    )  # fmt: skip
    split: str | None = setting(None, "Split to take.", unset="all in a folder, else the only one")

    def __call__(self) -> list[dict[str, Any]]:
        """Return {"out", "rows", "format"} of each file."""
        from derivlang.store.undo_splits import undo_to

        derived = located(self.derived)
        with stage("undoing", total=set_size(derived, self.split)):
            return undo_to(derived, self.split, self.out or STDOUT, force=self.force)


@dataclass(frozen=True, eq=False, repr=False)
class Push(Command[dict[str, Any]], PushOptions):
    """Send a derived set or a run to a repository of the Hugging Face hub.

    A set goes to a dataset repository, a run to a model repository, which is made unless it is there. Files are
    checked against their hashes first. Only files of the result are sent, and none that the hub has already. What
    an earlier push has left there is removed; other files stay. A repository of another result, or of anything else, is
    refused without --force. All files come in one commit, so an interrupted push changes nothing; the same command
    goes on.

    The token comes from `hf auth login` or HF_TOKEN.

    \b
    derivlang push OUT my-name/demo-inverted --dry-run
    """

    result: PathLike
    repository: str

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "kind", "repository", "revision", "url", "files", "commit", "sent", "removed"}: files has the
        bytes of each file by its name; the last three are the last commit, whether this push made it, and the number of
        files that it removed, and null of a dry run."""
        from derivlang.commands.push import push

        return push(located(self.result), self.repository, self.part(PushOptions))


class DerivedSet(InFolder):
    """A derived set. path: its folder. summary: what was counted when it was made, or {}."""

    @property
    def manifest(self) -> dict[str, Any]:
        """What the set says of itself. Raise StoreError if the folder is not a derived set."""
        from derivlang.store.manifest import read_manifest

        return read_manifest(self.path)

    def facts(self) -> dict[str, Any]:
        manifest = self.manifest
        rows = {name: sum(shard["rows"] for shard in split["shards"]) for name, split in manifest["splits"].items()}
        return {"source": manifest["source"]["name"], "spec": manifest["spec"], "rows": rows}

    def __getitem__(self, split: str) -> Dataset:
        """Return a split, as `dataset` does: made["test"][0]. Raise UsageError if there is no such split."""
        splits = self.manifest["splits"]
        if split not in splits:
            raise unknown("split", split, splits)
        return self.dataset(split)

    def show(self, count: int = 3, *, row: int = 0, split: str | None = None) -> View:
        """Return rows of a split as `derivlang show` draws them, from `row` on, by default of the first split.

        A notebook shows the drawings; `print(made.show())` the rows, and `.save(FILE)` writes a page. Raise StoreError
        if there is no such row, or if the set was damaged.
        """
        from derivlang.display.rows import rows_of_set, set_of
        from derivlang.display.view import View

        derived, name = set_of(self.path, split)
        return View(rows_of_set(derived, name, row, count), self.path.name)

    @overload
    def dataset(self, split: None = None) -> DatasetDict: ...

    @overload
    def dataset(self, split: str) -> Dataset: ...

    def dataset(self, split: str | None = None) -> Dataset | DatasetDict:
        """Return the set, or a split of it, as `datasets.load_dataset` does. Raise StoreError as `manifest`.

        The files are named, so that `load_dataset` takes no other files of the folder.
        """
        import datasets

        splits = self.manifest["splits"]
        files = {name: [str(self.path / shard["file"]) for shard in one["shards"]] for name, one in splits.items()}
        if split is not None and split not in files and not {*"[+"} & {*split}:  # `datasets` reads train[:9]
            split = split_name(split)
            if split not in files:
                raise unknown("split", split, files, where=str(self.path))
        loaded: Dataset | DatasetDict = datasets.load_dataset("parquet", data_files=files, split=split)
        return loaded

    def verify(self) -> dict[str, Any]:
        """Derive every row again and compare.

        Return {"ok", "out", "splits", "problems", "notes"}; problems has at most one entry per file. Raise StoreError
        if the folder is not a derived set.
        """
        from derivlang.store.verify import verify

        with ProgressBar():
            return verify(self.path)

    export = method(Export, "export")
    undo = method(Undo, "undo")


class Run(InFolder):
    """A pre-trained run. path: its folder."""

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json. Raise StoreError if the folder is not a run, or was changed."""
        from derivlang.training.run_folder import read

        return read(self.path)

    def facts(self) -> dict[str, Any]:
        record = self.record
        return {name: record[name] for name in ("source", "spec", "objective", "seed", "step", "status")}

    evaluate = method(Evaluate, "evaluate")

    def export(
        self,
        out: PathLike,
        *,
        step: int | None = None,
        source: bool = False,
        target: str | None = None,
        force: bool = False,
    ) -> dict[str, Any]:
        """Write the model with a tokenizer for `transformers`, as `derivlang export --format transformers` does.

        out: the folder to write. step: of a checkpoint, None for the finished model. source: take the source's
        tokenizer. target: a language of a run of several. force: replace a model. Return {"out", "language",
        "entries"}: the language and the size of the tokenizer. Raise DerivlangError as the command.
        """
        place = self.path if step is None else f"{self.path}@{step}"
        return function(Export, "export")(place, out, format="transformers", source=source, target=target, force=force)
