"""Random functions of one tensor whose steps fold, normalise, sort, look up and move along different axes: values,
first and second derivatives, and vmap and jvp of gradients, against PyTorch.

Many more of them, where this file lies: python test_random_derivatives.py FIRST COUNT"""
import sys

import numpy as np

from conftest import needs_torch, torch
from weft import Tensor, dtypes, jvp, vmap

LARGEST = 80  # elements of a value


class Ours:
    """What the two libraries call differently."""
    def const(self, a):
        return Tensor(np.array(a, order="C"), dtype=dtypes.float64 if a.dtype == np.float64 else dtypes.int64)

    def cat(self, xs, a):
        return Tensor.cat(*xs, dim=a)

    def stack(self, xs, a):
        return Tensor.stack(*xs, dim=a)

    def amax(self, x, a, keepdim):
        return x.max(a, keepdim)

    def pad(self, x, amounts, value):
        return x.pad(amounts, value=value)

    def flip(self, x, a):
        return x.flip(a)

    def where(self, condition, x, y):
        return condition.where(x, y)

    def layernorm(self, x, a):
        return x.layernorm(a)

    def scatter_add(self, x, a, at, src):
        return x.scatter_reduce(a, at, src, "sum")


class Theirs:
    def const(self, a):
        return torch.tensor(a)

    def cat(self, xs, a):
        return torch.cat(xs, a)

    def stack(self, xs, a):
        return torch.stack(xs, a)

    def amax(self, x, a, keepdim):
        return x.amax(a, keepdim)

    def pad(self, x, amounts, value):
        return torch.nn.functional.pad(x, [n for pair in reversed(amounts) for n in pair], value=value)

    def flip(self, x, a):
        return x.flip((a,))

    def where(self, condition, x, y):
        return torch.where(condition, x, y)

    def layernorm(self, x, a):
        centred = x - x.mean(a, keepdim=True)
        return centred / (centred.square().mean(a, keepdim=True) + 1e-5).sqrt()

    def scatter_add(self, x, a, at, src):
        return x.scatter_add(a, at, src)


class Program:
    """Each step is (text, function of a library and operands, numbers of operands). What decides by order adds noise
    first: equal numbers would be told apart by rounding alone. Nothing grows faster than its operands."""
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        rank = int(self.rng.integers(1, 4))
        self.shape = tuple(int(n) for n in self.rng.integers(2, 8 if rank < 3 else 5, rank))
        self.shapes, self.steps = [self.shape], []
        count = int(self.rng.integers(20, 61))
        while len(self.steps) < count:
            self.try_step()
        used = {i for _, _, operands in self.steps for i in operands}
        self.ends = [i for i in range(1, len(self.shapes)) if i not in used]
        self.weights = [self.noise(self.shapes[i]) for i in self.ends]

    # ---- what is drawn

    def noise(self, shape):
        return self.rng.uniform(-1, 1, shape)

    def positions(self, most, shape):
        return self.rng.integers(0, most, shape)

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def try_step(self):
        i = len(self.shapes) - 1 if self.chance(65) else int(self.rng.integers(len(self.shapes)))
        shape = self.shapes[i]
        kinds = [self.elementwise, self.combine, self.reshape, self.grow]
        if shape:
            kinds += 2 * [self.running, self.normalise, self.reduce, self.look_up, self.move, self.combine] + [
                self.sort, self.window]
        text, f, *others = self.pick(kinds)(shape)
        operands = [i, *others]
        with torch.no_grad():
            y = f(Theirs(), *[torch.zeros(self.shapes[k], dtype=torch.float64) for k in operands])
        if 0 < y.numel() <= LARGEST and y.ndim <= 4:
            self.steps.append((text, f, operands))
            self.shapes.append(tuple(y.shape))

    def axis(self, shape):
        return int(self.rng.integers(len(shape)))

    def running(self, shape):
        a, c = self.axis(shape), self.noise(shape)
        name, f = self.pick([
            ("cumsum", lambda m, x: x.cumsum(a)),
            ("cumprod", lambda m, x: (x.tanh() * .5 + 1).cumprod(a)),
            ("cumprod of zeros", lambda m, x: x.tanh().relu().cumprod(a)),
            ("cummax", lambda m, x: (x + m.const(c)).cummax(a)[0]),
            ("cummin", lambda m, x: (x + m.const(c)).cummin(a)[0]),
            ("logcumsumexp", lambda m, x: x.logcumsumexp(a)),
        ])
        if self.chance(70):
            return f"{name} {a}", f
        return f"{name} {a} backwards", lambda m, x: m.flip(f(m, m.flip(x, a)), a)

    def normalise(self, shape):
        a = self.axis(shape)
        return self.pick([
            (f"softmax {a}", lambda m, x: x.softmax(a)),
            (f"log_softmax {a}", lambda m, x: x.log_softmax(a)),
            (f"layernorm {a}", lambda m, x: m.layernorm(x * 2, a)),
            (f"unit {a}", lambda m, x: x / ((x * x).sum(a, keepdim=True) + .1).sqrt()),
            (f"share {a}", lambda m, x: x.sigmoid() / x.sigmoid().sum(a, keepdim=True)),
            (f"less max {a}", lambda m, x: x - m.amax(x, a, True)),
            (f"less logsumexp {a}", lambda m, x: x - x.logsumexp(a, keepdim=True)),
            (f"scaled by var {a}", lambda m, x: x / (x.var(a, keepdim=True, correction=0) + 1)),
        ])

    def reduce(self, shape):
        a, keepdim, c = self.axis(shape), self.chance(40), self.noise(shape)
        name, f = self.pick([
            ("sum", lambda m, x: x.sum(a, keepdim=keepdim)),
            ("mean", lambda m, x: x.mean(a, keepdim=keepdim)),
            ("prod", lambda m, x: (x.tanh() * .5 + 1).prod(a, keepdim=keepdim)),
            ("prod of zeros", lambda m, x: x.relu().tanh().prod(a, keepdim=keepdim)),
            ("max", lambda m, x: m.amax(x + m.const(c), a, keepdim)),
            ("logsumexp", lambda m, x: x.logsumexp(a, keepdim=keepdim)),
            ("std", lambda m, x: ((x + m.const(c)).var(a, keepdim=keepdim, correction=0) + .1).sqrt()),
        ])
        if self.chance(60):  # back where it was taken from
            back = (lambda y: y) if keepdim else lambda y: y.unsqueeze(a)
            return f"x * {name} {a}", lambda m, x: x * back(f(m, x)).tanh()
        return f"{name} {a} {keepdim}", f

    def sort(self, shape):
        a, c = self.axis(shape), self.noise(shape)
        n, down = shape[a], bool(self.chance(50))
        return self.pick([
            (f"sort {a}", lambda m, x: (x + m.const(c)).sort(a, down)[0]),
            (f"topk {a}", lambda m, x: (x + m.const(c)).topk((n + 1) // 2, a)[0]),
            (f"by argsort {a}", lambda m, x: x.gather(a, (x + m.const(c)).argsort(a, down))),
            (f"at argmax {a}", lambda m, x: x.gather(a, (x + m.const(c)).argmax(a, keepdim=True))),
        ])

    def look_up(self, shape):
        a = self.axis(shape)
        n = shape[a]
        some = list(shape)
        some[a] = int(self.rng.integers(1, n + 2))
        at, src = self.positions(n, some), self.noise(some)
        order = np.argsort(self.rng.random(shape), a)
        line = self.positions(n, int(self.rng.integers(1, n + 2)))
        return self.pick([
            (f"gather {a}", lambda m, x: x.gather(a, m.const(at))),
            (f"index_select {a}", lambda m, x: x.index_select(a, m.const(line))),
            (f"scatter {a}", lambda m, x: (x * 0 + .5).scatter(a, m.const(order), x)),
            (f"scatter of a gather {a}",
             lambda m, x: m.scatter_add(x, a, m.const(at), x.gather(a, m.const(at)).tanh())),
            (f"scatter_add {a}", lambda m, x: m.scatter_add(x * .5, a, m.const(at), m.const(src))),
            (f"scatter_reduce amax {a}",
             lambda m, x: x.scatter_reduce(a, m.const(at), x.gather(a, m.const(at)) * .5 + m.const(src), "amax")),
        ])

    def move(self, shape):
        a, b = self.axis(shape), self.axis(shape)
        n, k = shape[a], int(self.rng.integers(1, 4))
        order = [int(i) for i in self.rng.permutation(len(shape))]
        amounts = [(int(self.rng.integers(0, 2)), int(self.rng.integers(0, 3))) for _ in shape]
        part = tuple(slice(int(self.rng.integers(0, (s + 1) // 2)), None, int(self.rng.integers(1, 3))) for s in shape)
        return self.pick([
            (f"permute {order}", lambda m, x: x.permute(*order)),
            (f"flip {a}", lambda m, x: m.flip(x, a)),
            (f"pad {amounts}", lambda m, x: m.pad(x, amounts, .25)),
            (f"slices {part}", lambda m, x: x[part]),
            (f"roll {k} {a}", lambda m, x: x.roll(k, a)),
            (f"cat {a}", lambda m, x: m.cat([x, m.flip(x, b)[(slice(None),) * a + (slice(0, (n + 1) // 2),)]], a)),
            (f"shifted {a}", lambda m, x: x - x.roll(1, a) * .5),
        ])

    def window(self, shape):
        a, c = self.axis(shape), self.rng
        size, step = int(c.integers(1, min(4, shape[a] + 1))), int(c.integers(1, 3))
        places = (shape[a] - size) // step + 1
        noise = self.noise((*shape[:a], places, *shape[a + 1:], size))
        return self.pick([
            (f"windows {a} {size} {step}", lambda m, x: x.unfold(a, size, step)),
            (f"window sum {a} {size} {step}", lambda m, x: x.unfold(a, size, step).sum(-1)),
            (f"window max {a} {size} {step}", lambda m, x: m.amax(x.unfold(a, size, step) + m.const(noise), -1, False)),
            (f"window prod {a} {size} {step}", lambda m, x: (x.tanh() + .5).unfold(a, size, step).prod(-1)),
        ])

    def reshape(self, shape):
        count = int(np.prod(shape))
        n = self.pick([d for d in range(1, count + 1) if count % d == 0])
        if self.chance(50) and len(shape) > 1:
            a = int(self.rng.integers(len(shape) - 1))
            return f"flatten {a}", lambda m, x: x.flatten(a, a + 1)
        return f"reshape {n}", lambda m, x: x.reshape(n, count // n)

    def grow(self, shape):
        a, k = int(self.rng.integers(len(shape) + 1)), int(self.rng.integers(2, 4))
        sizes = [*shape[:a], k, *shape[a:]]
        c = self.noise(sizes)
        return self.pick([
            (f"expand {a} {k}", lambda m, x: x.unsqueeze(a).expand(*sizes)),
            (f"expand {a} {k} * c", lambda m, x: x.unsqueeze(a) * m.const(c)),
            (f"stack {a}", lambda m, x: m.stack([x, x.sin()], a)),
        ])

    def elementwise(self, shape):
        c = self.noise(shape)
        return self.pick([
            ("tanh", lambda m, x: x.tanh()), ("sigmoid", lambda m, x: x.sigmoid()), ("sin", lambda m, x: x.sin()),
            ("bell", lambda m, x: (x * x * -.5).exp()), ("log", lambda m, x: (x * x + .5).log()),
            ("sqrt", lambda m, x: (x * x + .3).sqrt()), ("relu", lambda m, x: x.relu()),
            ("+ c", lambda m, x: x + m.const(c)), ("* c", lambda m, x: x * m.const(c)),
            ("1 / (1 + x^2)", lambda m, x: 1 / (x * x + 1)), ("abs", lambda m, x: (x + m.const(c)).abs()),
            ("clamp", lambda m, x: (x + m.const(c)).clamp(-.8, .9)), ("erf", lambda m, x: x.erf()),
        ])

    def combine(self, shape):
        same = [i for i, s in enumerate(self.shapes) if s == shape]
        other, c = self.pick(same), self.noise(shape)
        weight = self.noise((shape[-1], int(self.rng.integers(1, 5)))) / shape[-1] if shape else None
        choices = [
            ("x + y", lambda m, x, y: x + y), ("x - y", lambda m, x, y: x - y * .5),
            ("x * y", lambda m, x, y: x * y.tanh()), ("x / y", lambda m, x, y: x / (y * y + .7)),
            ("where", lambda m, x, y: m.where(y + m.const(c) > 0, x, y)),
            ("maximum", lambda m, x, y: (x + m.const(c)).maximum(y)),
        ]
        if shape:
            choices.append(("x @ c", lambda m, x, y: x @ m.const(weight) + y.sum() * .1))
        text, f = self.pick(choices)
        return f"{text}, y = {other}", f, other

    # ---- what it is compared by

    def loss(self, m, x):
        pool = [x]
        for _, f, operands in self.steps:
            pool.append(f(m, *[pool[i] for i in operands]))
        return sum((pool[i] * m.const(w)).sum() for i, w in zip(self.ends, self.weights))

    def describe(self):
        lines = [f"v{k + 1} {s} = {text} of v{operands[0]}"
                 for k, ((text, _, operands), s) in enumerate(zip(self.steps, self.shapes[1:]))]
        return "\n".join([f"v0 {self.shape}", *lines, f"ends {self.ends}"])


def theirs(p, xs, vs):
    """Per slice: value, gradient, Hessian times v."""
    out = []
    for x, v in zip(xs, vs):
        at = torch.tensor(x, requires_grad=True)
        y = p.loss(Theirs(), at)
        g, = torch.autograd.grad(y, at, create_graph=True)
        h = torch.autograd.grad((g * torch.tensor(v)).sum(), at, allow_unused=True)[0] if g.requires_grad else None
        out.append([a.detach().numpy() for a in (y, g, torch.zeros_like(g) if h is None else h)])
    return [np.stack(a) for a in zip(*out)]


def ours(p, xs, vs):
    """The same, second derivatives twice: as gradients of gradients for the first slice alone, as jvp of gradients,
    mapped over all slices."""
    def gradient(x):
        return p.loss(Ours(), x).gradient(x)[0]

    def all_of(x, v):
        return p.loss(Ours(), x), *jvp(gradient, [x], [v])
    x, v = Ours().const(xs[0]), Ours().const(vs[0])
    y = p.loss(Ours(), x)
    g = y.gradient(x)[0]
    h = (g * v).sum().gradient(x)[0]
    mapped = vmap(all_of)(Ours().const(xs), Ours().const(vs)) if len(xs) > 1 else [t.unsqueeze(0) for t in all_of(x, v)]
    Tensor.realize(y, g, h, *mapped)
    return [t.numpy() for t in (y, g, h)], [t.numpy() for t in mapped]


def like_differences(p, x, v, ours):
    """Whether PyTorch's first derivative moves like that: its second is not always right behind products with zeros."""
    def slope(step):
        at = torch.tensor(x + step * v, requires_grad=True)
        return torch.autograd.grad(p.loss(Theirs(), at), at)[0].numpy()
    for step in (1e-5, 1e-6, 3e-7):  # not across a kink
        moved = (slope(step) - slope(-step)) / (2 * step)
        if np.abs(moved - ours).max() <= 1e-5 * max(1, np.abs(moved).max()):
            return True
    return False


def near(p, xs, vs, number, ours, wanted):
    """How far numbers may be apart is what PyTorch's own move when its input does by 1e-13."""
    if ours.shape != wanted.shape or not np.isfinite(ours).all():
        return False
    size = max(1, np.abs(np.nan_to_num(wanted)).max())
    if np.abs(ours - wanted).max() <= 1e-8 * size:
        return True
    rng = np.random.default_rng(0)
    shaken = [theirs(p, xs * (1 + 1e-13 * rng.choice([-1, 1], xs.shape)), vs)[number] for _ in range(3)]
    loose = max(np.abs(s - wanted).max() for s in shaken)
    return bool(np.abs(ours - wanted).max() <= 1e-8 * size + 100 * loose) or (
        number == 2 and all(like_differences(p, *each) for each in zip(xs, vs, ours)))


def difference(seed):
    """Text that says what differs, or nothing."""
    p, rng = Program(seed), np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    xs, vs = rng.uniform(-2, 2, (count, *p.shape)), rng.uniform(-1, 1, (count, *p.shape))
    wanted = theirs(p, xs, vs)
    alone, mapped = ours(p, xs, vs)
    for number, name in enumerate(("value", "gradient", "second derivative")):
        if not near(p, xs[:1], vs[:1], number, alone[number][None], wanted[number][:1]):
            return f"seed {seed}: {name} differs"
        if not near(p, xs, vs, number, mapped[number], wanted[number]):
            return f"seed {seed}: {name} differs under vmap"
    return ""


@needs_torch
def test_random_derivatives():
    for seed in range(25):
        wrong = difference(seed)
        assert not wrong, f"{wrong}\n{Program(seed).describe()}"


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for number in range(first, first + count):
        try:
            found = difference(number)
        except Exception as error:
            found = f"seed {number}: {type(error).__name__}: {str(error)[:300]}"
        if found:
            print(found, flush=True)
        if (number + 1) % 500 == 0:
            print("done", number + 1, flush=True)
