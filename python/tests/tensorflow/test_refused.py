"""A worker that refuses memory is named, with what it had and what the plan promised."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pardnn.tensorflow import refused
from pardnn.tensorflow.steps import Prediction, Record

DEVICES = [f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in range(2)]
MIB = 1 << 20
# What the chief is told is nested: each machine on the way adds a sentence.
TOLD = (
    "OOM when allocating tensor with shape[512,2048] and type float on {device} by allocator "
    "bfc_cpu_allocator_for_gpu\n\t [[{{{{node gradient_tape/MatMul}}}}]]\nHint: If you want\n"
    "Additional GRPC error information from remote target {device}: OOM when allocating\n"
)


def error(device: str) -> Any:
    return tf.errors.ResourceExhaustedError(None, None, TOLD.format(device=device))


def record(*, planned: bool = True) -> Record:
    promised = Prediction(
        algorithm="auto",
        limits={"d0": 100 * MIB, "d1": 120 * MIB},
        variables={"d0": 50 * MIB, "d1": 60 * MIB},
        peaks={"d0": 90 * MIB, "d1": 110 * MIB},
        any_timing_peaks={"d0": 90 * MIB, "d1": 110 * MIB},
        step_ns=1,
        bound_ns=1,
        one_device_ns=1,
        bytes_sent=0,
    )
    return Record("train", ((4,),), True, promised if planned else None, seconds=[0.1, 0.1])


def test_the_message_names_worker_op_bytes_step_limit_and_promise() -> None:
    said = refused.message(error(DEVICES[1]), record(), DEVICES)
    assert said is not None
    assert said.startswith(
        "worker 1 (d1) refused 4.0 MiB for gradient_tape/MatMul in step 3 of train: its limit is "
        "120.0 MiB, and the plan promised to need at most 110.0 MiB."
    )
    assert "--margin" in said


def test_what_other_devices_refuse_or_nobody_planned_stays_the_scripts_own_error() -> None:
    chief = "/job:chief/replica:0/task:0/device:CPU:0"
    assert refused.message(error(chief), record(), DEVICES) is None
    assert refused.message(error(DEVICES[0]), record(planned=False), DEVICES) is None
    other = tf.errors.ResourceExhaustedError(None, None, "too many open files")
    assert refused.message(other, record(), DEVICES) is None
