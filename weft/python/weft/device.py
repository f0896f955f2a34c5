"""Device: which machines there are, and which one new tensors go to."""
from collections.abc import Iterator
from typing import Any

from weft import _core
from weft.dtype import DType, dtypes

__all__ = ["Device", "canonicalize_device", "is_dtype_supported"]


class _Renderer:
    """What a device's kernels can be of."""

    def __init__(self, device: str) -> None:
        self.device = device

    def supported_dtypes(self) -> set[DType]:
        """All of them on every device: what a device lacks is made of what it has."""
        return set(dtypes.all)


class _OpenDevice:
    """Device["CPU"]: it exists and could be opened."""

    def __init__(self, name: str) -> None:
        self.device = name
        self.renderer = _Renderer(name)

    def __repr__(self) -> Any:
        return f"<Device {self.device}>"

    def synchronize(self) -> None:
        """Results are there when realize() returns."""


class _Devices:
    @property
    def DEFAULT(self) -> str:
        return _core.default_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        _core.set_default_device(name)

    @property
    def default(self) -> _OpenDevice:
        return self[self.DEFAULT]

    def __getitem__(self, name: str) -> _OpenDevice:
        return _OpenDevice(_core.canonical_device(name))

    def canonicalize(self, device: str | None) -> str:
        """The one spelling of a device's name; the default for None."""
        return self.DEFAULT if device is None else _core.canonical_device(device)

    def get_available_devices(self) -> Iterator[str]:
        return iter(_core.available_devices())


Device = _Devices()


def canonicalize_device(device: Any) -> str | tuple[str, ...]:
    """Device.canonicalize() of one name or of several."""
    if isinstance(device, (tuple, list)):
        names = tuple(Device.canonicalize(name) for name in device)
        return names[0] if len(names) == 1 else names
    return Device.canonicalize(device)


def is_dtype_supported(dtype: Any, device: str | None = None) -> bool:
    """Every dtype works on every device."""
    return True
