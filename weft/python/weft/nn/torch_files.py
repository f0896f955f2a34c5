"""Files of torch.save: read as data (nothing that a pickle names is looked up or run) and written."""
import os

from weft import Tensor, _core
from weft.nn.archives import accept_filename

__all__ = ["Foreign", "torch_load", "torch_save"]


class Foreign:
    """An object of a class or function that a file names and weft does not know. It holds nothing else."""
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<foreign {self.name}>"


def _named(name: str):
    """A dtype of torch's, else an object that holds nothing."""
    module, _, kind = name.partition(" ")
    if module == "torch":
        try:
            return _core.dtype_of(kind)
        except TypeError:
            pass
    return Foreign(name)


@accept_filename
def torch_load(t: Tensor, max_bytes: int | None = None):
    """What torch.save() wrote: a state dict with Tensors that stay in the file until they are used. Objects other
    than tensors, numbers, texts and containers come as Foreign, which has their name: a file cannot run anything.
    Needs no PyTorch. A ValueError for what is no such file, and for the tar files of before PyTorch 0.1.10."""
    try:
        return _core.load_pt(t, "torch_load", max_bytes or 0, _named)
    except MemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        raise ValueError(str(error)) from None


def torch_save(tensors: dict[str, Tensor], fn: str | os.PathLike) -> None:
    """Realizes all tensors together and replaces the file atomically; torch.load(fn, weights_only=True) reads it."""
    _core.save_pt(dict(tensors), os.fspath(fn))
