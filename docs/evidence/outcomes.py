"""What the study pages show: for each study, its outcomes by the titles of their columns."""

from __future__ import annotations

from collections.abc import Sequence

from derivlang.evaluation.report.tables import file_name

Outcome = str  # TASK.METRIC[.REGIME][@LAYER]
SEEDS = "align-mlm-seeds"
OF_SEEDS: dict[str, Outcome] = {
    "alignment, held-out": "alignment.heldout",
    "all rows": "alignment.all",
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "NER SUP": "ner.f1.sup",
    "NER ZS": "ner.f1.zs",
}
BASE = "align-mlm-base"
OF_BASE: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "Δ": "pos.accuracy.delta",
    "most frequent tag": "pos.accuracy.chance",
    "alignment, held-out": "alignment.heldout",
    "words, layer 4": "contextual.words@4",
    "sentences by <s>": "retrieval.first@4",
}
CURVES = "align-mlm-curves"
OF_CURVES: dict[str, Outcome] = {
    "POS ZS": "pos.accuracy.zs",
    "sentences by <s>": "retrieval.first@4",
    "alignment, held-out": "alignment.heldout",
}
LABORATORY = "multilinguality-tiny"
OF_LABORATORY: dict[str, Outcome] = {
    "sentences, layer 0": "retrieval.sentences@0",
    "layer 8": "retrieval.sentences@8",
    "words in context, layer 8": "contextual.words@8",
    "AER jointly, layer 0": "links.joint_argmax@0",
    "perplexity, source": "perplexity.perplexity.source",
    "derived": "perplexity.perplexity.derived",
}
METHODS = "alignment-methods-tiny"
OF_METHODS: dict[str, Outcome] = {
    "AER jointly, layer 1": "links.joint_transport@1",
    "apart, layer 2": "links.transport@2",
    "<s>": "retrieval.first@2",
    "words, layer 2": "contextual.words@2",
    "embeddings": "alignment.heldout",
    "POS SUP": "pos.accuracy.sup",
    "ZS": "pos.accuracy.zs",
}
FACTORS = ("t", "objective", "start", "from")
STARTS = {"cold": "cold start", "early": "cold start of 3,500 steps"}
GRIDS = {  # study -> its factors, as the lines of its tables have them
    "overlap-objective": ("overlap", "objective"),
    "deshpande-halves": ("halves", "objective"),
}
OF_GRIDS: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "POS Δ": "pos.accuracy.delta",
    "NER SUP": "ner.f1.sup",
    "NER ZS": "ner.f1.zs",
    "alignment, held-out": "alignment.heldout",
    "words, layer 2": "contextual.words@2",
}
LANGUAGES = "dict-mlm-languages"
OF_LANGUAGES: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "most frequent tag": "pos.accuracy.chance",
    "words, layer 2": "contextual.words@2",
}
BILINGUAL = "bilingual"
OF_BILINGUAL: dict[str, Outcome] = {
    "POS in English": "pos:fr=French-GSD.accuracy.source",
    "POS ZS in French": "pos:fr=French-GSD.accuracy.zs",
    "most frequent tag": "pos:fr=French-GSD.accuracy.chance",
}
OF_BILINGUAL_DIFFERENCES: dict[str, Outcome] = {"POS ZS in French": "pos:fr=French-GSD.accuracy.zs"}
CLONES = "clones"
FLOORS = "floors"
OF_FLOORS: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "most frequent tag": "pos.accuracy.chance",
    "alignment, all rows": "alignment.all",
    "held-out": "alignment.heldout",
    "words, layer 2": "contextual.words@2",
}
RUNS = {
    "random": "random weights",
    "alignment-alone": "only alignment, 100 steps",
    "mlm-300": "mlm, 300 steps",
    "align-mlm-300": "align-mlm, 300 steps",
}
WITH_ZERO_SHOT = {  # title of a measure -> its outcome: correlated with zero-shot POS
    "alignment of embeddings, held-out": "alignment.heldout",
    "words in context, layer 2": "contextual.words@2",
    "AER of states, argmax, layer 2": "links.argmax@2",
    "AER of states, OT, layer 2": "links.transport@2",
    "retrieval of sentences, layer 2": "retrieval.sentences@2",
}
IMPOSSIBLE = "impossible-kallini"
OF_IMPOSSIBLE: dict[str, Outcome] = {
    "bits per word": "perplexity.bits.derived",
    "5-grams": "ngrams.bits_5.derived",
    "3-grams": "ngrams.bits_3.derived",
    "POS": "pos.accuracy.sup",
    "UAS": "dep.uas.sup",
    "minimal pairs": "blimp:demo.accuracy.derived",
}
SCATTER = f"{file_name('ngrams', 'bits_3')}-{file_name('perplexity', 'bits')}-correlation"
_TRANSFER = f"{file_name('pos', 'accuracy')}-correlation"
FIGURE_3 = {
    f"{file_name('alignment', 'heldout')}-{_TRANSFER}": "alignment-embeddings-transfer.svg",
    f"{file_name('contextual', 'words')}-{_TRANSFER}": "alignment-words-transfer.svg",
}
REVERSED = "inv:from=random:mark=🅁:final=move"
CONTROLS = [  # (language, the one that it is compared with)
    ("inv:from=end:mark=🅁:final=move", "identity"),
    ("inv:mark=🅁:final=move", "inv:from=end:mark=🅁:final=move"),
    (REVERSED, "inv:from=end:mark=🅁:final=move"),
    (REVERSED, "mallows:0.102:final=move"),
    (REVERSED, "mallows:2.056:final=move"),
    ("inv:mark=🅁:final=move", "mallows:3.035:final=move"),
    ("hop:0", "identity"),
    ("hop:tokens=4", "hop:0"),
    ("hop:words=4", "hop:tokens=4"),
    ("shuffle:by=length:final=move:seed=21", "shuffle:final=move"),
    ("shuffle:local=10:by=window:final=move", "shuffle:local=5:by=window:final=move"),
]
BY_LAYER = ["links.transport@0", "links.transport@1"]  # the figure has these and the last one
# Scores -> what is kept of them.
OUTCOMES: dict[str, Sequence[Outcome]] = {
    SEEDS: list(OF_SEEDS.values()),
    BASE: list(OF_BASE.values()),
    CURVES: list(OF_CURVES.values()),
    LABORATORY: list(OF_LABORATORY.values()),
    LANGUAGES: list(OF_LANGUAGES.values()),
    BILINGUAL: list(OF_BILINGUAL.values()),
    CLONES: list(OF_LANGUAGES.values()),
    METHODS: [*OF_METHODS.values(), *WITH_ZERO_SHOT.values(), "pos.accuracy.delta", *BY_LAYER],
    IMPOSSIBLE: list(OF_IMPOSSIBLE.values()),
    FLOORS: list(OF_FLOORS.values()),
    **{name: list(OF_GRIDS.values()) for name in GRIDS},
}
