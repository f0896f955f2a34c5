"""Curves of a training for TensorBoard, which is not needed to write them: `tensorboard --logdir FOLDER` shows them."""
import os

from weft._core import EventFile

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes scalars to a new file of events in a folder; PyTorch's names, of its SummaryWriter's scalars.

        with SummaryWriter("runs/1") as writer:
            for step in range(100):
                writer.add_scalar("train/loss", loss, step)
    """

    def __init__(self, log_dir: str | os.PathLike):
        self.log_dir = os.fspath(log_dir)
        self._file: EventFile | None = EventFile(self.log_dir)

    def add_scalar(self, tag: str, scalar_value, global_step: int = 0) -> None:
        """A point of the curve `tag`; the value is a number or a tensor of one element, kept in single precision."""
        if self._file is None:
            raise ValueError(f"{self.log_dir}: the writer is closed")
        value = scalar_value.item() if hasattr(scalar_value, "item") else scalar_value
        self._file.scalar(tag, float(value), int(global_step))

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int = 0) -> None:
        """Several curves: main_tag/name for each."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step)

    def flush(self) -> None:
        """What was not written yet; done every two seconds anyway."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        self.flush()
        self._file = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
