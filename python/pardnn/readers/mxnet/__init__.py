"""Symbols of MXNet: JSON with nodes, of which those of the type ``null`` are values."""

from pardnn.readers.mxnet.build import NAME, OPTIONS, read, recognise

__all__ = ["NAME", "OPTIONS", "read", "recognise"]
