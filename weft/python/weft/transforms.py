"""Transforms of functions: they nest in any order, and what they give are functions like any other.

    per_example = vmap(grad(loss), in_axes=(None, 0, 0))
    g = per_example(weights, images, labels)

A function is traced once, on placeholders: while it runs, its arguments have shapes and dtypes but no
values, so item(), numpy() and the like are errors inside it.
"""
from typing import Any

from weft import _core
from weft._core import Tensor

__all__ = ["accumulate_gradients", "checkpoint", "custom_gradient", "grad", "hessian", "jacobian", "jvp", "scan", "value_and_grad", "vjp",
           "vmap", "while_loop"]


def _flatten(tree: Any, leaves: Any) -> Any:
    """Appends the tensors of nested tuples, lists and dicts; gives their structure."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: _flatten(tree[key], leaves) for key in tree}
    if isinstance(tree, (tuple, list)):
        return type(tree)(_flatten(part, leaves) for part in tree)
    leaves.append(tree)
    return len(leaves) - 1


def _unflatten(structure: Any, leaves: Any) -> Any:
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _unflatten(part, leaves) for key, part in structure.items()}
    if isinstance(structure, (tuple, list)):
        return type(structure)(_unflatten(part, leaves) for part in structure)
    return leaves[structure]


def _listed(results: Any) -> Any:
    """A function's results as a list, and what turns such a list into their form."""
    if isinstance(results, (tuple, list)):
        return list(results), type(results)
    return [results], lambda one: one[0]


class _Traced:
    """f on lists of tensors; remembers the form of what f gave."""

    def __init__(self, f: Any, kwargs: Any) -> None:
        self.f, self.kwargs = f, kwargs
        self.form: Any = None

    def __call__(self, inputs: Any) -> Any:
        results, self.form = _listed(self.f(*inputs, **self.kwargs))
        return results


def vmap(f: Any, in_axes: Any = 0, out_axes: Any = 0) -> Any:
    """f on every slice of its arguments along in_axes, at once; the results are stacked along out_axes.

    in_axes is one number for all arguments, or a sequence with a number or None (the whole argument every
    time) for each.
    """
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        traced = _Traced(f, kwargs)
        results = _core.vmap(traced, list(args), axes, out_axes)
        return traced.form(results)
    return mapped


def vjp(f: Any, *primals: Any) -> Any:
    """(f(*primals), the function from upstream gradients to gradients of the primals)."""
    traced = _Traced(f, {})
    results, pull = _core.vjp(traced, list(primals))
    form = traced.form

    def pullback(upstream: Any) -> Any:
        grads = pull(_listed(upstream)[0])
        return tuple(grads)
    return form(results), pullback


def jvp(f: Any, primals: Any, tangents: Any) -> Any:
    """(f(*primals), how it changes when the primals move along the tangents)."""
    traced = _Traced(f, {})
    results, moved = _core.jvp(traced, list(primals), list(tangents))
    return traced.form(results), traced.form(moved)


def value_and_grad(f: Any, argnums: Any = 0) -> Any:
    """The function that gives f's value (one element) and its gradients of the arguments at argnums."""
    single = isinstance(argnums, int)
    places = (argnums,) if single else tuple(argnums)

    def both(*args: Any, **kwargs: Any) -> Any:
        def of_wanted(wanted: Any) -> Any:
            given = list(args)
            for place, x in zip(places, wanted):
                given[place] = x
            return [f(*given, **kwargs)]
        value, grads = _core.value_and_grad(of_wanted, [args[i] for i in places])
        return value, grads[0] if single else tuple(grads)
    return both


def grad(f: Any, argnums: Any = 0) -> Any:
    """The function that gives f's gradients of the arguments at argnums."""
    both = value_and_grad(f, argnums)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def jacobian(f: Any) -> Any:
    """The function that gives d f(x) / d x: the result's axes, then x's."""
    return lambda x: _core.jacobian(lambda inputs: [f(inputs[0])], x)


def hessian(f: Any) -> Any:
    """The function that gives the second derivatives of f, whose result has one element."""
    return lambda x: _core.hessian(lambda inputs: [f(inputs[0])], x)


def scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> Any:
    """f over the slices of xs along their first axis: carried, y = f(carried, x). Gives the last of what is
    carried, and the ys stacked.

        def layer(h, p):
            return (h @ p["w"] + p["b"]).tanh(), None
        h, _ = scan(layer, h, {"w": stacked_weights, "b": stacked_biases})

    init, xs and what f gives are tensors, or tuples, lists and dicts of them. The body is traced and compiled
    once, however many slices there are; gradients keep only what is carried between slices. Without xs,
    length says how often. reverse goes from the last slice to the first.
    """
    carried: list[Tensor] = []
    slices: list[Tensor] = []
    carried_form, slices_form = _flatten(init, carried), _flatten(xs, slices)
    outs_form: list[Any] = []

    def body(state: Any, parts: Any) -> Any:
        made, y = f(_unflatten(carried_form, state), _unflatten(slices_form, parts))
        following: list[Tensor] = []
        outs: list[Tensor] = []
        if _flatten(made, following) != carried_form:
            raise ValueError("scan: what is carried changes its structure")
        outs_form[:] = [_flatten(y, outs)]
        return following, outs
    last, stacked = _core.scan(body, carried, slices, reverse, length or 0)
    return _unflatten(carried_form, last), _unflatten(outs_form[0], stacked)


def while_loop(condition: Any, f: Any, init: Any, most: int) -> Any:
    """What is carried after f(carried) again and again, while condition(carried), one number or bool, is not 0.

        root = while_loop(lambda r: (r * r - x).abs().max() > 1e-6, lambda r: (r + x / r) / 2, x, most=50)

    init and what f gives are a tensor, or tuples, lists and dicts of them. At most `most` rounds, since everything
    is planned ahead: where the host can look into the device's memory (CPU) no more of them run than are needed, or
    one or two; elsewhere all do, the rest without effect. Both functions are traced once. Gradients run through
    all `most` rounds; in vmap every slice ends by itself. A ValueError where f changes what is carried in
    structure, shape or dtype, or the condition is not one number.
    """
    carried: list[Tensor] = []
    form = _flatten(init, carried)

    def body(state: Any) -> Any:
        following: list[Tensor] = []
        if _flatten(f(_unflatten(form, state)), following) != form:
            raise ValueError("while_loop: what is carried changes its structure")
        return following
    return _unflatten(form, _core.while_loop(lambda state: condition(_unflatten(form, state)), body, carried, most))


def accumulate_gradients(loss: Any, batch: Any, parts: int, reduction: str = "mean") -> Tensor:
    """loss(*batch).backward() for a batch that is computed in micro-batches, one after the other: equal to it
    within the rounding of a sum of `parts` terms, in the memory of one micro-batch, compiled once.

        opt.zero_grad()
        loss = weft.accumulate_gradients(lambda x, y: net(x).cross_entropy(y), (images, labels), 8)
        opt.step()

    batch is a tensor, or a tuple or list of tensors, lists and dicts of them: each is cut along its first axis
    into `parts` equal pieces. Pass what selects data (places, keys) rather than data, which would be in memory as
    a whole. Returns the mean of the pieces' losses ("sum": their sum), lazily and without a history; gradients
    add up as in backward(). What the loss assigns to (batch norm's averages) and what it draws (dropout) are as
    in a loop over the pieces: batch norm sees one of them at a time. The loss is traced, on placeholders: while
    it runs nothing has a value; it is called twice where it assigns. A ValueError where the batch is no multiple
    of `parts`, tensors differ in length, or the loss is not one number or depends on nothing to train.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"accumulate_gradients: reduction must be 'mean' or 'sum', not {reduction!r}")
    pieces: list[Tensor] = []
    form = _flatten(list(batch) if isinstance(batch, (tuple, list)) else [batch], pieces)
    return _core.accumulate_gradients(lambda slices: loss(*_unflatten(form, slices)), pieces, parts,
                                      reduction == "mean")


def checkpoint(f: Any) -> Any:
    """f, of which only results are kept for gradients: they compute what is inside again."""
    def kept(*args: Any, **kwargs: Any) -> Any:
        traced = _Traced(f, kwargs)
        results = _core.checkpoint(traced, list(args))
        return traced.form(results)
    return kept


def custom_gradient(gradient: Any) -> Any:
    """Decorator: gradient(inputs, results, upstream) gives a gradient, or None, for each argument.

        @custom_gradient(lambda x, y, up: [up[0]])
        def straight_through(x): return x.sign()

    The rule is traced where the function is called: it has derivatives itself and may be batched. Tensors
    that the function uses besides its arguments get no gradient.
    """
    def decorate(f: Any) -> Any:
        def with_rule(*args: Any, **kwargs: Any) -> Any:
            traced = _Traced(f, kwargs)

            def rule(inputs: Any, results: Any, upstream: Any) -> Any:
                return list(_listed(gradient(inputs, results, upstream))[0])
            results = _core.with_gradient(traced, rule, list(args))
            return traced.form(results)
        return with_rule
    return decorate
