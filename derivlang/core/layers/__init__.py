"""Annotation layers: one kind a file, which reads, realigns, writes and compares its columns and names its losses.

words     one value a word (tags, lemmas)         misc      CoNLL-U's MISC
tree      heads, relations, multiword tokens      spans     entities in BIO / IOB2
values    one value a record (labels, ids)        answers   character spans of SQuAD-style sets
parse     a parser's tags and trees

`registry.py` finds a kind by its name in a schema; `base.py` says what a layer is.
"""
