"""What is installed: stubs that name everything, a marker for type checkers, the version."""
import ast
import importlib.metadata
import os
import pathlib
import shutil

import pytest

import weft
from weft import Tensor, _core

FOLDER = pathlib.Path(weft.__file__).parent


def stub_members(name: str) -> set[str]:
    tree = ast.parse((FOLDER / "_core.pyi").read_text())
    body = tree.body if name == "" else next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    named = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    targets = [n.target for n in body if isinstance(n, ast.AnnAssign)] + [t for n in body if isinstance(n, ast.Assign) for t in n.targets]
    return named | {t.id for t in targets if isinstance(t, ast.Name)}


def test_stubs_name_everything():
    public = {name for name in dir(Tensor) if not name.startswith("_")}
    assert public - stub_members("Tensor") == set()
    functions = {name for name in dir(_core) if not name.startswith("_") and name not in ("linalg", "fft")}
    assert functions - stub_members("") == set()
    assert (FOLDER / "py.typed").is_file()


def test_version():
    try:
        installed = importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("weft is not installed, only on the path")
    assert installed == weft.__version__


def test_everything_that_is_offered_is_there():
    for name in weft.__all__:
        assert getattr(weft, name) is not None
    for name in weft.nn.__all__:
        assert getattr(weft.nn, name) is not None
    with pytest.raises(AttributeError):
        weft.nonsense


def test_type_checker(tmp_path):
    """The package and a program that uses it, for mypy."""
    mypy = pytest.importorskip("mypy.api")
    shutil.copytree(FOLDER, tmp_path / "weft")
    (tmp_path / "program.py").write_text("""
import weft
import weft.array_api as xp
from weft import Tensor, TinyJit, Variable, dtypes, nn
from weft.data import DataLoader
from weft.nn.state import get_parameters, safe_save, torch_load
from weft.text import DecodeStream, Tokenizer

class Net:
    def __init__(self) -> None:
        self.l1 = nn.Linear(784, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l1(x).relu()

net = Net()
optimizer = nn.optim.Adam(get_parameters(net), lr=1e-3)

@TinyJit
def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())

with Tensor.train():
    loss: Tensor = step(Tensor.randn(4, 784), Tensor([1, 2, 3, 4]))
number: float = loss.item()
part = (Tensor([1.0, 2.0]) + 1)[None, :, 0:1].reshape(1, -1).cast(dtypes.half)
u, s, v = weft.linalg.svd(Tensor.ones(3, 3))
spectrum: Tensor = weft.fft.rfft(Tensor.ones(8))
shape: tuple[int | weft.Dim, ...] = Tensor.ones(5)[:Variable("i", 1, 10).bind(3)].shape
safe_save({"x": part}, "x.safetensors")

rnn, attention = nn.LSTM(10, 4, num_layers=2), nn.MultiheadAttention(8, 2)
y, (h, c) = rnn(Tensor.ones(3, 2, 10))
stack = nn.Sequential(nn.Conv2d(1, 2, (3, 3), stride=(2, 2)), nn.ReLU(), nn.MaxPool2d(2))
scheduler = nn.schedules.LrScheduler(nn.optim.NAdam(get_parameters(stack), lr=1e-3), nn.schedules.warmup(3, nn.schedules.cosine(10)))
for rows, labels in DataLoader((Tensor.ones(4, 2), [1, 2, 3, 4]), batch_size=2):
    error: Tensor = (rows.sum() - labels.sum()).abs()
values, positions = Tensor([1.0, 2.0]).median(0)
middle: Tensor = Tensor([1.0, 2.0]).median()
shares: Tensor = Tensor([1.0]).quantile([0.1, 0.5]).add_(1).absolute()
text: str = f"{middle:.3f}"
slices: list[Tensor] = shares.unbind()
total: Tensor = xp.sum(xp.add(xp.asarray(shares, copy=True), 1), axis=0)
count: int = total.size
def spoken(t: Tokenizer, words: list[str]) -> str:
    ids: list[int] = t.encode(words[0], words[1], add_special_tokens=False) + t.encode_batch(words)[0]
    return DecodeStream(t).step(t.encoding(b"x").ids[0]) + t.decode(ids) + t.special_tokens[0][0]
mapped: Tensor = weft.vmap(lambda x: x * 2, in_axes=(0,))(shares)
""")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        # PyTorch need not be installed.
        (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nignore_missing_imports = True\n")
        runs = [mypy.run(["--no-incremental", *how, "program.py"]) for how in (["weft"], ["--strict", "--follow-imports=silent"])]
    finally:
        os.chdir(here)
    for text, problems, status in runs:
        assert status == 0, text + problems
