// The Python program in which a peer computes.
#include "weft/app/bench_peer.h"

namespace weft {

// One line asks (JSON), one line answers: "yes ...", "no ..." or a number of seconds.
const char* const kPeerProgram = R"python(
import json, os, sys, time
library, threads = sys.argv[1], sys.argv[2]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = threads
answers = os.fdopen(os.dup(0), "w")
def answer(text):
    print(" ".join(str(text).split())[:300], file=answers, flush=True)
try:
    import numpy as np
    module = np
    is_torch, on_gpu = library in ("torch", "torch.cuda", "onednn"), library == "torch.cuda"
    if is_torch:
        import torch
        import torch.nn.functional as F
        torch.set_num_threads(int(threads))
        module = torch
    if library == "ort":
        import onnx
        import onnxruntime
        module = onnxruntime
    version = module.__version__
    if on_gpu:
        version += " on " + torch.cuda.get_device_name()
        torch.backends.cudnn.allow_tf32 = False  # f32 as here; in products that is the default
    if library == "onednn":
        mkldnn = torch.ops.mkldnn
        version = torch.__config__.show().split("MKL-DNN v")[1].split()[0] + ", of torch " + version
    if library == "openblas":
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        if "openblas" not in blas["name"]:
            raise ImportError("NumPy multiplies with " + blas["name"])
        version = blas["version"] + ", of NumPy " + version
    answer("yes " + version)
except Exception as error:
    answer("no " + str(error))
    sys.exit()

RENAMED = {"mod": "remainder", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
           "swish": "silu"}
def f(name):
    name = RENAMED.get(name, name)
    if name == "gelu":
        return lambda x: F.gelu(x, approximate="tanh")
    for place in (torch, F, torch.special):
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError("there is no " + name)
def finish():
    if on_gpu:
        torch.cuda.synchronize()
def grad(y, of):
    return torch.autograd.grad(y.sum(), of)

PACKED = {}
def packed(w, rows):
    """w as oneDNN's products with that many rows want it, laid out by the first call."""
    if id(w) not in PACKED:
        PACKED[id(w)] = mkldnn._reorder_linear_weight(w, rows)
    return PACKED[id(w)]
def linear(x, w):
    return mkldnn._linear_pointwise(x, w, None, "none", [], "")


class Torch:
    """What networks are written in: weights are made by the first call."""
    def __init__(self):
        self.weights, self.at = [], 0
    def call(self, network, x):
        self.at = 0
        return network(self, x)
    def weight(self, *dims):
        if self.at == len(self.weights):
            weight = torch.from_numpy(random_weight(dims))
            self.weights.append(weight.cuda() if on_gpu else weight)
        self.at += 1
        return self.weights[self.at - 1]
    def channels(self, x):
        return x.shape[1]
    def conv(self, x, out, kernel, stride):
        w = self.weight(out, self.channels(x), kernel, kernel)
        return F.conv2d(x, w, stride=stride, padding=kernel // 2)
    def norm(self, x):
        mean, var, scale, bias = [self.weight(self.channels(x)).abs() for _ in range(4)]
        return F.batch_norm(x, mean, var, scale, bias)
    def relu(self, x):
        return F.relu(x)
    def add(self, x, y):
        return x + y
    def pool(self, x):
        return F.max_pool2d(x, 3, 2, 1)
    def head(self, x, out):
        return F.linear(x.mean((2, 3)), self.weight(out, self.channels(x)), self.weight(out))

class Value:
    def __init__(self, name, channels):
        self.name, self.channels = name, channels

class Onnx:
    """The same as nodes of a model, whose weights are constants."""
    def __init__(self):
        self.nodes, self.weights, self.inputs = [], [], []
    def input(self, array):
        name = "in%d" % len(self.inputs)
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
        return Value(name, array.shape[1] if array.ndim > 1 else 0)
    def op(self, kind, *operands, channels=0, **attributes):
        name = "v%d" % len(self.nodes)
        names = [o.name for o in operands]
        self.nodes.append(onnx.helper.make_node(kind, names, [name], **attributes))
        return Value(name, channels)
    def weight(self, *dims):
        name = "w%d" % len(self.weights)
        self.weights.append(onnx.numpy_helper.from_array(random_weight(dims), name))
        return Value(name, 0)
    def conv(self, x, out, kernel, stride):
        return self.op("Conv", x, self.weight(out, x.channels, kernel, kernel), channels=out,
                       strides=[stride] * 2, pads=[kernel // 2] * 4)
    def norm(self, x):
        for _ in range(4):
            self.weight(x.channels)
            self.weights[-1].CopyFrom(onnx.numpy_helper.from_array(
                np.abs(onnx.numpy_helper.to_array(self.weights[-1])), self.weights[-1].name))
        parts = [Value("w%d" % (len(self.weights) - i), 0) for i in (2, 1, 4, 3)]
        return self.op("BatchNormalization", x, *parts, channels=x.channels)
    def relu(self, x):
        return self.op("Relu", x, channels=x.channels)
    def add(self, x, y):
        return self.op("Add", x, y, channels=x.channels)
    def pool(self, x):
        return self.op("MaxPool", x, channels=x.channels, kernel_shape=[3, 3], strides=[2, 2],
                       pads=[1] * 4)
    def head(self, x, out):
        flat = self.op("Flatten", self.op("GlobalAveragePool", x), channels=x.channels)
        return self.op("Gemm", flat, self.weight(out, x.channels), self.weight(out), transB=1)
    def session(self, result):
        # Of any type and size: inferred.
        result = onnx.helper.make_empty_tensor_value_info(result.name)
        graph = onnx.helper.make_graph(self.nodes, "case", self.inputs, [result], self.weights)
        model = onnx.helper.make_model(
            graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 17)])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(threads)
        return onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(
            model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    def function(self, code, arrays):
        places = {"op": self.op, "weight": self.weight, "resnet50": lambda x: resnet50(self, x)}
        places.update(zip("abcdefgh", [self.input(x) for x in arrays]))
        session = self.session(eval(code, places))
        binding = session.io_binding()
        for i, x in enumerate(arrays):
            binding.bind_ortvalue_input("in%d" % i, onnxruntime.OrtValue.ortvalue_from_numpy(x))
        binding.bind_output(session.get_outputs()[0].name)
        return lambda *unused: session.run_with_iobinding(binding)

def resnet50(n, x):
    x = n.pool(n.relu(n.norm(n.conv(x, 64, 7, 2))))
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            step = stride if i == 0 else 1
            y = n.relu(n.norm(n.conv(x, width, 1, 1)))
            y = n.relu(n.norm(n.conv(y, width, 3, step)))
            y = n.norm(n.conv(y, 4 * width, 1, 1))
            x = n.relu(n.add(y, n.norm(n.conv(x, 4 * width, 1, step)) if i == 0 else x))
    return n.head(x, 1000)

rng = np.random.default_rng(0)
def random_weight(dims):
    scale = float(np.prod(dims[1:])) ** -0.5 if len(dims) > 1 else 1.0
    return (rng.standard_normal(dims) * scale).astype(np.float32)
NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": np.float32, "i32": np.int32,
         "i64": np.int64, "i8": np.int8}
def array(dims, dtype, fill, below):
    if fill == "below":
        return rng.integers(0, below, dims).astype(NUMPY[dtype])
    if fill == "positive":
        return (rng.random(dims) + 0.1).astype(NUMPY[dtype])
    x = rng.standard_normal(dims).astype(NUMPY[dtype])
    if fill == "definite":
        x = x @ x.T + dims[-1] * np.eye(dims[-1], dtype=x.dtype)
    return x
def operand(dims, dtype, fill, below, code):
    x = array(dims, dtype, fill, below)
    if not is_torch:
        return x
    x = torch.from_numpy(x)
    if on_gpu:
        x = x.cuda()
    if dtype == "bf16":
        x = x.bfloat16()
    return x.requires_grad_() if code.startswith("grad(") else x

ORT_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64,
             "tensor(int32)": np.int32, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
             "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
def model(path, shapes):
    """A model of a file with random inputs, and the seconds that it took to load."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    seconds = time.perf_counter() - start
    feed = {}
    for i in session.get_inputs():
        kind = ORT_TYPES[i.type]
        x = rng.random(shapes[i.name])
        feed[i.name] = x.astype(kind) if np.issubdtype(kind, np.floating) else (x < 0.5).astype(kind)
    return seconds, lambda: session.run(None, feed)

SLOW = 5.0  # seconds: what takes longer is run once
first = 0.0

for line in sys.stdin:
    request = json.loads(line)
    try:
        if "model" in request:
            operands, first = [], 0.0
            seconds, function = model(request["model"], request["shapes"])
            start = time.perf_counter()
            function()
            answer("yes %r %r" % (seconds, seconds + time.perf_counter() - start))
        elif "code" in request:
            function = operands = None
            PACKED.clear()
            code = request["code"]
            operands = [operand(*o, code) for o in request["operands"]]
            if library == "ort":
                function = Onnx().function(code, operands)
            elif code == "resnet50(a)":
                function = lambda a, network=Torch(): network.call(resnet50, a)
            else:
                names = ", ".join("abcdefgh"[: len(operands)])
                function = eval("lambda " + names + ": " + code)
            if is_torch:
                torch.set_grad_enabled(code.startswith("grad("))
            start = time.perf_counter()
            function(*operands)
            finish()
            first = time.perf_counter() - start
            answer("yes")
        elif first > SLOW:
            answer(first)
        else:
            function(*operands)
            finish()
            start = time.perf_counter()
            for _ in range(request["runs"]):
                function(*operands)
            finish()
            answer((time.perf_counter() - start) / request["runs"])
    except Exception as error:
        answer("no " + str(error))
)python";

}  // namespace weft
