"""weft.data: batches, tables, pictures."""
import struct
import threading
import time
import zlib

import numpy as np
import pytest

import weft
from weft import Tensor
from weft.data import CsvTable, DataLoader, PictureFolder, parse_csv, parse_picture, read_csv, read_npy, read_picture, resized_picture, save_npy

ROWS, LABELS = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10)


@pytest.mark.parametrize("data", [(ROWS, LABELS), (Tensor(ROWS), Tensor(LABELS))], ids=["arrays", "tensors"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_of_arrays(data, prefetch):
    loader = DataLoader(data, batch_size=4, prefetch=prefetch)
    batches = list(loader)
    assert len(loader) == len(batches) == 3 and [len(b[0]) for b in batches] == [4, 4, 2]
    assert np.concatenate([x.numpy() for x, _ in batches]).tolist() == ROWS.tolist()
    assert [y for _, part in batches for y in part.tolist()] == LABELS.tolist()
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2


def test_the_order_is_that_of_seed_and_epoch():
    loader = DataLoader([LABELS], batch_size=3, shuffle=True, seed=7)
    first, second = ([int(y) for (b,) in loader for y in b.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == LABELS.tolist() and first != second
    assert first == loader.order(0) and second == loader.order(1) == DataLoader([LABELS], shuffle=True, seed=7).order(1)
    assert [b[0].tolist() for b in loader.epoch(0, first_batch=2)] == [first[6:9], first[9:]]


def test_rows_that_a_function_fetches():
    threads = set()

    def fetch(rows):
        threads.add(threading.get_ident())
        return [ROWS[rows], [r * 10 for r in rows]]
    loader = DataLoader(10, batch_size=5, fetch=fetch)
    (x, y), (_, z) = loader
    assert x.tolist() == ROWS[:5].tolist() and z.tolist() == [50, 60, 70, 80, 90] and y.dtype == weft.dtypes.int32
    assert threading.get_ident() not in threads

    class Set:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return ROWS[i], i
    assert [b[1].tolist() for b in DataLoader(Set(), batch_size=2)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_threads_share_an_epoch(prefetch):
    loader = DataLoader(100, batch_size=1, fetch=lambda rows: [np.array(rows)], prefetch=prefetch)
    for _ in range(20):
        batches, seen = iter(loader), []
        threads = [threading.Thread(target=lambda: seen.extend(b[0].item() for b in batches), daemon=True)
                   for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
            assert not t.is_alive(), "waits for a batch that somebody else has"
        assert sorted(seen) == list(range(100))


def test_what_fetching_raises_is_raised_and_epochs_may_be_left():
    def fetch(rows):
        time.sleep(.01)
        if rows[0] == 4:
            raise KeyError("no such row")
        return [np.array(rows)]
    loader = DataLoader(10, batch_size=2, fetch=fetch, prefetch=3)
    with pytest.raises(KeyError, match="no such row"):
        list(loader)
    for _ in range(3):
        assert next(iter(loader))[0].tolist() == [0, 1]
    with pytest.raises(ValueError):
        DataLoader((ROWS, LABELS[:3]))
    with pytest.raises(ValueError):
        DataLoader((ROWS,), batch_size=0)
    with pytest.raises(TypeError):
        DataLoader(3.5)


def test_tables(tmp_path):
    text = 'city,price,rooms\nRome,1.5,3\n"Paris, FR",,4\nRome,2,5\n'
    path = tmp_path / "homes.csv"
    path.write_text(text)
    for table in (read_csv(path), parse_csv(text)):
        assert isinstance(table, CsvTable) and table.names == ["city", "price", "rooms"] and len(table) == 3
        assert table["city"].tolist() == [0, 1, 0] and table.categories("city") == ["Rome", "Paris, FR"]
        assert table["rooms"].dtype == weft.dtypes.int64 and np.isnan(table["price"].tolist()[1])
        assert table.matrix(["rooms", "city"]).tolist() == [[3, 0], [4, 1], [5, 0]]
    with pytest.raises(ValueError, match="price"):
        table["prize"]
    assert parse_csv("1;2\n", ";", header=False)["1"].tolist() == [2]


def png(pixels: np.ndarray) -> bytes:
    """RGB of 8 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_pictures(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    path = tmp_path / "x.png"
    path.write_bytes(png(pixels))
    assert np.array_equal(read_picture(path).numpy(), pixels) and np.array_equal(parse_picture(png(pixels)).numpy(), pixels)
    assert read_picture(path, channels=1).shape == (4, 6, 1) and resized_picture(read_picture(path), 2, 3).shape == (2, 3, 3)
    with pytest.raises(ValueError):
        read_picture(path, channels=2)
    with pytest.raises(RuntimeError, match="PNG"):
        parse_picture(b"nonsense")
    for name, colour in (("cats", 10), ("dogs", 200)):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(2):
            (tmp_path / "set" / name / f"{i}.png").write_bytes(png(np.full((3, 5, 3), colour + i, np.uint8)))
    folder = PictureFolder(tmp_path / "set", height=2, width=2)
    assert len(folder) == 4 and folder.classes == ["cats", "dogs"] and folder.label(3) == 1 and folder.path(0).endswith("0.png")
    assert folder[1][0].tolist() == [[[11, 11], [11, 11]]] * 3 and folder[1][1] == 0
    x, y = next(iter(DataLoader(folder, batch_size=4)))
    assert x.shape == (4, 3, 2, 2) and y.tolist() == [0, 0, 1, 1]


def test_files_of_numpy(tmp_path):
    save_npy(tmp_path / "x.npy", Tensor(ROWS))
    assert np.array_equal(np.load(tmp_path / "x.npy"), ROWS) and read_npy(tmp_path / "x.npy").tolist() == ROWS.tolist()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_ends_an_epoch(prefetch):
    def rows(numbers):
        if 4 in numbers:
            raise KeyError("row 4")
        return [np.array(numbers)]

    loader = DataLoader(8, 2, fetch=rows, prefetch=prefetch)
    batches = iter(loader)
    assert [next(batches)[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="row 4"):
        next(batches)
    assert list(batches) == [] and list(batches) == []
    with pytest.raises(KeyError):  # the next epoch begins anew
        list(loader)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_rows_that_raise_stop_iteration_are_an_error(prefetch):
    def rows(numbers):
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(8, 2, fetch=rows, prefetch=prefetch))
