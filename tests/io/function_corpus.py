#!/usr/bin/env python3
"""The corpus of captured functions, written by the weft that runs it:

    python3 tests/io/function_corpus.py tests/fuzz/corpus/function"""
import sys
from weft import Tensor, TinyJit, Variable
folder = sys.argv[1]
def save(name, f):
    data = f.__reduce__()[1][0]
    open(f"{folder}/{name}", "wb").write(data)
state = Tensor([1.0, 2.0]).realize()
def with_state(x):
    state.assign(state + x)
    return state * 2
f = TinyJit(with_state)
for _ in range(3): f(Tensor([1.0, 1.0]))
save("state", f)
cpu = Tensor([1.0, 2.0], device="CPU:INTERP").realize()
f = TinyJit(lambda x: (x + cpu.to("CPU")).realize())
for _ in range(3): f(Tensor([1.0, 1.0]))
save("devices", f)
v = Variable("n", 1, 8)
data, other = (Tensor.arange(8).float().contiguous().realize() for _ in range(2))
f = TinyJit(lambda x: x.sum())
for i in (2, 3, 4): f(data[:v.bind(i)])
save("size", f)
f = TinyJit(lambda x, y: x.sum() * y.sum())
for i in (2, 3, 4): f(data[:v.bind(i)], other[:v.bind(i + 1)])
save("two_sizes", f)
f = TinyJit(lambda x, k: x.sort()[0] * k)
for _ in range(3): f(Tensor([3.0, 1.0, 2.0]), 2)
save("sort", f)
f = TinyJit(lambda x, n: x + n)
for i in (2, 3, 4): f(Tensor([3.0]), v.bind(i))
save("number", f)
