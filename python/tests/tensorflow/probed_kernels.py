"""A program: runs kernels on fresh tensors, alone in a process, and prints beside each other the
bytes they took and the bytes `semantics` says.

Run by test_semantics.py. For every kernel two functions are run: in one its inputs die with it, in
the other they are read again afterwards; a take-over shows in the first only, an alias in both.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import semantics
from pardnn.tensorflow.loops import regions_of

R = tf.raw_ops
F, N, B = tf.float32, tf.int32, tf.bool
SQUARE = (512, 512)  # 1 MiB: the allocator counts tensors of 256 KiB and more
BINARY = (SQUARE, SQUARE)
RUNS = 5  # of each function that is measured
Kernel = tuple[str, Callable[..., Any], Sequence[Any], Sequence[Any]]


def unary(kind: str, argument: str = "x", **more: Any) -> Kernel:
    return kind, lambda x: getattr(R, kind)(**{argument: x}, **more), (SQUARE,), (F,)


def binary(kind: str, first: str = "x", second: str = "y") -> Kernel:
    return kind, lambda x, y: getattr(R, kind)(**{first: x, second: y}), BINARY, (F, F)


def one(name: str, run: Callable[..., Any], shape: Any = SQUARE, dtype: Any = F) -> Kernel:
    return name, run, (shape,), (dtype,)


KERNELS: list[Kernel] = [
    *map(unary, ("Abs", "Neg", "Sqrt", "Rsqrt", "Exp", "Log", "Log1p", "Tanh", "Sigmoid", "Erf")),
    *map(unary, ("Erfc", "Sin", "Square", "Floor", "Sign", "Reciprocal", "ZerosLike", "OnesLike")),
    *map(unary, ("Expm1", "IsFinite")),
    *(unary(k, "features") for k in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign")),
    unary("LeakyRelu", "features"),
    *(unary(k, "logits") for k in ("Softmax", "LogSoftmax")),
    *(unary(k, "input") for k in ("Identity", "Snapshot", "StopGradient", "PreventGradient")),
    unary("CheckNumerics", "tensor", message="m"),
    unary("Cumsum", axis=0),
    unary("ClipByValue", "t", clip_value_min=0.0, clip_value_max=1.0),
    unary("MatrixBandPart", "input", num_lower=-1, num_upper=0),
    *map(binary, ("Add", "AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "Maximum", "Minimum")),
    *map(binary, ("Pow", "SquaredDifference", "FloorDiv", "Xdivy", "Greater", "Equal")),
    *(binary(k, "gradients", "features") for k in ("ReluGrad", "Relu6Grad", "SoftplusGrad")),
    *(binary(k, "gradients", "outputs") for k in ("EluGrad", "SeluGrad")),
    *(binary(k, "y", "dy") for k in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad")),
    ("AddN", lambda x, y: R.AddN(inputs=[x, y]), BINARY, (F, F)),
    ("AddV2 row", lambda x, y: R.AddV2(x=x, y=y), (SQUARE, (512,)), (F, F)),
    ("AddV2 row first", lambda x, y: R.AddV2(x=x, y=y), ((512,), SQUARE), (F, F)),
    ("BiasAdd", lambda x, y: R.BiasAdd(value=x, bias=y), (SQUARE, (512,)), (F, F)),
    (
        "SelectV2",
        lambda c, x, y: R.SelectV2(condition=c, t=x, e=y),
        (SQUARE, SQUARE, SQUARE),
        (B, F, F),
    ),
    (
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: R.SoftmaxCrossEntropyWithLogits(features=x, labels=y),
        BINARY,
        (F, F),
    ),
    one("Cast", lambda x: R.Cast(x=x, DstT=N)),
    one("Cast same", lambda x: R.Cast(x=x, DstT=F)),
    one("LogicalNot", lambda x: R.LogicalNot(x=x), (512, 2048), B),
    one("Reshape", lambda x: R.Reshape(tensor=x, shape=[-1])),
    one("ExpandDims", lambda x: R.ExpandDims(input=x, axis=0)),
    one("Bitcast", lambda x: R.Bitcast(input=x, type=N)),
    one("EnsureShape", lambda x: R.EnsureShape(input=x, shape=[512, None])),
    one("BroadcastTo same", lambda x: R.BroadcastTo(input=x, shape=[512, 512])),
    one("Tile once", lambda x: R.Tile(input=x, multiples=[1, 1])),
    one("Tile twice", lambda x: R.Tile(input=x, multiples=[2, 1])),
    one("Transpose", lambda x: R.Transpose(x=x, perm=[1, 0])),
    one("Transpose in order", lambda x: R.Transpose(x=x, perm=[0, 1])),
    one("Transpose of a one", lambda x: R.Transpose(x=x, perm=[1, 0, 2]), (1, 512, 512)),
    one("Slice rows", lambda x: R.Slice(input=x, begin=[128, 0], size=[256, 512])),
    one("Slice columns", lambda x: R.Slice(input=x, begin=[0, 128], size=[512, 256])),
    one("Slice odd rows", lambda x: R.Slice(input=x, begin=[3, 0], size=[256, 511]), (512, 511)),
    one("StridedSlice rows", lambda x: x[128:]),
    one("StridedSlice columns", lambda x: x[:, 128:]),
    one("StridedSlice new axis", lambda x: x[:, None]),
    one("StridedSlice item", lambda x: x[1], (4, 512, 256)),
    one("Split rows", lambda x: R.Split(axis=0, value=x, num_split=2)),
    one("Split columns", lambda x: R.Split(axis=1, value=x, num_split=2)),
    one("SplitV rows", lambda x: R.SplitV(value=x, size_splits=[128, 384], axis=0, num_split=2)),
    one("Unpack rows", lambda x: R.Unpack(value=x, num=2, axis=0), (2, 512, 256)),
    one("Unpack columns", lambda x: R.Unpack(value=x, num=2, axis=1), (512, 2, 256)),
    one("Pack one", lambda x: R.Pack(values=[x], axis=0)),
    ("Pack two", lambda x, y: R.Pack(values=[x, y], axis=0), BINARY, (F, F)),
    ("ConcatV2", lambda x, y: R.ConcatV2(values=[x, y], axis=0), BINARY, (F, F)),
    one("Pad nothing", lambda x: R.Pad(input=x, paddings=[[0, 0], [0, 0]])),
    one("Pad", lambda x: R.Pad(input=x, paddings=[[512, 0], [0, 0]])),
    one("Sum of no axis", lambda x: R.Sum(input=x, axis=tf.zeros((0,), N))),
    one("Sum of a one", lambda x: R.Sum(input=x, axis=[0]), (1, 512, 512)),
    one("ReverseV2", lambda x: R.ReverseV2(tensor=x, axis=[0])),
    ("MatMul", lambda x, y: R.MatMul(a=x, b=y), BINARY, (F, F)),
    one("GatherV2", lambda x: R.GatherV2(params=x, indices=tf.range(256), axis=0)),
]


def fresh(shape: Any, dtype: Any) -> tf.Tensor:
    if dtype.is_floating:
        return tf.random.uniform(shape, 0.3, 0.9)
    return tf.ones(shape, dtype)


def function_of(kernel: Kernel, keep: bool) -> Any:
    _, run, shapes, dtypes = kernel
    specs = [tf.TensorSpec(s, d) for s, d in zip(shapes, dtypes, strict=True)]

    @tf.function(autograph=False, jit_compile=False, input_signature=specs)
    def function(*given: Any) -> Any:
        inputs = [R.LogicalNot(x=x) if x.dtype == B else R.Square(x=x) for x in given]
        with tf.control_dependencies(inputs):
            results = run(*inputs)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        with tf.control_dependencies(results):
            later = [R.Size(input=x) for x in inputs] if keep else []
        return [R.Size(input=x) for x in results] + later

    return function


def taken(function: Any, given: Sequence[tf.Tensor]) -> int:
    """Bytes the function allocates at most, beyond its inputs: the median of a few runs.

    What earlier functions left is freed by other threads, so now and then a tensor gets a chunk
    half as large again as itself, which is not worth splitting, and all of it counts.
    """
    function(*given)
    return statistics.median_low([taken_once(function, given) for _ in range(RUNS)])


def taken_once(function: Any, given: Sequence[tf.Tensor]) -> int:
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    function(*given)
    return int(tf.config.experimental.get_memory_info("CPU:0")["peak"] - before)


def stated(function: Any, keep: bool) -> int:
    """The same, by `semantics`, of the one op under test: all large tensors of the function."""
    graph = function.get_concrete_function().graph
    statics = regions_of(graph).statics
    total = 0
    for op in graph.get_operations():
        if op.type in ("Placeholder", "Const", "Size", "NoOp"):
            continue
        for output, source in zip(op.outputs, semantics.sources(op, statics), strict=True):
            size = statics.bytes(output)
            first = op.inputs and op.inputs[0].op.type == "Placeholder"
            shared = source.alias is not None or (source.takes and not keep and not first)
            if size >= 256 * 1024 and not shared:
                total += size
    return total


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    found = {}
    for kernel in KERNELS:
        name, _, shapes, dtypes = kernel
        given = [fresh(s, d) for s, d in zip(shapes, dtypes, strict=True)]
        for keep in (False, True):
            function = function_of(kernel, keep)
            label = f"{name}, inputs {'kept' if keep else 'dying'}"
            found[label] = [taken(function, given), stated(function, keep)]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    np.random.seed(1)
    main()
