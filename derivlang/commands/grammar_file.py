"""A grammar file as an artifact: FILE.recipe.json records how it was made, and so whether it may be kept.

    own.grammar.tsv                  the grammar (grammar/grammar.py)
    own.grammar.tsv.recipe.json      {"language": "French", "l2": 2.0, "treebanks": [{"name", "sha256"}], "files": {…}}

The same call finds its file and keeps it, another one is refused with the first difference. A file without a recipe, by
hand or of version 0.2.0, is fitted again: if the content is the same, it gets its recipe, else it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.seal import sealed
from derivlang.core.version import __version__
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.formats.opening import packing_of
from derivlang.grammar.build import FEWEST_HEADS, RULE_VERSION, THINNED, USUAL, GrammarRecipe, build
from derivlang.grammar.families import UPOS, head_class
from derivlang.grammar.grammar import Grammar, grammar_text, read_grammar
from derivlang.grammar.settings import GrammarFitOptions
from derivlang.grammar.treebank import check_labels, check_version, demonstratives, read_families
from derivlang.store.artifact import RECIPE, check_replaceable, recipe_beside
from derivlang.store.files import held_file, is_stream, refuse_source, write_texts
from derivlang.store.record import record_text

FORMAT = 1
_NUMBERS = {"*": float}
RECIPE_FORM = {"format": int, "files": dict, "result": {"l2": _NUMBERS, "thin": _NUMBERS}, "sha256": str}


def fit_file(
    treebanks: Sequence[Path],
    out: Path,
    options: GrammarFitOptions,
    warn: Callable[[str], None],
    found: Callable[[Path], None] = lambda out: None,
) -> dict[str, Any]:
    """Fit a grammar, write it to `out` with its recipe beside it, and return what `fit_grammar` returns.

    Of a stream, which has no room for a recipe and cannot be read again, return only {"out"}. found: called with the
    file of the same call, which is kept. The file is held meanwhile: another process that fits another one is refused.
    Raise StoreError if another grammar or something else is there, and `options.force` is not set.
    """
    names = _classes(options)
    check_out(out, (*treebanks, *options.dev), "a grammar")
    with held_file(out, f"grammar fit {treebanks[0]}", treebanks, options, warn=warn):
        seen = {path: FileStamp.of(path) for path in (*treebanks, *options.dev)}
        wanted = _recipe(treebanks, options, names, seen)
        if is_stream(out):
            grammar, _ = _fitted(treebanks, out, options, names, seen, warn)
            write_texts(out, {out.name: grammar_text(grammar)}, replace=options.force)
            return {"out": str(out)}
        record, recipe = None, out.with_name(out.name + RECIPE)
        if not options.force:
            record = recipe_beside(out, RECIPE_FORM, fix="name another file, or --force")
            check_replaceable([out], recipe, wanted, noun="grammar")
            if record is not None and not out.exists():
                warn(f"{out} is missing; the grammar is made again")
                record = None
        if record is not None:
            found(out)
        else:
            grammar, chosen = _fitted(treebanks, out, options, names, seen, warn)
            text = grammar_text(grammar)
            files = {out.name: sha256(text.encode()).hexdigest()}
            record = sealed({**wanted, "files": files, "result": chosen})
            texts = {out.name: text, recipe.name: record_text(record)}
            write_texts(out, texts, replace=True)  # what may not be replaced is refused before
    return {"out": str(out), **read_grammar(out).summary(), **record["result"]}


def _recipe(
    treebanks: Sequence[Path], options: GrammarFitOptions, names: Sequence[str], seen: dict[Path, FileStamp]
) -> dict[str, Any]:
    """Return what the content of a grammar file depends on. l2 and thin are null if --dev decides them."""

    def hashes(paths: Sequence[Path]) -> list[dict[str, str]]:
        return [{"name": path.name, "sha256": seen[path].sha256} for path in paths]

    return {
        "format": FORMAT,
        "derivlang": __version__,
        "rule_version": RULE_VERSION,
        "treebanks": hashes(treebanks),
        "dev": hashes(options.dev),
        "language": options.language,
        "licence": options.licence,
        "classes": list(names),
        "l2": options.l2 if options.l2 is not None or options.dev else USUAL,
        "thin": options.thin if options.thin is not None or options.dev else 0.0,
        "labels": options.labels,
        "punct": options.punct,
    }


def _fitted(
    treebanks: Sequence[Path],
    out: Path,
    options: GrammarFitOptions,
    names: Sequence[str],
    seen: dict[Path, FileStamp],
    warn: Callable[[str], None],
) -> tuple[Grammar, dict[str, dict[str, float]]]:
    """Return (the fitted grammar, {"l2": of each class, "thin": of each class}).

    seen: the files as they were hashed. Raise DataError if one has changed since, or cannot be fitted to.
    """
    with unchanged(seen):
        families, n_sentences = read_families(treebanks, punct=options.punct, own=True)
        held, _ = read_families(options.dev, punct=options.punct, own=True) if options.dev else (None, 0)
        forms = demonstratives(treebanks)
    check_version(families, options.labels, str(treebanks[0]))
    check_labels(families, str(treebanks[0]))
    about = {
        "treebanks": ", ".join(path.name for path in treebanks),
        "sentences": str(n_sentences),
        **({"licence": options.licence} if options.licence else {}),
        **({"demonstratives": " ".join(forms)} if forms else {}),
    }
    strengths = (options.l2,) if options.l2 else None
    recipe = GrammarRecipe(
        out.name.partition(".")[0], options.language, names, options.labels, options.punct, strengths,
        options.thin,
    )  # fmt: skip
    grammar, chosen = build(recipe, families, held, about)
    for name in names:
        if name not in grammar.classes:
            warn(f"the grammar has no model of {name} heads: fewer than {FEWEST_HEADS} have dependents")
    return grammar, {
        "l2": {name: settings.l2 for name, settings in chosen.items()},
        "thin": {name: settings.thin for name, settings in chosen.items()},
    }


def _classes(options: GrammarFitOptions) -> tuple[str, ...]:
    """Return the head classes to fit. Raise UsageError for others, and for an option that none of them reads."""
    asked = options.classes.split(",")
    wrong = [name for name in asked if name not in ("N", "V", *UPOS)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is not a head class", where="--classes", fix=f"N, V, {', '.join(UPOS)}", id="grammar-class"
        )
    names = tuple(dict.fromkeys(map(head_class, asked)))  # NOUN is of the class N
    thinned = set(THINNED) & set(names)
    if not thinned and options.thin is not None:
        raise _unused("only noun heads are thinned, and --classes has no N", "--thin")
    if options.dev and options.l2 is not None and (options.thin is not None or not thinned):
        told = "--l2 and --thin are given" if thinned else "--l2 is given, and no class is thinned"
        raise _unused(f"it has nothing to decide: {told}", "--dev")
    return names


def check_out(out: Path, treebanks: Sequence[Path], noun: str) -> None:
    """Raise UsageError for a file that a grammar, or what else is made of treebanks, cannot be written to."""
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", where="-o", id="missing-folder")
    if packing_of(out) or out.suffix == ".orm":
        raise UsageError(f"{noun} is written as text, not as {out.suffix}", where="-o", id="output")
    refuse_source(out, treebanks, noun, "treebank")


def _unused(why: str, option: str) -> UsageError:
    return UsageError(why, where=option, fix=f"leave {option} out", id="unused-option")
