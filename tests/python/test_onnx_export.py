"""weft.onnx.export: onnx's checker takes what is written, and ONNX Runtime gives what weft gives."""
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import weft.onnx
from weft import Tensor, dtypes, nn

onnx = pytest.importorskip("onnx", reason="the PyPI package onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="the PyPI package onnxruntime is not installed")

RNG = np.random.default_rng(0)


def data(*shape, dtype=np.float32):
    if np.issubdtype(dtype, np.integer):
        return RNG.integers(-8, 8, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype) if dtype != np.bool_ else RNG.random(shape) < 0.5


def session_of(model):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def listed(y):
    return [y] if isinstance(y, Tensor) else list(y)


def same(function, *inputs, rtol=2e-4, atol=2e-5, **options):
    """The model, after ONNX Runtime gave for it what weft gives."""
    tensors = [Tensor(x) for x in inputs]
    model = weft.onnx.export(function, tensors, **options)
    onnx.checker.check_model(model, full_check=True)
    session = session_of(model)
    found = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs)})
    for a, b in zip(found, listed(function(*tensors)), strict=True):
        wanted = b.numpy()
        assert a.shape == wanted.shape and a.dtype == wanted.dtype
        np.testing.assert_allclose(a.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
    return onnx.load_from_string(model)


def operators(model):
    return [n.op_type for n in model.graph.node]


class Mlp:
    def __init__(self):
        self.layers = [nn.Linear(8, 16), nn.Linear(16, 4)]

    def __call__(self, x):
        return self.layers[1](self.layers[0](x).relu()).softmax(-1)


def test_mlp():
    model = same(Mlp(), data(3, 8))
    assert operators(model) == ["Gemm", "Relu", "Gemm", "Softmax"]
    assert {i.name for i in model.graph.initializer} == {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"}


class ConvNet:
    def __init__(self):
        self.conv1, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.head = nn.Conv2d(8, 8, 3, stride=2, groups=2), nn.Linear(8, 5)

    def __call__(self, x):
        x = self.norm(self.conv1(x)).relu().max_pool2d(2)
        x = self.conv2(x).relu().avg_pool2d(2, stride=1)
        return self.head(x.mean((2, 3)))


def test_conv_net_with_batch_norm_and_pools():
    model = same(ConvNet(), data(2, 3, 16, 16))
    assert operators(model) == ["Conv", "BatchNormalization", "Relu", "MaxPool", "Conv", "Relu", "AveragePool", "ReduceMean", "Gemm"]


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"stride": 3, "groups": 2}])
@pytest.mark.parametrize("with_bias", [False, True])
def test_transposed_convolutions(options, with_bias):
    weight = Tensor(data(4, 3, 3, 2))
    bias = Tensor(data(3 * options.get("groups", 1))) if with_bias else None
    model = same(lambda x: x.relu().conv_transpose2d(weight, bias, **options), data(2, 4, 5, 6))
    # By a stride of one it is a convolution by the flipped weights.
    assert operators(model)[-1] == ("ConvTranspose" if "stride" in options else "Conv")


class Block:
    """A transformer's block behind an embedding."""

    def __init__(self, dim=16, heads=2):
        self.embed, self.heads = nn.Embedding(20, dim), heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def __call__(self, ids):
        x = self.embed(ids)
        b, n, d = x.shape
        q, k, v = (self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)[i] for i in range(3))
        attended = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.out(attended.permute(0, 2, 1, 3).reshape(b, n, d))
        return x + self.down(self.up(self.norm2(x)).gelu())


def test_transformer_block():
    model = same(Block(), RNG.integers(0, 20, (2, 6)))
    assert {"Gather", "LayerNormalization", "MatMul", "Softmax"} <= set(operators(model))


def test_recurrent_layers():
    for layer in (nn.LSTM(5, 7), nn.GRU(5, 7)):
        same(lambda x, layer=layer: layer(x)[0], data(4, 2, 5))


def test_a_scan_is_a_scan():
    def summed(xs):
        def step(state, x):
            state = state * 0.5 + x
            return state, state.tanh()
        last, ys = weft.scan(step, Tensor.zeros(3), xs)
        return last, ys
    assert "Scan" in operators(same(summed, data(6, 3)))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "var", "std", "argmax", "argmin", "logsumexp"])
def test_reductions(name):
    x = data(3, 4, 5)
    for axis in (0, 1, -1):
        same(lambda t, a=axis: getattr(t, name)(axis=a), x)
    same(lambda t: getattr(t, name)(axis=1, keepdim=True), x)


def test_running_folds_and_orders():
    x = data(4, 6)
    same(lambda t: t.cumsum(1), x)
    same(lambda t: t.cumprod(0), x)
    same(lambda t: t.cummax(1)[0], x)
    same(lambda t: t.sort(-1)[0], x)
    same(lambda t: t.topk(3)[0], x)


def test_indexing():
    x = data(5, 6)
    same(lambda t: (t[1:4:2], t[::-1], t[:, -1], t[None, 2], t[..., 1:]), x)
    same(lambda t, i: t[i], x, np.array([[0, 4], [-1, 2]]))
    same(lambda t, i: t.gather(1, i), x, RNG.integers(0, 6, (5, 3)))
    same(lambda t, i: t.scatter(1, i, 1.5), x, RNG.integers(0, 6, (5, 1)))
    same(lambda t: (t.pad((1, 2)), t.roll(2, 1), Tensor.cat(t, t, dim=0), t.repeat(2, 1), t.tril(), t.T), x)
    same(lambda t, c: c.where(t, 0), x, data(5, 6, dtype=np.bool_))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.int32, np.bool_])
def test_dtypes(dtype):
    x, y = data(3, 4, dtype=dtype), data(3, 4, dtype=dtype)
    loose = {"rtol": 2e-3, "atol": 2e-3} if dtype == np.float16 else {}
    if dtype == np.bool_:
        same(lambda a, b: (a & b, a | b, a ^ b, ~a, a == b, a.any(0), a.all(1), a.sum(0)), x, y)
    else:
        same(lambda a, b: (a + b, a - b, a * b, a.sum(0), a.max(1), a == b, a < b, a.cast(dtypes.float32)), x, y, **loose)
    if dtype == np.float16:
        same(lambda a, b: (a @ b.T, a.softmax(-1), a.exp()), x, y, **loose)


def test_bfloat16_inside():
    same(lambda t: t.cast(dtypes.bfloat16).cast(dtypes.float32) * 2, data(3, 4))


def test_sizes_with_names():
    net = Mlp()
    model = weft.onnx.export(net, Tensor.zeros(2, 8), input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}})
    onnx.checker.check_model(model, full_check=True)
    assert onnx.load_from_string(model).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    session = session_of(model)
    for n in (1, 2, 7):
        x = data(n, 8)
        np.testing.assert_allclose(session.run(["y"], {"x": x})[0], net(Tensor(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_names_by_dicts_and_a_file_with_data_beside_it(tmp_path):
    layer = nn.Linear(64, 32)
    path = tmp_path / "m.onnx"
    weft.onnx.export(lambda a, b: {"sum": layer(a) + b, "both": a.mean()}, {"a": Tensor.zeros(2, 64), "b": Tensor.zeros(32)}, path,
                     external_data=True, state=nn.state.get_state_dict(layer))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    onnx.checker.check_model(str(path), full_check=True)
    a, b = data(2, 64), data(32)
    found = session_of(str(path)).run(["sum", "both"], {"a": a, "b": b})
    np.testing.assert_allclose(found[0], (layer(Tensor(a)) + Tensor(b)).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], a.mean(), rtol=1e-4)
    again = weft.onnx.OnnxRunner(path)({"a": a, "b": b})
    np.testing.assert_allclose(again["sum"].numpy(), found[0], rtol=1e-4, atol=1e-5)


def test_one_error_lists_all_that_cannot_be_exported():
    counter = Tensor.zeros(3).contiguous().realize()

    def f(x):
        counter.assign(counter + 1)
        return x + Tensor.rand(3) + x.bitcast(dtypes.int32)
    with pytest.raises(ValueError) as caught:
        weft.onnx.export(f, Tensor.zeros(3))
    text = str(caught.value)
    assert "random numbers" in text and "is written to" in text and "bitcast" in text
    with pytest.raises(ValueError, match="opset 3 cannot be written: choose one from 18 to 23"):
        weft.onnx.export(lambda x: x, Tensor.zeros(3), opset=3)


# ---- made smaller

def weft_command():
    built = sorted(pathlib.Path(__file__).parents[2].glob("build/*/weft"), key=lambda p: p.stat().st_mtime)
    command = shutil.which("weft") or (str(built[-1]) if built else None)
    return command or pytest.skip("the command weft is not built")


def networks():
    norm = nn.BatchNorm2d(4)
    conv = nn.Conv2d(3, 4, 3, padding=1)
    yield "norm", lambda x: norm(conv(x)).relu().mean((2, 3)), (2, 3, 8, 8)
    yield "mlp", Mlp(), (3, 8)
    yield "permuted", lambda x: x.permute(0, 2, 1).relu().permute(0, 2, 1) + Tensor.ones(4) * 2, (2, 3, 4)
    attention = nn.LayerNorm(8)
    yield "attention", lambda x: Tensor.scaled_dot_product_attention(*[attention(x).unsqueeze(1)] * 3), (2, 5, 8)


@pytest.mark.parametrize("name,function,shape", list(networks()), ids=lambda x: x if isinstance(x, str) else "")
def test_optimised_models_run_in_onnx_runtime(name, function, shape, tmp_path):
    before, after, x = tmp_path / "before.onnx", tmp_path / "after.onnx", data(*shape)
    weft.onnx.export(function, Tensor(x), before)
    subprocess.run([weft_command(), "onnx", "optimize", before, "-o", after], check=True, capture_output=True)
    onnx.checker.check_model(onnx.load(after), full_check=True)
    given, made = session_of(str(before)), session_of(str(after))
    names = [i.name for i in given.get_inputs()]
    for a, b in zip(given.run(None, {names[0]: x}), made.run(None, {names[0]: x}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# ---- training

def test_gradients_of_a_loaded_model_are_torchs(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5), torch.nn.Tanh())
    x, target = torch.randn(3, 2, 8, 8), torch.randn(3, 5)
    path = tmp_path / "m.onnx"
    torch.onnx.export(net, (x,), str(path), dynamo=False, input_names=["x"], output_names=["y"], do_constant_folding=False)
    before = path.read_bytes()
    runner = weft.onnx.OnnxRunner(path)
    parameters = runner.parameters()
    assert len(parameters) == 4
    ((runner({"x": x.numpy()})["y"] - Tensor(target.numpy())) ** 2).mean().backward()
    ((net(x) - target) ** 2).mean().backward()
    state = runner.state_dict()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(state[name].grad.numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)
    optimizer = nn.optim.SGD(parameters, lr=0.1)
    with Tensor.train():
        optimizer.step()
    assert path.read_bytes() == before
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
    runner.save(tmp_path / "trained.onnx")
    found = session_of(str(tmp_path / "trained.onnx")).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found, net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
