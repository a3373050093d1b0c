"""The names that other parts use: grammars, how to load them, and models of orders made of them."""

from __future__ import annotations

from derivlang.grammar.families import Families, families_of_trees, head_class
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.load import load_grammar, shipped
from derivlang.grammar.order_model import OrderModel

__all__ = ["Families", "Grammar", "OrderModel", "families_of_trees", "head_class", "load_grammar", "shipped"]
