"""Words as treebanks write them."""

from __future__ import annotations

_FORMS = {
    "``": '"', "''": '"', "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "’": "'", "‘": "'", "`": "'",
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "@-@": "-", "@,@": ",", "@.@": ".", "–": "-", "—": "-", "−": "-", "--": "-", "…": "...",
    "<UNK>": "<unk>", "[UNK]": "<unk>",
}  # fmt: skip


def normal_form(word: str) -> str:
    """The word in the spelling that the parser was trained on; a whole word in, a whole word out."""
    return _FORMS.get(word) or word.replace("’", "'").replace("‘", "'")
