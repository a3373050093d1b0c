"""Streams: the kinds of rows that a training step has, one a file. An objective declares those that it reads.

    Packed()                 rows of both corpora, whole sentences in source order or a stream of sub-words
    PackedAndPairs()         the same rows and rows of sentence pairs, drawn from one set
    SentencePairs()          sentences and their derived forms in one row, with their links
    LinkedPairs()            the same, with links of an aligner or of a file
    CodeSwitched()           sentences and copies in which words of a dictionary are replaced by their translations

A stream is a declaration (base.py: Stream). `open` reads what it needs and returns a RowSource, which makes rows by
number.
"""
