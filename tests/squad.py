"""EM and F1 of SQuAD (Rajpurkar et al. 2016, section 6.1), written as plainly and slowly as they read.

    exact match   the answer is one of the gold answers, in percent of the questions
    F1            the best F1 of the words that the answer shares with a gold answer, each as often as both have it

Before two texts are compared, capitals, ASCII punctuation and English articles are removed, in this order; words are
what white space divides. The tests hold the package's counts to it; it uses nothing of the package.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any


def words(text: str) -> list[str]:
    """The words of a text, normalised."""
    plain = "".join(char for char in text.lower() if char not in string.punctuation)
    parts = [""]  # letters, digits and underscores in one part, everything else in another
    for char in plain:
        same = parts[-1] and _of_word(parts[-1][-1]) == _of_word(char)
        parts = [*parts[:-1], parts[-1] + char] if same else [*parts, char]
    return "".join(" " if part in ("a", "an", "the") else part for part in parts).split()


def _of_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def f1(answer: str, gold: str) -> float:
    """The F1 of two texts."""
    left, shared = words(gold), 0
    for word in words(answer):
        if word in left:
            left.remove(word)
            shared += 1
    if not words(answer) or not words(gold):  # the rule of SQuAD 2.0
        return float(words(answer) == words(gold))
    if not shared:
        return 0.0
    precision, recall = shared / len(words(answer)), shared / len(words(gold))
    return 2 * precision * recall / (precision + recall)


def article(title: str, context: str, questions: Sequence[tuple[str, Sequence[str]]]) -> dict[str, Any]:
    """An article of a SQuAD file. questions: each with its answers, which are texts of the context."""
    asked = [
        {
            "id": f"{title}-{number}",
            "question": question,
            "answers": [{"text": text, "answer_start": context.index(text)} for text in texts],
        }
        for number, (question, texts) in enumerate(questions)
    ]
    return {"title": title, "paragraphs": [{"context": context, "qas": asked}]}


def scores(data: Mapping[str, Any], answers: Mapping[str, str]) -> dict[str, float]:
    """EM and F1 in percent over the questions that have an answer. answers: a text for each question, by its id."""
    exact: list[float] = []
    overlap: list[float] = []
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                gold = [found["text"] for found in question["answers"]]
                if gold:
                    answer = answers[question["id"]]
                    exact.append(max(float(words(answer) == words(one)) for one in gold))
                    overlap.append(max(f1(answer, one) for one in gold))
    return {"em": _percent(exact), "f1": _percent(overlap)}


def _percent(values: Sequence[float]) -> float:
    return 100 * sum(values) / len(values)
