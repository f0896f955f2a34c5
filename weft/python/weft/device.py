"""Device: which machines there are, and which one new tensors go to."""
from weft import _core

__all__ = ["Device"]


class _OpenDevice:
    """Device["CPU"]: it exists and could be opened."""

    def __init__(self, name: str):
        self.device = name

    def __repr__(self):
        return f"<Device {self.device}>"

    def synchronize(self):
        """Results are there when realize() returns."""


class _Devices:
    @property
    def DEFAULT(self) -> str:
        return _core.default_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str):
        _core.set_default_device(name)

    def __getitem__(self, name: str) -> _OpenDevice:
        return _OpenDevice(_core.canonical_device(name))

    def canonicalize(self, name: str | None) -> str:
        """The one spelling of a device's name; the default for None."""
        return self.DEFAULT if name is None else _core.canonical_device(name)

    def get_available_devices(self) -> list[str]:
        return _core.available_devices()


Device = _Devices()
