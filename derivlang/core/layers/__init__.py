"""Annotation layers. A kind reads, realigns, writes and compares its columns, and names its losses.

words     one value per word (tags), or per record (labels)     misc      CoNLL-U's MISC
tree      heads and relations                      spans     entities in BIO / IOB2
nodes     multiword tokens, empty nodes, DEPS      answers   character spans of SQuAD-style sets
parse     a parser's tags and trees                constituents  trees in brackets

`base.py` says what a layer is, and finds a kind by its name in a schema.
"""
