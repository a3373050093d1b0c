"""Where a treebank lies: its folder by name, its files by split, and what a record calls them.

UD_English-EWT  ->  DATA/ud/UD_English-EWT  ->  {"train": …/en_ewt-ud-train.conllu, "dev": …, "test": …}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.sources.find import data_folders
from derivlang.sources.named import SOURCES


def find_treebank(treebank: Path, data_dir: Path | None) -> Path:
    """Return the path of a treebank; a name such as UD_English-EWT is looked up in the data folders."""
    name = str(treebank)
    if treebank.exists() or not name.startswith("UD_") or treebank.name != name:
        return treebank
    folders = data_folders(data_dir)
    corpus = SOURCES.find("pos").find(name.removeprefix("UD_"), folders)
    if corpus is None:
        looked = f" or in {', '.join(map(str, folders))}" if folders else "; no --data-dir was given"
        raise DataError(
            f"there is no treebank {name} in this folder{looked}",
            where="TREEBANK",
            fix=f"pass its path, or move the folder to ud/{name} in a data folder",
            id="missing-file",
        )
    return corpus.parts[0].path.parent


def files_of(treebank: Path, split: str = "train") -> dict[str, Path]:
    """Return the files of a UD folder by split, or a single file as `split`. Raises DataError if `split` is missing."""
    if not treebank.is_dir():
        return {split: treebank}
    files = {}
    for name in {"train", "dev", "test", split}:
        matches = sorted(path for path in treebank.iterdir() if f"-{name}.conllu" in path.name)
        if len(matches) > 1:
            raise DataError(
                f"the folder has several files *-{name}.conllu: {', '.join(path.name for path in matches)}",
                where=str(treebank),
                fix="name one of them, or put each treebank into a folder of its own",
                id="missing-file",
            )
        if matches:
            files[name] = matches[0]
    if split not in files:
        others = " or ".join(sorted(files))
        raise DataError(
            f"the folder has no *-{split}.conllu",
            where=str(treebank),
            fix=f"name a file; there is {others}" if files else "name a CoNLL-U file or its folder",
            id="missing-file",
        )
    return files


def names_of(files: Sequence[Path]) -> dict[Path, str]:
    """Return the name of each file in a model card, with as many folders as files of the same name need to differ."""
    whole = {path: path.resolve() for path in files}
    names = {path: path.name for path in files}
    for n_parts in range(2, max((len(path.parts) for path in whole.values()), default=0) + 1):
        count = Counter(names[path] for path in {whole[path]: path for path in files}.values())
        names |= {path: "/".join(whole[path].parts[-n_parts:]) for path in files if count[names[path]] > 1}
    return names
