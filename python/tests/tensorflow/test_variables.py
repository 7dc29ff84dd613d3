"""Variables: made on workers within their limits, and moved one at a time within them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from stories import story

from pardnn.tensorflow import variables
from pardnn.tensorflow.variables import NotEnoughMemory, Variables


def test_variables_and_slots_are_made_on_workers_with_the_values_of_an_ordinary_run() -> None:
    # Kernels of 1024 x 1024 floats = 4 MiB. 6 of them and 2 Adam slots each: 72 MiB, more than
    # either worker may hold; 24 MiB and 64 MiB together can.
    code = """
        import numpy as np
        def digest(model):
            values = [np.asarray(v.numpy(), "float64") for v in model.variables]
            return float(sum(np.abs(value).sum() for value in values))
        def build():
            import keras
            keras.utils.set_random_seed(1)
            layers = [keras.layers.Dense(1024) for _ in range(5)]
            layers += [keras.layers.Dense(1024, kernel_initializer="orthogonal")]
            model = keras.Sequential([keras.Input((1024,))] + layers)
            model.compile(keras.optimizers.Adam(1e-4), loss="mse")
            model.optimizer.build(model.trainable_variables)
            return model
        """
    placed = story(
        code
        + """
        import os
        with Cluster.start(2, [24 << 20, 64 << 20]) as cluster:
            from pardnn.tensorflow import variables
            from pardnn.tensorflow.worker import resident_memory
            found = variables.install(cluster)
            import keras
            bare = resident_memory(os.getpid())["current"]
            model = build()
            print({v.value.device[:11] for v in model.variables})
            print(found.bytes_on(0) + found.bytes_on(1) >> 20, len(found.live()))
            print([cluster.memory(i)["peak"] <= cluster.limits[i] for i in range(2)])
            print(resident_memory(os.getpid())["current"] - bare < 40 << 20)
            try:
                keras.layers.Dense(4096).build((None, 4096))
            except variables.NotEnoughMemory as error:
                print("kernel needs 67108864 bytes" in str(error))
            print(digest(model))
            keras.backend.clear_session()
            v = keras.Variable("ones", shape=(3,))
            import tensorflow as tf
            w = tf.Variable([1.0, 2.0])
            print(v.value.device[:11], w.device[:11])
            del model
            import gc
            gc.collect()
            print(found.bytes_on(0) + found.bytes_on(1) <= 20)
        """
    ).splitlines()
    ordinary = story(code + "\n        print(digest(build()))").splitlines()
    assert placed[0] == "{'/job:worker'}"
    # 12 model variables, 24 slots, iteration, learning rate, and sum and count of the loss
    assert placed[1] == "72 40"
    assert placed[2:5] == ["[True, True]", "True", "True"]
    assert placed[5] == ordinary[0]
    assert placed[6] == "/job:worker /job:worker"
    assert placed[7] == "True"


def test_moving_keeps_values_handles_and_limits() -> None:
    # Two workers of 32 MiB hold 3 variables of 8 MiB each and swap all of them: room for one.
    out = story("""
        with Cluster.start(3, [32 << 20] * 3) as cluster:
            import keras, tensorflow as tf
            from pardnn.tensorflow import variables
            found = variables.install(cluster)
            made = [
                keras.Variable(keras.initializers.RandomNormal(seed=i), shape=(1024, 2048))
                for i in range(6)
            ]
            d = cluster.device_strings
            found.move([(v.value, d[i % 2]) for i, v in enumerate(made)])
            sums = [float(tf.reduce_sum(v.value)) for v in made]
            function = tf.function(lambda: tf.add_n([tf.reduce_sum(v.value) for v in made]))
            function.get_concrete_function()
            for i in range(3):
                cluster.reset_peak(i)
            moved = found.move([(v.value, d[1 - i % 2]) for i, v in enumerate(made)])
            print(moved >= 6, [v.value.device[-14:-13] for v in made])
            print(sums == [float(tf.reduce_sum(v.value)) for v in made])
            print([cluster.memory(i)["peak"] <= 32 << 20 for i in range(3)])
            print([found.bytes_on(i) >> 20 for i in range(3)])
            small = keras.Variable("zeros", shape=(3,))
            found.move([(small.value, d[0])])
            found.move([(small.value, d[2])])
            small.assign_add([1.0, 2.0, 3.0])
            print(small.numpy().tolist(), small.value.device == d[2])
        """).splitlines()
    assert out == [
        "True ['1', '0', '1', '0', '1', '0']",
        "True",
        "[True, True, True]",
        "[24, 24, 0]",
        "[1.0, 2.0, 3.0] True",
    ]


# --- the order of moves, without TensorFlow -------------------------------------------------------


class _Variable:
    """As much of a variable as the order of moves looks at."""

    def __init__(self, name: str, size: int, device: str) -> None:
        self.name, self.size, self.device = name, size, device


class _Workers:
    def __init__(self, limits: dict[str, int], made: list[_Variable]) -> None:
        self.device_strings = list(limits)
        self.limits: list[int | None] = list(limits.values())
        self._made = made

    def room(self, number: int) -> float:
        limit, device = self.limits[number], self.device_strings[number]
        held = sum(v.size for v in self._made if v.device == device)
        return math.inf if limit is None else limit - held


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Moves on paper, which fail where a worker passes its limit."""

    def begin(limits: dict[str, int], made: list[_Variable]) -> Variables:
        found = Variables(_Workers(limits, made))  # type: ignore[arg-type]
        monkeypatch.setattr(found, "live", lambda: made)
        monkeypatch.setattr(variables, "bytes_of", lambda v: v.size)

        def give(variable: _Variable, device: str) -> None:
            held = sum(v.size for v in made if v.device == device)
            assert held + variable.size <= limits[device], f"{device} passes its limit"
            variable.device = device

        monkeypatch.setattr(variables.compat_state, "give_handle", give)
        return found

    return begin


def test_moves_wait_for_room(paper: Any) -> None:
    # a is full: x must leave for b before y can come.
    x, y = _Variable("x", 8, "a"), _Variable("y", 6, "b")
    assert paper({"a": 10, "b": 20}, [x, y]).move([(y, "a"), (x, "b")]) == 2
    assert (x.device, y.device) == ("b", "a")


def test_a_swap_without_room_goes_through_a_third_worker(paper: Any) -> None:
    x, y = _Variable("x", 8, "a"), _Variable("y", 8, "b")
    assert paper({"a": 10, "b": 10, "c": 9}, [x, y]).move([(x, "b"), (y, "a")]) == 3
    assert (x.device, y.device) == ("b", "a")


def test_a_swap_without_any_room_is_refused_with_the_bytes(paper: Any) -> None:
    x, y = _Variable("x", 8, "a"), _Variable("y", 8, "b")
    with pytest.raises(NotEnoughMemory, match="2 variables cannot be brought.* room for 2;"):
        paper({"a": 10, "b": 10, "c": 7}, [x, y]).move([(x, "b"), (y, "a")])


def noted_moves(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(variable, device) of every move from now on."""
    moves: list[tuple[str, str]] = []
    give = variables.compat_state.give_handle

    def note(variable: Any, device: str) -> None:
        give(variable, device)
        moves.append((variable.name, device))

    monkeypatch.setattr(variables.compat_state, "give_handle", note)
    return moves


def test_variables_leave_a_worker_and_come_back_the_largest_first(
    paper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z = _Variable("x", 300, "a"), _Variable("y", 500, "a"), _Variable("z", 400, "a")
    found = paper({"a": 1400, "b": 10_000}, [x, y, z])
    moves = noted_moves(monkeypatch)
    found.compact()
    assert [name for name, device in moves if device == "a"] == ["y", "z", "x"]
    assert {v.device for v in (x, y, z)} == {"a"}


def test_only_what_has_plenty_of_room_elsewhere_leaves_a_worker(
    paper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # b has 1000 bytes left, of which half may be lent at once; then 500 are left, of which 250 may.
    x, y = _Variable("x", 500, "a"), _Variable("y", 300, "a")
    found = paper({"a": 900, "b": 1000}, [x, y])
    moves = noted_moves(monkeypatch)
    found.compact()
    assert [name for name, device in moves if device == "b"] == ["x"]


def test_what_is_in_place_stays(paper: Any) -> None:
    x = _Variable("x", 8, "a")
    assert paper({"a": 8, "b": 1}, [x]).move([(x, "a")]) == 0


def test_without_limits_there_is_always_room(paper: Any) -> None:
    found = paper({"a": 10}, [])
    found._cluster.limits = [None]
    assert found.free(0) == math.inf
