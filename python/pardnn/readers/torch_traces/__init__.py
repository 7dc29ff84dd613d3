"""Execution traces of PyTorch: what ran in a step, with the storages that it touched."""

from pardnn.readers.torch_traces.build import NAME, OPTIONS, read, recognise

__all__ = ["NAME", "OPTIONS", "read", "recognise"]
