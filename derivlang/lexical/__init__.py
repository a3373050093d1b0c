"""The lexicon side of what a trainer needs: tokenizers and their twins, dictionaries, parallel data.

bpe         a character BPE from type counts          tokenizer   its file, its folder
twin        the derived language's copy, joint ids    overlap     which sub-words both languages share
encoding    every word type encoded once              subwords    orders, labels and links of sub-words
"""
