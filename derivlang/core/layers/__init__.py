"""Annotation layers: one kind per file, which reads, realigns, writes and compares its columns and names its losses.

words     one value per word (tags, lemmas)         misc      CoNLL-U's MISC
tree      heads, relations, multiword tokens      spans     entities in BIO / IOB2
values    one value per record (labels, ids)        answers   character spans of SQuAD-style sets
parse     a parser's tags and trees                constituents  trees in brackets

`base.py` says what a layer is, and finds a kind by its name in a schema.
"""
