"""A training step as a graph of torch's own ops: forward, loss, backward and new buffers.

The user's model is called once with tensors that have no memory (fake tensors), so nothing of the
model's size is computed or allocated.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.utils import _pytree as pytree

from pardnn.errors import Refusal
from pardnn.torch import sparse
from pardnn.torch.faithful import Draws, StridesKept

_OWN = Path(__file__).resolve().parent
_TORCH = Path(torch.__file__).resolve().parent
aten = torch.ops.aten


@dataclass
class Trace:
    """One step, functional: no node changes a tensor.

    ``module``: the graph; its placeholders are parameters, buffers, then tensors of the batch; it
    answers the loss, the gradients of ``trained`` (None where the loss does not depend on one), and
    the new values of ``buffers``. ``parameters``, ``buffers``: names in the order of placeholders;
    a tensor with several names has the first. ``inputs``: how many tensors a batch has. A gradient
    may be a sparse tensor; nothing else is. ``again``: of each node that draws the random numbers
    of another one once more, that one.
    """

    module: torch.fx.GraphModule
    parameters: list[str]
    trained: list[str]
    buffers: list[str]
    inputs: int
    spec: Any  # of a batch, as pytree has it
    again: dict[torch.fx.Node, torch.fx.Node]

    @property
    def placeholders(self) -> list[torch.fx.Node]:
        """The nodes of parameters, buffers and inputs, in this order."""
        return [node for node in self.module.graph.nodes if node.op == "placeholder"]

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """Of each parameter and buffer."""
        names = [*self.parameters, *self.buffers]
        nodes = zip(names, self.placeholders, strict=False)
        return {name: node.meta["val"].shape for name, node in nodes}

    @property
    def outputs(self) -> list[Any]:
        """The loss, the gradients and the new buffers."""
        (node,) = (node for node in self.module.graph.nodes if node.op == "output")
        return list(node.args[0])


def trained_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Names of the parameters that the optimizer trains, in its order. Raises Refusal."""
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    names = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in name_of:
                raise Refusal(
                    "the optimizer trains a parameter that is not one of the model's; make it with "
                    "model.parameters(), after the model has got its last parameter"
                )
            if parameter.requires_grad:
                names.append(name_of[id(parameter)])
    return names


def trace(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    device: str = "cpu",
) -> Trace:
    """The step of ``loss_fn(model(x), y)`` for one batch ``(x, y)``.

    ``x`` may be a tensor, a tuple of positional or a dictionary of keyword arguments of the model.
    Parameters may be on the meta device; they count as tensors of ``device``. Raises Refusal, with
    the user's own line, for what no graph can hold.
    """
    trained = trained_names(model, optimizer)
    _refuse_hooks(model, optimizer)
    # A ShapeEnv, so that values which only the data decide become symbols and are found below.
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())

    fake = functools.partial(_faked, mode, device)
    parameters = {
        name: nn.Parameter(fake(parameter), parameter.requires_grad)
        for name, parameter in model.named_parameters()
    }
    buffers = {name: fake(buffer) for name, buffer in model.named_buffers()}
    leaves, spec = pytree.tree_flatten(tuple(example_batch))
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise Refusal("example_batch holds something that is not a tensor; expected tensors only")
    names = [*parameters, *buffers]
    forward: set[torch.fx.Node] = set()
    draws = Draws()

    def step(*values: torch.Tensor) -> list[torch.Tensor | None]:
        state = dict(zip(names, values, strict=False))
        x, y = pytree.tree_unflatten(list(values[len(names) :]), spec)
        # Also while loss and gradients are found: loss_fn may look into the model, and checkpoints
        # run parts of it again.
        replaced = nn.utils.stateless._reparametrize_module(model, {**state}, tie_weights=True)
        with replaced, draws.followed(), StridesKept():
            loss = loss_fn(_called(model, x), y)
            if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
                raise Refusal("loss_fn answered no scalar tensor; expected a loss of one element")
            forward.update(_nodes_so_far())
            wanted = [state[name] for name in trained]
            gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
            held = dict(model.named_buffers(remove_duplicate=False))
        return [loss.detach(), *gradients, *(held.get(name, state[name]) for name in buffers)]

    flat = [*parameters.values(), *buffers.values(), *(fake(leaf) for leaf in leaves)]
    module = _traced(step, model, mode, flat, forward)
    _clean(module)
    _refuse_symbols(module)
    _refuse_held_parameters(module, model)
    names_of = list(parameters), trained, list(buffers)
    return Trace(module, *names_of, len(leaves), spec, draws.again)


def _traced(
    step: Callable[..., Any],
    model: nn.Module,
    mode: FakeTensorMode,
    flat: Sequence[torch.Tensor],
    forward: AbstractSet[torch.fx.Node],
) -> torch.fx.GraphModule:
    """What ``step`` does with these tensors, as a graph; ``forward`` will have the nodes before
    backward. Raises Refusal.
    """
    functional = dispatch_functionalize(step, FunctionalTensorMode())
    with (
        _told_where(forward),
        _side_effects_undone(model),
        torch.random.fork_rng(devices=[]),
        torch.enable_grad(),
        torch.autograd.set_multithreading_enabled(False),
        mode,
    ):
        traced: torch.fx.GraphModule = make_fx(
            functional,
            tracing_mode="real",
            _allow_non_fake_inputs=True,
            record_stack_traces=True,
        )(*flat)
    return traced


def _faked(mode: FakeTensorMode, device: str, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without memory like this one; those of the meta device count as ``device``'s."""
    if tensor.device.type != "meta" and not isinstance(tensor, FakeTensor):
        return mode.from_tensor(tensor.detach(), static_shapes=True)
    with mode:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)


def _called(model: nn.Module, x: Any) -> Any:
    """The model's answer."""
    if isinstance(x, dict):
        return model(**x)
    return model(*x) if isinstance(x, tuple) else model(x)


def _nodes_so_far() -> list[torch.fx.Node]:
    """What has been traced until now."""
    mode: Any = get_proxy_mode()
    return list(mode.tracer.graph.nodes)


@contextlib.contextmanager
def _side_effects_undone(model: nn.Module) -> Iterator[None]:
    """What forward() assigns to attributes of modules would hold tensors of the trace for ever."""
    before = [(module, copy.copy(module.__dict__)) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            kept = {name: module.__dict__[name] for name in ("_parameters", "_buffers", "_modules")}
            module.__dict__.clear()
            module.__dict__.update({**attributes, **kept})


@contextlib.contextmanager
def _told_where(forward: AbstractSet[torch.fx.Node]) -> Iterator[None]:
    """What cannot be captured ends in a Refusal that names the user's line; ``forward``: the nodes
    before backward, empty until that begins.
    """
    try:
        yield
    except (DataDependentOutputException, GuardOnDataDependentSymNode) as error:
        _refuse_padding(forward, error)
        raise Refusal(
            f"{_user_line(error)}: what runs here depends on values of tensors, which a plan made "
            "before training cannot know; run the script under 'pardnn run' or compute both "
            "branches and use torch.where"
        ) from error
    except DynamicOutputShapeException as error:
        _refuse_padding(forward, error)
        raise Refusal(
            f"{_user_line(error)}: the size of this tensor depends on values, which a plan made "
            "before training cannot know"
        ) from error
    except (RuntimeError, AssertionError) as error:
        if isinstance(error, Refusal):
            raise
        if "numpy" in str(error):
            why = "numpy cannot be used inside of a captured step; use torch"
        else:
            why = f"this cannot be captured: {str(error).partition(chr(10))[0]}"
        raise Refusal(f"{_user_line(error)}: {why}") from error


def _refuse_padding(forward: AbstractSet[torch.fx.Node], error: Exception) -> None:
    """Names the embedding whose sparse gradient leaves rows out, if there is one."""
    for node in forward:
        if _padding_of(node) >= 0:
            raise Refusal(
                f"{_place_of(node)}: how many rows this sparse gradient has depends on how often "
                "padding_idx is read; make the embedding with sparse=False"
            ) from error


def _user_line(error: BaseException) -> str:
    """File and line of the innermost frame that is neither torch's nor pardnn's."""
    found = "the model"
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename).resolve()
        if _OWN not in path.parents and _TORCH not in path.parents:
            found = f"{frame.filename}:{frame.lineno}"
    return found


def _clean(module: torch.fx.GraphModule) -> None:
    """Without detach, which is its input, and without what nobody reads."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()


def _refuse_symbols(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        for value in values_of(node):
            if isinstance(value, torch.Tensor):
                if value.layout != torch.strided and not _is_gradient(node):
                    raise Refusal(
                        f"{_place_of_table(module.graph.nodes, value)}: sparse gradients are "
                        "captured of an nn.Embedding that is used once; make this with sparse=False"
                    )
                if all(isinstance(size, int) for size in value.shape):
                    continue
            elif node.op != "call_function" or value is None:
                continue
            raise Refusal(
                f"{_place_of(node)}: what this op answers depends on values of tensors, which a "
                "plan made before training cannot know"
            )


def _place_of_table(nodes: Iterable[torch.fx.Node], gradient: torch.Tensor) -> str:
    """Where the embedding is read whose sparse gradient this is."""
    for node in nodes:
        if _is_sparse_table(node):
            table: Any = node.args[0]
            if table.meta["val"].shape == gradient.shape:
                return _place_of(node)
    return "the model"


def _is_sparse_table(node: torch.fx.Node) -> bool:
    """Whether an embedding is read that has sparse gradients."""
    position = {aten.embedding.default: 4, aten._embedding_bag.default: 5}.get(node.target)
    return position is not None and len(node.args) > position and bool(node.args[position])


def _padding_of(node: torch.fx.Node) -> int:
    """The row of an embedding with sparse gradients that gets none; -1 without one."""
    if not _is_sparse_table(node) or node.target is not aten.embedding.default:
        return -1
    padding = node.args[2]
    assert isinstance(padding, int)
    return padding


def _is_gradient(node: torch.fx.Node) -> bool:
    """Whether a sparse tensor is made for the optimizer alone."""
    return node.target is sparse.MAKE and all(user.op == "output" for user in node.users)


def _refuse_hooks(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Hooks that run between backward and update would be left out."""
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise Refusal("the optimizer has hooks around its step(), which no worker can call")
    for name, parameter in model.named_parameters():
        late = getattr(parameter, "_post_accumulate_grad_hooks", None)
        if parameter._backward_hooks or late:
            raise Refusal(
                f"{name} has a hook on its gradient, which no worker can call; change gradients in "
                "the loss, or use the hooks of modules"
            )


def _refuse_held_parameters(module: torch.fx.GraphModule, model: nn.Module) -> None:
    """A parameter reached past its module would keep its first value for ever."""
    memory = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        tensor = getattr(module, str(node.target))
        if tensor.requires_grad or tensor.untyped_storage()._cdata in memory:
            raise Refusal(
                f"{_place_of(next(iter(node.users)))}: a parameter is read that the step cannot "
                "see change; reach it as an attribute of the model, as in model.layer.weight"
            )


def _place_of(node: torch.fx.Node) -> str:
    lines = [line.strip() for line in (node.stack_trace or "").splitlines() if line.strip()]
    places = [line for line in lines if line.startswith("File ")]
    own = [place for place in places if str(_TORCH) not in place] or places
    return own[-1] if own else f"op {node.target}"


def is_random(node: torch.fx.Node) -> bool:
    """Whether the node draws from the default generator."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def values_of(node: torch.fx.Node) -> Sequence[Any]:
    """What a node answers, as fake tensors: one, or several of a tuple."""
    if node.op == "output":
        return ()
    value = node.meta.get("val")
    return value if isinstance(value, (tuple, list)) else (value,)
