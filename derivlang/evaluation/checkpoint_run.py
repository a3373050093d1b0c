"""The folder of a checkpoint that is measured as it is: what `evaluate` reads of a run, without a training.

    OUT/run.json           the derived language, the source of held-out text, and where the checkpoint is
    OUT/tokenizer          the checkpoint's; OUT/lexicon.tsv if a lexicon was fitted

The model stays where it is. Evaluations and reports take the folder like that of a run.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.files import writing
from derivlang.store.folders import is_free, replace_folder, settle
from derivlang.store.record import difference
from derivlang.training import folder
from derivlang.training.checkpoint import hash_of_weights
from derivlang.training.foreign import checkpoint_folder, config_of
from derivlang.training.languages import LEXICON, TOKENIZER, TextLanguages
from derivlang.training.record import pipeline_of, reading_of


def write_checkpoint_run(out: Path, init: str, spec: str, request: SourceRequest, *, parser: str | None = None) -> None:
    """Write the folder of a checkpoint, unless it is there.

    init: FOLDER or hub:NAME. parser: not used here; a warning says that it has no effect if the order needs no trees.
    Raise UsageError if init is no checkpoint or the spec does not suit it, StoreError if the folder holds something
    else.
    """
    settle(out)
    found = checkpoint_folder(init)
    if found is None:
        raise UsageError(
            "is not the folder of a checkpoint that was trained elsewhere: it has no config.json, or is a run",
            where=f"--init {init}",
            fix="give a folder for from_pretrained, or hub:NAME; for a run: derivlang evaluate RUN",
            id="no-model",
        )
    pipeline, tokenizer = Pipeline.parse(spec), ForeignTokenizer.load(found)
    config, _ = config_of(found, init)
    weights = hash_of_weights(found)
    identity = [weights, tokenizer.fingerprint, pipeline.stored, request.source]
    before = folder.read(out) if (out / folder.RUN).exists() else None
    if before is None or before.get("pipeline"):  # earlier versions compared no content of files
        identity += [pipeline.fingerprint(), *_fitted_on(pipeline, request)]
    fingerprint = sha256("|".join(identity).encode()).hexdigest()[:16]
    if before is not None:
        if before["fingerprint"] != fingerprint:
            wanted = {"source": request.source, "spec": pipeline.stored, "weights": weights}
            told = difference(before, wanted, {"weights": "the weights of the checkpoint are others"})
            raise StoreError(
                f"is another evaluation: {told or 'a file that it was made from has changed'}",
                where=str(out),
                fix="give another folder with -o",
                id="other-run",
            )
        return
    if not is_free(out):
        raise StoreError("is not empty", where=str(out), fix="give another folder", id="output")
    source = Source.open(pipeline, request, parser=parser, trees=False)
    lexicon = source.lexicon()
    languages = TextLanguages(pipeline, tokenizer, lexicon)  # refuses what cannot be evaluated
    saved = pipeline.save(lexicon)
    record = {
        "format": folder.FORMAT, "derivlang": __version__, "status": "done", "source": request.source,
        "spec": pipeline.stored, "objective": "checkpoint", "seed": 0, "steps": 0, "step": 0,
        "model": {"name": init, "type": config.type, "language_ids": False}, "checkpoint": str(found.resolve()),
        "data": "", "fingerprint": fingerprint, "weights": weights, "settings": {}, "reading": reading_of(request),
        "pipeline": pipeline_of(languages), "heldout_files": source.files([source.corpus.heldout]),
    }  # fmt: skip

    def write(fresh: Path) -> None:
        (fresh / TOKENIZER).mkdir()
        tokenizer.save(fresh / TOKENIZER)
        if saved is not None:
            with writing(fresh / LEXICON) as file:
                file.write(saved.encode())
        folder.keep_files(fresh, pipeline)
        folder.write(fresh, record)

    replace_folder(out, write)


def _fitted_on(pipeline: Pipeline, request: SourceRequest) -> list[str]:
    """Return the hashes of the files that the pipeline's lexicon is fitted on; none if nothing is fitted."""
    if not pipeline.needs_counts():
        return []
    corpus = find(request)
    files = source_files(Job(corpus, encoding=request.encoding), corpus.splits[:1])
    return [file["sha256"] for file in files]
