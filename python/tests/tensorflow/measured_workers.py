"""A program: starts two workers, measures their links, and prints what their allocators count.

Run by test_links.py in a process of its own, which becomes the workers' chief.
"""

from __future__ import annotations

import json
import sys

from pardnn.tensorflow.cluster import Cluster


def wait(device: str) -> None:
    """Until the worker has done what was sent to it: operations on workers are queued."""
    import tensorflow as tf

    with tf.device(device):
        tf.identity(tf.zeros([])).numpy()


def main() -> None:
    with Cluster.start(2, None) as cluster:
        import tensorflow as tf

        from pardnn.tensorflow import links

        found = {"links": links.measure(cluster)}
        before = cluster.memory(0)["current"]
        with tf.device(cluster.device_strings[0]):
            kept = tf.zeros([1 << 20])
        wait(cluster.device_strings[0])
        found["held"] = cluster.memory(0)["current"] - before
        found["size"] = int(kept.shape[0]) * 4
        found["idle"] = before
        with tf.device(cluster.device_strings[0]):
            scalars = [tf.constant(float(n)) + 1.0 for n in range(100)]
            halves = [tf.zeros([1 << 15]) for _ in range(8)]
        wait(cluster.device_strings[0])
        found["scalars"] = len(scalars)
        found["with_small"] = cluster.memory(0)["current"] - before - found["size"]
        found["large"] = len(halves)
        found["halves"] = len(halves) * 4 * (1 << 15)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
