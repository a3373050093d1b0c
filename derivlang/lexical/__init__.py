"""The lexicon side: tokenizers and their twins, bilingual dictionaries, parallel data.

    bpe         a character BPE from type counts          tokenizer   a tokenizer's file and folder
    twin        the derived language's copy, joint ids    encoding    every word type encoded once; orders and links
                                                                      of sub-words

    the lexicon's pairs, ranked by key, cut at the coverage        dictionary.py   (vocabulary.py)
    source and derived sentences, ranked by key, cut at the rate   pairs.py        (bitext.py)

Dictionaries can contain a given share of wrong translations. A recipe beside the file records how to make it again.
"""
