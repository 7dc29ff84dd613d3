"""``pardnn run`` for PyTorch: every rank runs the whole unchanged script, each op computes on one.

A tensor that another rank computes is *hollow* here: an ordinary tensor of true shape and stride,
without memory. What is done where is decided by rules that all ranks evaluate alike, so nobody has
to tell anybody.
"""
