"""Trees in brackets, read plainly: a tree is a nested list [label, child, child …], a word a string or its number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Node = list[Any]

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def read(text: str) -> list[Node]:
    """Parse trees in brackets into nested lists [label, child, word …]; a bracket without a label has the label ""."""
    parts = re.findall(r"[()]|[^()\s]+", text)

    def parse(at: int) -> tuple[Node, int]:
        label = ""
        at += 1
        if parts[at] not in "()":
            label, at = parts[at], at + 1
        node: Node = [label]
        while parts[at] != ")":
            if parts[at] == "(":
                child, at = parse(at)
                node.append(child)
            else:
                node.append(parts[at])
                at += 1
        return node, at + 1

    trees, at = [], 0
    while at < len(parts):
        if parts[at] == "(":
            tree, at = parse(at)
            trees.append(tree)
        else:
            trees.append(parts[at])
            at += 1
    return trees


def unescaped(word: str) -> str:
    for code, sign in {**BRACKETS, "\\/": "/", "\\*": "*"}.items():
        word = word.replace(code, sign)
    return word


def plain(tree: Node | str) -> list[Any]:
    """Return the tree without traces and unlabelled brackets, as zero, one or several nodes or words."""
    if isinstance(tree, str):
        return [unescaped(tree)]
    below = [] if tree[0] == "-NONE-" else [kept for child in tree[1:] for kept in plain(child)]
    return below if not tree[0] or not below else [[tree[0], *below]]


def written(text: str) -> list[Any]:
    """Return the trees of a column `parse`, in which only round brackets are escaped."""

    def visit(tree: Any) -> Any:
        if isinstance(tree, str):
            return tree.replace("-LRB-", "(").replace("-RRB-", ")")
        return [tree[0], *map(visit, tree[1:])]

    return [visit(tree) for tree in read(text)]


def numbered(trees: list[Any]) -> tuple[list[Any], list[str]]:
    """Return the trees with a number for each word, and the words."""
    words: list[str] = []

    def visit(tree: Any) -> Any:
        if isinstance(tree, str):
            words.append(tree)
            return len(words) - 1
        return [tree[0], *map(visit, tree[1:])]

    return [visit(tree) for tree in trees], words


def named(trees: list[Any], words: Sequence[str]) -> list[Any]:
    """Return the trees with words in place of numbers."""
    return [words[tree] if isinstance(tree, int) else [tree[0], *named(tree[1:], words)] for tree in trees]
