"""weft: tensors, gradients and a compiler for them.

    from weft import Tensor

    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x.T).relu().sum().item())

Names follow tinygrad's where it has one and PyTorch's otherwise.
"""
import os

# What captured functions look into their arguments with: a child of a process that was in the middle of importing it
# would wait for that for ever.
from weft import _core, contents
from weft._core import (ArgumentError, DeviceError, Dim, DTypeError, DTypeNameError, InternalError, JitError, TinyJit,
                        PassRecord, Variable, __version__, explain, explain_passes, from_dlpack)
from weft.tensor import Tensor
from weft.dtype import DType, dtypes
from weft.device import Device
from weft.helpers import Context, GlobalCounters, fetch, getenv
from weft.function import function
from weft.kernels import custom_kernel
from weft.transforms import (accumulate_gradients, checkpoint, custom_gradient, grad, hessian, jacobian, jvp, scan,
                             value_and_grad, vjp, vmap, while_loop)

_core.set_package_folder(os.path.dirname(__file__))

def __getattr__(name: str):
    if name in ("array_api", "data", "fft", "linalg", "llm", "nn", "onnx", "random", "tensorboard", "text", "viz"):  # made on first use: `import weft` stays light
        import importlib
        return importlib.import_module(f"weft.{name}")
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


__all__ = ["ArgumentError", "Context", "DType", "DTypeError", "DTypeNameError", "Device", "DeviceError", "Dim",
           "GlobalCounters", "InternalError", "JitError", "PassRecord", "Tensor", "TinyJit", "Variable", "__version__",
           "accumulate_gradients", "dtypes", "fetch", "checkpoint", "custom_gradient", "custom_kernel", "explain", "explain_passes",
           "from_dlpack", "function", "getenv", "grad", "hessian", "jacobian", "jvp", "scan", "value_and_grad", "vjp", "vmap",
           "while_loop"]
