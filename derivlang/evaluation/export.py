"""The folder of a run's model with the tokenizer of one language, for `transformers` and tools that use it.

    RUN/model                    the source's tokenizer, with the model's ids
    RUN/twin/tokenizer.json      numbers the entries from 0; the model's ids are the joint ones (`JointIds`)

An exported tokenizer reads words of the language, joined by one space, and gives the model's ids. It adds no special
tokens. With an overlap of words, derived text has words of both languages, so its tokenizer is the joint one. The
tokenizer of a checkpoint that was trained elsewhere reads both languages.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from derivlang.core.arrays import Int32
from derivlang.core.errors import DataError, StoreError
from derivlang.evaluation.columns import SIDES
from derivlang.evaluation.trained import PretrainedRun
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.pretrained import quiet
from derivlang.lexical.tokenizer import TOKENIZER, Tokenizer
from derivlang.lexical.twin import joint_file
from derivlang.store.folders import is_free, replace_folder
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.model import set_tie
from derivlang.training.own_parts import fold, has_own, refuse_own
from derivlang.training.run_folder import MODEL_FILES

_RECORD = "config.json"  # a folder with it holds a model


def export_model(trained: PretrainedRun, language: int, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the folder of the model with the tokenizer of a language, completely or not at all.

    Return {"out", "language", "entries"}. Raise StoreError if `out` is not empty, unless with `force` a model there is
    replaced, and DataError if no file can be the tokenizer of the language.
    """
    if not is_free(out) and not (force and (out / _RECORD).exists()):
        what = "holds something else than a model" if force else "is not empty"
        raise StoreError(what, where=str(out), fix="give another folder", id="output")
    if language == DERIVED:
        refuse_own(trained.config, str(trained.folder))
    languages = trained.languages
    library = library_file(languages, language)

    def write(fresh: Path) -> None:
        shutil.copytree(trained.model_folder, fresh, dirs_exist_ok=True)
        lm = trained.language_model(torch.device("cpu")).module if trained.language_ids else None
        if lm is not None and has_own(lm):
            set_tie(lm, tie=False)
            fold(lm, languages.numbers[language])
            with quiet():
                lm.save_pretrained(fresh)
        languages.tokenizer.save(fresh)  # for its configuration
        if library is not None:
            (fresh / TOKENIZER).write_text(
                json.dumps(library, ensure_ascii=False, separators=(",", ":")), "utf-8", newline="\n"
            )

    replace_folder(out, write, MODEL_FILES, record=_RECORD, what="model")
    entries = languages.tokenizer.size if library is None else len(library["model"]["vocab"])
    return {"out": str(out), "language": SIDES[language], "entries": entries}


def library_file(languages: Languages, language: int) -> dict[str, Any] | None:
    """Return the content of `tokenizer.json` for a language, with the ids of the run's model.

    None for the tokenizer of a checkpoint, which stays as it is.
    """
    reader = languages.readers[language].tokenizer
    if not isinstance(reader, OwnTokenizer):
        return None
    if not languages.are_mapped:
        return _file(reader.tokenizer, reader.table)
    twin = languages.twin
    separate = twin.joint.separate  # a language with ids of its own
    if language == SOURCE or (twin.map.overlap == 100 and not separate):
        return _file(reader.tokenizer)
    if not twin.map.overlap or (twin.map.overlap == 100 and separate):
        return _file(twin.tokenizer, twin.joint.table())
    both = joint_file(reader.tokenizer, twin.tokenizer, twin.map.script)
    if both.size != twin.joint.size:
        raise DataError(
            "the ids of this language do not follow the source's, as a joint file has them", id="joint-clash"
        )
    return _file(both)


def _file(tokenizer: Tokenizer, table: Int32 | None = None) -> dict[str, Any]:
    """Return the content of `tokenizer.json`. table: int32[V], the id of each entry; None for its own ids."""
    content: dict[str, Any] = json.loads(tokenizer.build().to_str())
    if table is not None:
        ids = table.tolist()
        content["model"]["vocab"] = {entry: ids[i] for entry, i in content["model"]["vocab"].items()}
    return content
