"""Files of events: by a decoder that shares nothing with what writes them, and by TensorBoard itself where it is."""
import glob
import struct

import pytest

from weft import Tensor
from weft.tensorboard import SummaryWriter


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, of_length = struct.unpack_from("<QI", data)
        assert of_length == masked(data[:8])
        body = data[12:12 + length]
        assert struct.unpack_from("<I", data, 12 + length)[0] == masked(body)
        yield body
        data = data[16 + length:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(message):
    at, found = 0, {}
    while at < len(message):
        key, at = varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(message, at)
        elif wire == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[wire]
            value, at = struct.unpack("<d" if wire == 1 else "<f", message[at:at + size])[0], at + size
        found[key >> 3] = value
    return found


@pytest.fixture
def written(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        for step in range(5):
            writer.add_scalar("train/loss", 1 / (step + 1), step)
        writer.add_scalar("from/a tensor", Tensor([2.5]), 7)
        writer.add_scalars("both", {"a": 1, "b": -2}, 8)
    return tmp_path / "run"


def test_checksum_is_the_standard_one():
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's polynomial, the usual check value


def test_events_are_what_was_told(written):
    (path,) = glob.glob(str(written / "*tfevents*"))
    first, *events = [fields(record) for record in records(open(path, "rb").read())]
    assert first[3] == b"brain.Event:2"
    points = []
    for event in events:
        value = fields(fields(event[5])[1])
        points.append((value[1].decode(), event.get(2, 0), value[2]))
    loss = [("train/loss", step, struct.unpack("<f", struct.pack("<f", 1 / (step + 1)))[0]) for step in range(5)]
    assert points == [*loss, ("from/a tensor", 7, 2.5), ("both/a", 8, 1.0), ("both/b", 8, -2.0)]


def test_tensorboard_reads_them(written):
    event_file_loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_file_loader.EventAccumulator(str(written))
    events.Reload()
    assert {"train/loss", "from/a tensor", "both/a", "both/b"} <= set(events.Tags()["scalars"]) | set(events.Tags()["tensors"])


def test_a_closed_writer_says_so(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.close()
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.add_scalar("a", 1)


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("content")
    with pytest.raises(Exception, match="file"):
        SummaryWriter(tmp_path / "file" / "run")
