"""Syntax: dependency trees as arrays; what stays together, where punctuation goes, and how a tree is laid out."""
