"""What is installed: stubs that name everything, a marker for type checkers, the version."""
import ast
import importlib.metadata
import pathlib

import pytest

import weft
from weft import Tensor, _core

FOLDER = pathlib.Path(weft.__file__).parent


def stub_members(name: str) -> set[str]:
    tree = ast.parse((FOLDER / "_core.pyi").read_text())
    body = tree.body if name == "" else next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    named = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return named | {n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


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
