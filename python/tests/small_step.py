"""A small training step, as text and by calls, and a machine for it."""

import pardnn

# x - mm - relu (in place) - loss - gw - step ; w is read by mm, updated by step
TEXT = """pdg 1
var w1 400 @w1
op w Read 0 < w1 > =0 @w1 ph=f
op x Input 0 > 100 every=1
op mm MatMul 1200 < x w > 200 @h ws=50 ph=f name=dense/MatMul
op relu Relu 80 < !mm > =0 @h ph=f
op loss Loss 50 < relu > 4* ph=f
op gw MatMulGrad 2400 < relu loss x > 400 ph=b
op step ApplyAdam 300 < gw !w1 ^w @w1 ph=u
"""


def built() -> pardnn.Graph:
    """The graph of TEXT, by calls."""
    graph = pardnn.Graph()
    graph.var("w1", 400, group="w1")
    graph.op("w", "Read", 0, ("w1",), ("=0",), group="w1", phase="f")
    graph.op("x", "Input", 0, (), (100,), every=True)
    graph.op(
        "mm",
        "MatMul",
        1200,
        ("x", "w"),
        (200,),
        group="h",
        workspace=50,
        phase="f",
        name="dense/MatMul",
    )
    graph.op("relu", "Relu", 80, ["!mm"], ["=0"], group="h", phase="f")
    graph.op("loss", "Loss", 50, ("relu",), ("4*",), phase="f")
    graph.op("gw", "MatMulGrad", 2400, ("relu", "loss", "x"), (400,), phase="b")
    graph.op("step", "ApplyAdam", 300, ("gw", "!w1", "^w"), group="w1", phase="u")
    return graph


def machine(memory: int = 10_000) -> pardnn.Machine:
    return pardnn.Machine.uniform(
        devices=2, memory=memory, bandwidth=1_000_000_000, overhead=10, latency=100
    )


# d0 runs w and step, which touch w1; d1 the rest.
APART = {"w1": "d0", "w": "d0", "step": "d0"} | dict.fromkeys(("mm", "relu", "loss", "gw"), "d1")
