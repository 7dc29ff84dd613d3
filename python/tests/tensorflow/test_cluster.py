"""Workers: their limits are real, their ports closed to others, and they end when they should."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from stories import story

from pardnn.tensorflow import control
from pardnn.tensorflow.cluster import MIB, Cluster, ClusterError
from pardnn.tensorflow.processes import WorkerOptions
from pardnn.tensorflow.watch import Watch


def test_a_worker_holds_what_its_limit_allows_and_refuses_more() -> None:
    # 64 MiB: the allocator keeps one region of 2 MiB and one of 62 MiB, so that a tensor of
    # 60 MiB = 15 * 2^20 floats fits and one of 64 MiB does not.
    out = story("""
        with Cluster.start(2, [64 << 20, None]) as cluster:
            import tensorflow as tf
            with tf.device(cluster.device_strings[0]):
                a = tf.zeros([15 << 20])
                tf.reduce_sum(a).numpy()
                print(cluster.memory(0)["current"] >= 60 << 20)
                del a
                try:
                    tf.zeros([16 << 20]).numpy()
                except tf.errors.ResourceExhaustedError:
                    print("refused")
            with tf.device(cluster.device_strings[1]):
                b = tf.zeros([32 << 20])
                tf.reduce_sum(b).numpy()
            print(cluster.memory(1)["current"] >= 128 << 20)
            cluster.reset_peak(0)
            print(cluster.memory(0)["peak"] < 1 << 20, cluster.rss(0)["peak"] > 100 << 20)
            print(cluster.failure())
        """)
    assert out.split() == ["True", "refused", "True", "True", "True", "None"]


def test_nothing_but_this_machine_can_connect_and_no_process_is_left() -> None:
    out = story("""
        import os, socket
        cluster = Cluster.start(2, None)
        cluster.connect()
        ports = [int(w.address().rpartition(":")[2]) for w in cluster._workers]
        def open_at(host, port):
            try:
                socket.create_connection((host, port), timeout=2).close()
                return True
            except OSError:
                return False
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("198.51.100.1", 9))
                outside = probe.getsockname()[0]
            except OSError:
                outside = "127.0.0.1"
        print(all(open_at("127.0.0.1", p) for p in ports))
        print(outside.startswith("127.") or not any(open_at(outside, p) for p in ports))
        pids = cluster.process_ids()
        # No thread of a worker pushes another aside when it wakes up.
        threads = [int(t) for p in pids for t in os.listdir(f"/proc/{p}/task")]
        print({os.sched_getscheduler(t) for t in threads} == {os.SCHED_BATCH})
        cluster.stop()
        cluster.stop()
        print(any(os.path.exists(f"/proc/{p}") for p in pids), cluster._folder.exists())
        """)
    assert out.split() == ["True", "True", "True", "False", "False"]


def test_a_port_taken_in_between_is_replaced_by_another() -> None:
    out = story("""
        import socket
        from pardnn.tensorflow import loopback
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first = [taken.getsockname()[1]]
        ask_system = loopback.free_port
        loopback.free_port = lambda: first.pop() if first else ask_system()
        with Cluster.start(1, None) as cluster:
            import tensorflow as tf
            with tf.device(cluster.device_strings[0]):
                print(float(tf.constant(2.0) + 1.0), first)
        """)
    assert out.split() == ["3.0", "[]"]


def test_workers_can_be_started_when_tensorflow_already_runs_and_from_a_short_thread() -> None:
    # Such workers are new Python processes. The thread that asked for them ends before they work.
    out = story("""
        import threading, time
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.zeros([1]).numpy()
        made = []
        thread = threading.Thread(target=lambda: made.append(Cluster.start(1, 32 << 20)))
        thread.start()
        thread.join()
        print(made[0]._workers[0].address().startswith("127.0.0.1:"))
        time.sleep(0.5)
        print(made[0].failure(), made[0].memory(0)["current"] < 1 << 20)
        made[0].stop()
        """)
    assert out.split() == ["True", "None", "True"]


def test_a_limit_is_rounded_down_to_whole_mib() -> None:
    options = WorkerOptions(memory=700 * MIB)
    assert options.environment()["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "700"
    assert options.preallocated() == 698 * MIB


@pytest.mark.parametrize(
    ("devices", "memory", "message"),
    [
        (0, None, "0 devices: at least one is needed"),
        (65, None, "65 devices: at most 64 workers can be started"),
        (2, [64 * MIB], "2 devices but 1 memory sizes"),
        (1, 1000, "a worker's memory of 1000 bytes is too little to run anything; "
         "the least is 16 MiB"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_one_message(
    devices: int, memory: list[int | None] | int | None, message: str
) -> None:
    with pytest.raises(ClusterError) as refused:
        Cluster.start(devices, memory)
    assert str(refused.value) == message


def test_control_answers_pings_while_a_long_request_runs(tmp_path: Path) -> None:
    address = str(tmp_path / "socket")
    release = threading.Event()

    def fail(request: control.Request) -> None:
        raise ValueError(f"no {request['what']}")

    listener = control.listen(address)
    control.serve(
        listener,
        {"ping": lambda r: 1, "wait": lambda r: release.wait(10), "fail": fail},
    )
    answers: list[object] = []
    waiting = threading.Thread(
        target=lambda: answers.append(control.ask(address, {"do": "wait"}, 20.0))
    )
    waiting.start()
    assert control.ask(address, {"do": "ping"}, 5.0) == 1
    assert answers == []
    release.set()
    waiting.join()
    assert answers == [True]
    with pytest.raises(control.ControlError, match="ValueError: no luck"):
        control.ask(address, {"do": "fail", "what": "luck"}, 5.0)
    with pytest.raises(control.ControlError, match="no such request"):
        control.ask(address, {"do": "dance"}, 5.0)
    listener.close()


class _Silent:
    """A worker that is there and never answers."""

    number = 3
    name = "worker 3"

    def __init__(self, by: str = "9 (SIGKILL)") -> None:
        self.killed = False
        self.by = by

    def address(self) -> str:
        return "127.0.0.1:1"

    def ask(self, request: control.Request, timeout_s: float | None = None) -> object:
        raise TimeoutError

    def death(self) -> str | None:
        return f"was ended by signal {self.by}" if self.killed else None

    def is_stopped(self) -> bool:
        return True

    def kill(self) -> None:
        self.killed = True

    def last_lines(self, count: int) -> list[str]:
        return ["the last thing it said"]

    def bound_log(self) -> None:
        pass


def test_a_silent_worker_is_ended_and_a_chief_that_hangs_is_told_to_leave() -> None:
    worker = _Silent()
    watch = Watch([worker])
    told: list[str] = []
    left = threading.Event()
    watch.on_stuck = lambda message: (told.append(message), left.set())
    began = time.monotonic()
    watch.start()
    assert left.wait(15.0), "the promise is 15 s"
    assert time.monotonic() - began < 15.0
    assert worker.killed
    assert told == [watch.failure()]
    lines = told[0].splitlines()
    assert lines[0].startswith("worker 3 gave no sign of life for ")
    assert lines[1] == "  | the last thing it said"


@pytest.mark.parametrize(
    ("by", "hint"),
    [
        ("9 (SIGKILL)", "the system was out of memory"),
        ("6 (SIGABRT)", "a tensor that comes from another"),
        ("11 (SIGSEGV)", "a tensor that comes from another"),
    ],
)
def test_a_death_is_said_with_what_it_most_likely_means(by: str, hint: str) -> None:
    worker = _Silent(by)
    worker.kill()
    message = Watch([worker]).failure()
    assert message is not None
    assert message.startswith(f"worker 3 was ended by signal {by} (")
    assert hint in message


def test_a_watch_that_was_stopped_reports_no_death() -> None:
    worker = _Silent()
    watch = Watch([worker])
    watch.stop()
    worker.kill()
    assert watch.failure() is None


def test_a_free_port_is_free() -> None:
    from pardnn.tensorflow.loopback import accept_only_loopback, free_port

    port = free_port()
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", port))
        listener.listen()
        assert accept_only_loopback(port)
    assert not accept_only_loopback(port)


def test_a_worker_of_a_listener_serves_a_run_and_the_next_one() -> None:
    # The listener stands for another host; here it is this one.
    out = story("""
        import subprocess, sys, time
        from pardnn.tensorflow.loopback import free_port
        where = f"127.0.0.1:{free_port()}"
        listener = subprocess.Popen(
            [sys.executable, "-m", "pardnn.tensorflow.worker", "--listen", where,
             "--memory", "96MiB"],
            stderr=subprocess.PIPE, text=True,
        )
        while "listening on" not in listener.stderr.readline():
            assert listener.poll() is None
        try:
            Cluster.start(1, 128 << 20, addresses=[where])
        except Exception as error:
            print("128.0 MiB asked for, at most 96.0 MiB given" in str(error))
        first = Cluster.start(1, 64 << 20, addresses=[where])
        print(first._workers[0].address().startswith("127.0.0.1:"))
        try:
            Cluster.start(1, 64 << 20, addresses=[where])
        except Exception as error:
            print("it is at work for another run" in str(error))
        first.stop()
        with Cluster.start(1, 64 << 20, addresses=[where]) as cluster:
            import tensorflow as tf
            with tf.device(cluster.device_strings[0]):
                a = tf.zeros([15 << 20])
                tf.reduce_sum(a).numpy()
            print(cluster.memory(0)["current"] >= 60 << 20, cluster.failure())
            worker = [p for p in __import__("psutil").Process(listener.pid).children()][0]
            worker.kill()
            end = time.monotonic() + 15
            while cluster.failure() is None and time.monotonic() < end:
                time.sleep(0.1)
            print(cluster.failure().splitlines()[0])
        listener.terminate()
        print(listener.wait(10))
        """).splitlines()
    assert out[:4] == ["True", "True", "True", "True None"]
    assert " on 127.0.0.1:" in out[4]
    assert "was ended by signal 9 (SIGKILL)" in out[4]
    assert out[5] == "0"
