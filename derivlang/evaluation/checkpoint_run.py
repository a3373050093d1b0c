"""The folder of a checkpoint that is measured as it is: what `evaluate` reads of a run, without a training.

    OUT/run.json           the derived language, the source of held-out text, and where the checkpoint is
    OUT/tokenizer          the checkpoint's; OUT/lexicon.tsv if a lexicon was fitted

The model stays where it is. Evaluations and reports take the folder like a run's folder.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import ArtifactKind
from derivlang.training import run_folder
from derivlang.training.begun_from import checkpoint_folder, config_of
from derivlang.training.checkpoint import hash_of_weights
from derivlang.training.languages import LEXICON, TOKENIZER, of_texts
from derivlang.training.record import reading_of
from derivlang.training.run_folder import FILES, with_hashes

CHECKPOINT_RUNS = ArtifactKind(
    noun="evaluation",
    record=run_folder.RUN,
    names=(run_folder.RUN, LEXICON, f"{TOKENIZER}/*", f"{SPEC_FILES}/*"),
    read=run_folder.read,
    files=lambda record: record[FILES],
    words={
        "weights": "the weights of the checkpoint are others",
        "tokenizer": "the tokenizer of the checkpoint is another one",
        "fingerprint": "a file of its transforms, the text of its lexicon or a rule of derivlang has changed",
    },
    shared=True,  # with the results
    fix="give another folder with -o",
    id="other-run",
)


def write_checkpoint_run(out: Path, init: str, spec: str, request: SourceRequest, *, parser: str | None = None) -> None:
    """Write the folder of a checkpoint, unless it is there. A file of it that is missing is written again.

    init: FOLDER or hub:NAME. parser: not used here; a warning says that it has no effect if the order needs no trees.
    Raise UsageError if init is not a checkpoint or the spec does not suit it, StoreError if the folder holds something
    else.
    """
    CHECKPOINT_RUNS.check_free(out)
    folder = checkpoint_folder(init)
    if folder is None:
        raise UsageError(
            "is not the folder of a checkpoint that was trained elsewhere: it has no config.json, or is a run",
            where=f"--init {init}",
            fix="give a folder for from_pretrained, or hub:NAME; for a run: derivlang evaluate RUN",
            id="no-model",
        )
    pipeline, tokenizer = Pipeline.parse(spec), ForeignTokenizer.load(folder)
    config = config_of(folder, init)
    weights = hash_of_weights(folder)
    identity = [weights, tokenizer.fingerprint, pipeline.stored, request.source]
    contents = [pipeline.fingerprint(), *_fitted_on(pipeline, request)]
    fingerprint = sha256("|".join([*identity, *contents]).encode()).hexdigest()[:16]

    def write(fresh: Path) -> dict[str, Any]:
        source = Source.open(pipeline, request, parser=parser, trees=False)
        lexicon = source.fit()
        languages = of_texts(pipeline, tokenizer, lexicon)  # refuses what cannot be evaluated
        saved = pipeline.save(lexicon)
        (fresh / TOKENIZER).mkdir()
        tokenizer.save(fresh / TOKENIZER)
        if saved is not None:
            (fresh / LEXICON).write_text(saved, "utf-8", newline="")
        run_folder.create(fresh, pipeline, {})
        record = {
            "format": run_folder.FORMAT, "derivlang": __version__, "status": "done", "source": request.source,
            "spec": pipeline.stored, "objective": "checkpoint", "seed": 0, "steps": 0, "step": 0,
            "model": {"name": init, "type": config.type, "language_ids": False}, "checkpoint": str(folder.resolve()),
            "data": "", "fingerprint": fingerprint, "weights": weights, "tokenizer": tokenizer.fingerprint,
            "settings": {}, "reading": reading_of(request),
            "pipeline": languages.fingerprint(), "heldout_files": source.files([source.corpus.heldout]),
        }  # fmt: skip
        return with_hashes(fresh, record)

    wanted = {
        "source": request.source,
        "spec": pipeline.stored,
        "weights": weights,
        "tokenizer": tokenizer.fingerprint,
        "fingerprint": fingerprint,
    }
    CHECKPOINT_RUNS.make(out, wanted, write)


def _fitted_on(pipeline: Pipeline, request: SourceRequest) -> list[str]:
    """Return the hashes of the files that the pipeline's lexicon is fitted on; none if nothing is fitted."""
    if not pipeline.needs_counts():
        return []
    corpus = find(request)
    files = source_files(Job(corpus, encoding=request.encoding), corpus.splits[:1])
    return [file["sha256"] for file in files]
