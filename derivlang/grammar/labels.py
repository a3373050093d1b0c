"""Labels of Universal Dependencies version 1 and version 2, and the maps between them.

A grammar has labels of one version. `candidates` gives the names that a label may have there, best first; the grammar
uses the first whose relation it has weights for, else the first without its subtype. The maps see only the label, so
two differences remain: v1's `neg` cannot be distinguished from `advmod` on `ADV` in v2 trees (on `PART` it can), and v1
attached `cc` and commas to the first conjunct, v2 to the following one.

    v2 NOUN&obl:tmod under a verb   ->  v1 NOUN&nmod:tmod, then NOUN&nmod
    v1 NOUN&nmod under a verb       ->  v2 NOUN&obl
    NOUN&nmod under a numeral (two of them), an adjective or an adverb  ->  v2 NOUN&nmod, then NOUN&obl: v2 has both
    v2 AUX&cop                      ->  v1 AUX&cop, then VERB&cop  (v1 treebanks differ)
    PRON&nmod:poss (my, her)        ->  the same, then DET&det:poss, DET&nmod:poss, DET&det: a determiner elsewhere
"""

from __future__ import annotations

from collections.abc import Iterable

V1_RELATIONS = frozenset(
    "acl advcl advmod amod appos aux auxpass case cc ccomp compound conj cop csubj csubjpass dep det discourse"
    " dislocated dobj expl foreign goeswith iobj list mark mwe name neg nmod nsubj nsubjpass nummod parataxis punct"
    " remnant reparandum root vocative xcomp".split()
)
V2_RELATIONS = frozenset(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl"
    " fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative"
    " xcomp".split()
)
ONLY_V1 = V1_RELATIONS - V2_RELATIONS
# Function words that may take the place of their heads (`syntax/lifting.py`), and the relations of the heads then.
FUNCTIONS = ("cc", "case", "cop", "mark")
LIFTED = tuple(f"lifted_{name}" for name in FUNCTIONS)

_TO_V1 = {
    "obj": "dobj",
    "obl": "nmod",
    "nsubj:pass": "nsubjpass",
    "csubj:pass": "csubjpass",
    "aux:pass": "auxpass",
    "fixed": "mwe",
    "flat": "name",
    "flat:foreign": "foreign",
    "flat:name": "name",
    "orphan": "remnant",
    "clf": "nmod",
    "obl:unmarked": "nmod:npmod",
    "nmod:unmarked": "nmod:npmod",
}
_TO_V2 = {
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "mwe": "fixed",
    "name": "flat",
    "foreign": "flat:foreign",
    "remnant": "orphan",
    "neg": "advmod",
}


def candidates(token: str, head_class: str, version: str) -> list[str]:
    """Return the names of a label in UD `version` ("v1", "v2"), best first; a label of that version is the first.

    token: `UPOS&deprel`, or `@UPOS&@` of a head. head_class: of its head, "N", "V" or a UPOS.
    """
    upos, _, relation = token.partition("&")
    if relation == "@":
        return [token]
    if version == "v1":
        tags, relations = _v1(upos, relation)
    else:
        tags, relations = _v2(upos, relation, head_class)
    full = [f"{tag}&{name}" for name in relations for tag in tags]
    if (upos, relation) == ("PRON", "nmod:poss"):
        full[1:1] = ["DET&det:poss", "DET&nmod:poss", "DET&det"]
    return list(dict.fromkeys(full))


def _v1(upos: str, relation: str) -> tuple[list[str], list[str]]:
    plain, _, subtype = relation.partition(":")
    relations = []
    if relation in _TO_V1:
        relations.append(_TO_V1[relation])
    elif plain in _TO_V1:
        relations += [f"{_TO_V1[plain]}:{subtype}"] if subtype else []
    else:
        relations.append(relation)
    relations.append(_TO_V1.get(plain, plain))
    tags = ["CONJ" if upos == "CCONJ" else upos]
    if relation.startswith("cop") and upos == "AUX":
        tags.append("VERB")
    if plain == "advmod" and upos == "PART":
        relations.insert(0, "neg")
    return tags, relations


def _v2(upos: str, relation: str, head_class: str) -> tuple[list[str], list[str]]:
    plain, _, subtype = relation.partition(":")
    new = _TO_V2.get(plain, "obl" if plain == "nmod" and head_class == "V" else plain)
    relations = [f"{new}:{subtype}" if subtype else new, new.partition(":")[0]]
    if plain == "nmod" and head_class not in ("N", "V"):
        relations += [f"obl:{subtype}", "obl"] if subtype else ["obl"]
    tags = ["CCONJ" if upos == "CONJ" else upos]
    if plain == "cop" and upos == "VERB":
        tags.insert(0, "AUX")
    return tags, relations


def old_labels(tokens: Iterable[str]) -> list[str]:
    """Return the relations and tags among these labels that only UD version 1 has, sorted."""
    old = set()
    for token in tokens:
        upos, _, relation = token.partition("&")
        if upos == "CONJ":
            old.add(upos)
        if relation.partition(":")[0] in ONLY_V1:
            old.add(relation.partition(":")[0])
    return sorted(old)
