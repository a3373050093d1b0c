"""The lexicon side: bilingual dictionaries and parallel data, read from the two objects that a derived set has.

    the lexicon's pairs, ranked by key, cut at the coverage        dictionary.py   (ranking.py, vocabulary.py)
    source and derived sentences, ranked by key, cut at the rate   pairs.py        (segments.py, bitext.py, tmx.py)

Both take a stated share of noise (noise.py), and both lie beside a recipe that makes them again.
"""
