"""What the namespace has: __array_namespace_info__()."""
from weft.array_api.data_types import KINDS, isdtype
from weft.device import Device
from weft.dtype import dtypes

__all__ = ["__array_namespace_info__"]

_NAMED = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


class NamespaceInfo:
    """The standard's inspection functions."""

    def capabilities(self) -> dict:
        """What is optional in the standard."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """Where arrays are made."""
        return Device.DEFAULT

    def devices(self) -> list[str]:
        """Where arrays can be made on this machine; not NULL, which computes nothing."""
        return [name for name in Device.get_available_devices() if not name.startswith("NULL")]

    def default_dtypes(self, *, device=None) -> dict:
        """By kind, the dtype of numbers without one; weft.dtypes.default_float and default_int set them. None is
        complex."""
        return {"real floating": dtypes.default_float, "complex floating": None, "integral": dtypes.default_int,
                "indexing": dtypes.int32}

    def dtypes(self, *, device=None, kind=None) -> dict:
        """The dtypes by name, of a kind or of a tuple of kinds where it is given."""
        kinds = tuple(KINDS) if kind is None else kind
        return {name: getattr(dtypes, name) for name in _NAMED if isdtype(getattr(dtypes, name), kinds)}


def __array_namespace_info__() -> NamespaceInfo:
    """Inspection of the namespace."""
    return NamespaceInfo()
