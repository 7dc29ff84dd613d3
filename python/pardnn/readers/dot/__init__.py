"""Graphs of Graphviz's DOT language whose attributes state times and sizes."""

from pardnn.readers.dot.reader import NAME, OPTIONS, read, recognise

__all__ = ["NAME", "OPTIONS", "read", "recognise"]
