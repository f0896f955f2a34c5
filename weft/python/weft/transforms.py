"""Transforms of functions: they nest in any order, and what they give are functions like any other.

    per_example = vmap(grad(loss), in_axes=(None, 0, 0))
    g = per_example(weights, images, labels)

A function is traced once, on placeholders: while it runs, its arguments have shapes and dtypes but no
values, so item(), numpy() and the like are errors inside it.
"""
from weft import _core

__all__ = ["grad", "hessian", "jacobian", "jvp", "value_and_grad", "vjp", "vmap"]


def _listed(results):
    """A function's results as a list, and what turns such a list into their form."""
    if isinstance(results, (tuple, list)):
        return list(results), type(results)
    return [results], lambda one: one[0]


class _Traced:
    """f on lists of tensors; remembers the form of what f gave."""

    def __init__(self, f, kwargs):
        self.f, self.kwargs, self.form = f, kwargs, None

    def __call__(self, inputs):
        results, self.form = _listed(self.f(*inputs, **self.kwargs))
        return results


def vmap(f, in_axes=0, out_axes=0):
    """f on every slice of its arguments along in_axes, at once; the results are stacked along out_axes.

    in_axes is one number for all arguments, or a sequence with a number or None (the whole argument every
    time) for each.
    """
    def mapped(*args, **kwargs):
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        traced = _Traced(f, kwargs)
        results = _core.vmap(traced, list(args), axes, out_axes)
        return traced.form(results)
    return mapped


def vjp(f, *primals):
    """(f(*primals), the function from upstream gradients to gradients of the primals)."""
    traced = _Traced(f, {})
    results, pull = _core.vjp(traced, list(primals))
    form = traced.form

    def pullback(upstream):
        grads = pull(_listed(upstream)[0])
        return tuple(grads)
    return form(results), pullback


def jvp(f, primals, tangents):
    """(f(*primals), how it changes when the primals move along the tangents)."""
    traced = _Traced(f, {})
    results, moved = _core.jvp(traced, list(primals), list(tangents))
    return traced.form(results), traced.form(moved)


def value_and_grad(f, argnums=0):
    """The function that gives f's value (one element) and its gradients of the arguments at argnums."""
    single = isinstance(argnums, int)
    places = (argnums,) if single else tuple(argnums)

    def both(*args, **kwargs):
        def of_wanted(wanted):
            given = list(args)
            for place, x in zip(places, wanted):
                given[place] = x
            return [f(*given, **kwargs)]
        value, grads = _core.value_and_grad(of_wanted, [args[i] for i in places])
        return value, grads[0] if single else tuple(grads)
    return both


def grad(f, argnums=0):
    """The function that gives f's gradients of the arguments at argnums."""
    both = value_and_grad(f, argnums)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def jacobian(f):
    """The function that gives d f(x) / d x: the result's axes, then x's."""
    return lambda x: _core.jacobian(lambda inputs: [f(inputs[0])], x)


def hessian(f):
    """The function that gives the second derivatives of f, whose result has one element."""
    return lambda x: _core.hessian(lambda inputs: [f(inputs[0])], x)
