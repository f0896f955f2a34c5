"""Writes _core.pyi: what nanobind knows of the module, and what weft/*.py adds to it; and beside it linalg.pyi and
fft.pyi, of the modules in it that weft/*.py pass on.

    python make_stub.py FOLDER_OF_THE_MODULE OUTPUT
"""
import ast
import importlib
import os
import re
import sys

from nanobind.stubgen import StubGen

# What weft/tensor.py puts on Tensor, and names that end in _, which nanobind takes for private ones.
ON_TENSOR = '''
    class train(contextlib.ContextDecorator):
        """with Tensor.train(): dropout and batch norm train, and optimizers may step."""
        def __init__(self, mode: builtins.bool = True) -> None: ...
        def __enter__(self) -> Self: ...
        def __exit__(self, *exception: object) -> None: ...

    class no_grad(contextlib.ContextDecorator):
        def __enter__(self) -> Self: ...
        def __exit__(self, *exception: object) -> None: ...

    def is_(self, other: Tensor) -> builtins.bool: ...
    def is_param_(self, is_param: builtins.bool = True) -> Tensor: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    def sequential(self, ll: Iterable[Callable[[Tensor], Tensor]]) -> Tensor: ...
    def to_(self, device: str | Sequence[str] | None) -> Tensor: ...
    def shard(self, devices: Sequence[str], axis: builtins.int | None = None) -> Tensor: ...
    def shard_(self, devices: Sequence[str], axis: builtins.int | None = None) -> Tensor: ...
    def shard_like(self, y: Tensor) -> Tensor: ...
    @staticmethod
    def const(b: builtins.float, dtype: DType | str | type | None = None) -> Tensor: ...
    def const_like(self, b: builtins.float, dtype: DType | str | type | None = None) -> Tensor: ...
    @staticmethod
    def invalids(*shape: Any, **kwargs: Any) -> Tensor: ...
    def ufix(self, x: Tensor | builtins.float) -> Tensor: ...
    def threefry(self, seed: Tensor) -> Tensor: ...
    def image_dot(self, w: Tensor, dtype: DType | str | type | None = None) -> Tensor: ...
    def image_conv2d(self, weight: Tensor, bias: Tensor | None = None, groups: builtins.int = 1, stride: Any = 1,
                     dilation: Any = 1, padding: Any = 0, dtype: DType | str | type | None = None) -> Tensor: ...
    def fs_store(self) -> Tensor: ...
    def fs_load(self, size: builtins.int) -> Tensor: ...
    def usum(self, *others: Tensor | builtins.float) -> Tensor: ...
    def uprod(self, *others: Tensor | builtins.float) -> Tensor: ...
    def contiguous_backward(self) -> Tensor: ...
    @property
    def max_shape(self) -> tuple[builtins.int, ...]: ...
    @property
    def max_numel(self) -> builtins.int: ...
    @property
    def mT(self) -> Tensor: ...
    @property
    def size(self) -> Size: ...
    def to_device(self, device: str, /, *, stream: None = None) -> Tensor: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __complex__(self) -> complex: ...
    def _pool(self, k_: tuple[builtins.int, ...], stride: Any = 1, dilation: Any = 1) -> Tensor: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any: ...
    @staticmethod
    def from_url(url: str, gunzip: builtins.bool = False, **placement: Any) -> Tensor: ...
    @staticmethod
    def from_dlpack(x: object, *, copy: object | None = None) -> Tensor: ...
'''
SUBMODULE_HEAD = '''from collections.abc import Sequence
from typing import Any

from weft import Dim, DType, Tensor

'''
HEAD = '''import builtins
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, Self, overload

from weft import fft as fft, linalg as linalg

__version__: str
schedules: Any

class Size(int):
    def __call__(self, dim: int | None = None) -> Any: ...

class ArgumentError(ValueError, RuntimeError):
    code: str
class DTypeError(TypeError, RuntimeError):
    code: str
class DTypeNameError(DTypeError, AttributeError):
    code: str
class JitError(RuntimeError):
    code: str
class DeviceError(RuntimeError):
    code: str
class InternalError(RuntimeError):
    code: str
'''


def torch_names() -> str:
    """What weft/torch_names.py puts on Tensor, as members of the class."""
    with open(os.path.join(os.path.dirname(__file__), "weft", "torch_names.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.args.args and ast.unparse(node.args.args[0].annotation or node) == "Tensor" \
                and not node.name.startswith("_"):
            node.args.args[0].annotation, node.body = None, [ast.Expr(ast.Constant(...))]
            lines.append(ast.unparse(node).replace("\n", " ").replace(":     ...", ": ..."))
    tables = {t.id: node.value for node in tree.body if isinstance(node, ast.Assign)
              for t in node.targets if isinstance(t, ast.Name)}
    lines += [f"{name} = {other}" for name, other in ast.literal_eval(tables["ALIASES"]).items()]
    in_place = tables["IN_PLACE"].func.value.value.split()
    lines += [f"def {name}_(self, *args: Any, **kwargs: Any) -> Tensor: ..." for name in in_place]
    return "".join(f"    {line}\n" for line in lines)


SHADOWED = re.compile(r"(?<=[ \[])(int|float|bool)(?=[ ,\])|:]|$)")


def tensor_class(text: str) -> tuple[int, int]:
    """Where the class stands."""
    start = text.index("class Tensor:")
    following = re.search(r"\n(?=\S)", text[start:])
    return start, start + following.end() if following else len(text)


def without_shadows(text: str) -> str:
    """Tensor has methods called int, float and bool; annotations in it mean Python's."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if line.lstrip().startswith("def "):
            name, rest = line.split("(", 1)
            lines[i] = name + "(" + SHADOWED.sub(r"builtins.\1", rest)
        elif ": ClassVar[" in line:
            lines[i] = SHADOWED.sub(r"builtins.\1", line)
    return "\n".join(lines)


def spelt_out(line: str) -> str:
    """A function whose arguments and containers of anything say so, as strict type checkers ask."""
    line = re.sub(r"(\*\*?\w+)(?=[,)])", r"\1: Any", line)
    for name, of_any in (("tuple", "tuple[Any, ...]"), ("list", "list[Any]"), ("dict", "dict[str, Any]")):
        line = re.sub(rf"\b{name}(?![\[\w(])", of_any, line)
    return line


def stub_of(module) -> str:
    """What nanobind says, without imports and the names of modules; what it calls an object is anything."""
    generator = StubGen(module, quiet=True)
    generator.put(module)
    text = re.sub(r"^from [\w.]+ import \([^)]*\)\n", "", generator.get(), flags=re.M)
    text = re.sub(r"^(from (collections\.abc|typing)|import typing|import collections).*\n", "", text, flags=re.M)
    text = re.sub(r"\b(weft\.)?(_core\.)(?=[A-Z])", "", text).replace("weft.Tensor", "Tensor").replace("weft.DType", "DType")
    text = re.sub(r"^(from (_core|weft\._core|\.|weft) import .*|import (_core|weft).*)\n", "", text.replace("typing.", ""),
                  flags=re.M)
    text = re.sub(r"^ *def .*$", lambda line: spelt_out(line[0]), text, flags=re.M)
    return text.replace("-> object", "-> Any")


def main(folder: str, output: str):
    sys.path.insert(0, folder)
    core = importlib.import_module("_core")
    for name in ("linalg", "fft"):
        with open(os.path.join(os.path.dirname(output), f"{name}.pyi"), "w", encoding="utf-8") as file:
            file.write(SUBMODULE_HEAD + stub_of(getattr(core, name)))
    text = stub_of(core)
    text = text.replace("def __reduce__(self) -> Any", "def __reduce__(self) -> tuple[Any, ...]")
    text = text.replace("def data(self) -> Any", "def data(self) -> memoryview")
    start, end = tensor_class(text)
    text = text[:start] + without_shadows(text[start:end].rstrip()) + "\n" + ON_TENSOR + torch_names() + "\n" + text[end:]
    # NumPy's operators, too, say what a type checker holds to be a lie about object's.
    text = re.sub(r"(def __(eq|ne)__\(.*)", r"\1  # type: ignore[override]", text)
    with open(output, "w", encoding="utf-8") as file:
        file.write(HEAD + text)


main(*sys.argv[1:])
