"""Pictures as models take them, and as people look at them."""
import os
import struct
import zlib

from weft import Tensor
from weft.data import read_picture

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def read(path: str | os.PathLike) -> Tensor:
    """(3, height, width) in [0, 1] of a PNG or JPEG."""
    picture = read_picture(path, 3)
    return picture.permute(2, 0, 1).float() / picture.dtype.max


# ---- other sizes

def _triangle(x):
    return (1 - x).clamp(0)


def _cubic(x):
    """Keys 1981 with a = -1/2."""
    return (x < 1).where((1.5 * x - 2.5) * x * x + 1, (x < 2).where(((-0.5 * x + 2.5) * x - 4) * x + 2, 0))


FILTERS = {"linear": _triangle, "cubic": _cubic}


def _mixing(have: int, want: int, filter: str) -> Tensor:
    """(want, have): how much of each element is in each new one. Filters grow with the step, so that nothing is
    skipped where a picture shrinks, as in Pillow and in torchvision's antialias=True."""
    step = have / want
    middles = (Tensor.arange(want).float() + 0.5) * step
    distances = (Tensor.arange(have).float() + 0.5 - middles.unsqueeze(1)).abs() / max(step, 1.0)
    shares = FILTERS[filter](distances)
    return shares / shares.sum(1, keepdim=True)


def resized(x: Tensor, height: int, width: int, filter: str = "linear") -> Tensor:
    """(..., h, w) to (..., height, width)."""
    h, w = x.shape[-2:]
    return _mixing(h, height, filter) @ x @ _mixing(w, width, filter).T


def normalised(x: Tensor) -> Tensor:
    """(3, h, w) with the mean 0 and the deviation 1 that ImageNet's pictures would have."""
    return (x - Tensor(IMAGENET_MEAN).reshape(3, 1, 1)) / Tensor(IMAGENET_STD).reshape(3, 1, 1)


def for_classes(x: Tensor, resize: int, crop: int, filter: str = "linear") -> Tensor:
    """(1, 3, crop, crop): the shorter side resized, the middle cut out, normalised."""
    h, w = x.shape[1:]
    h, w = max(resize, h * resize // min(h, w)), max(resize, w * resize // min(h, w))
    top, left = round((h - crop) / 2), round((w - crop) / 2)
    x = resized(x, h, w, filter)[:, top:top + crop, left:left + crop]
    return normalised(x).unsqueeze(0).contiguous().realize()


def letterboxed(x: Tensor, size: int) -> tuple[Tensor, float, int, int]:
    """(1, 3, size, size) with grey around what is as large as fits, and how its pixels came about: times a scale, plus
    so many columns and rows. As YOLO's pictures are."""
    h, w = x.shape[1:]
    scale = min(size / h, size / w)
    rows, columns = round(h * scale), round(w * scale)
    top, left = (size - rows) // 2, (size - columns) // 2
    around = (left, size - columns - left, top, size - rows - top)
    x = resized(x, rows, columns).pad(around, value=114 / 255)
    return x.unsqueeze(0).contiguous().realize(), scale, left, top


def within(x: Tensor, shortest: int, longest: int, multiple: int = 32) -> tuple[Tensor, float, tuple[int, int]]:
    """(1, 3, h, w), normalised: the shorter side as `shortest` unless the longer one were beyond `longest`, with zeros
    below and to the right up to multiples; the scale; (height, width) without the zeros."""
    h, w = x.shape[1:]
    scale = min(shortest / min(h, w), longest / max(h, w))
    rows, columns = int(h * scale), int(w * scale)
    x = normalised(resized(x, rows, columns)).pad((0, -columns % multiple, 0, -rows % multiple))
    return x.unsqueeze(0).contiguous().realize(), scale, (rows, columns)


# ---- pictures for people

# 3 x 5 pixels a letter: an octal digit for each row.
FONT = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", """
    25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 65555 25552 65644 25573 65655 34216
    72222 55557 55552 55775 55255 55222 71247 75557 26227 61247 61216 55711 74616 34757 71122 75757 75716 00002 00700
    """.split()))


def colour(number: int) -> bytes:
    """One of many colours that are easily told apart."""
    return bytes(60 + (number * step + start) % 196 for step, start in ((67, 180), (131, 40), (29, 90)))


class Canvas:
    """A picture (3, h, w) in [0, 1] to draw on."""

    def __init__(self, x: Tensor):
        self.height, self.width = x.shape[1:]
        self.pixels = bytearray((x.permute(1, 2, 0) * 255).round().cast("uint8").contiguous().data())

    def fill(self, x1: int, y1: int, x2: int, y2: int, colour: bytes) -> None:
        """The part of a rectangle that is within the picture."""
        x1, x2 = max(x1, 0), min(x2, self.width)
        for y in range(max(y1, 0), min(y2, self.height)):
            start = 3 * (y * self.width + x1)
            self.pixels[start:start + 3 * max(x2 - x1, 0)] = colour * max(x2 - x1, 0)

    def frame(self, x1: int, y1: int, x2: int, y2: int, colour: bytes, line: int = 2) -> None:
        self.fill(x1, y1, x2, y1 + line, colour), self.fill(x1, y2 - line, x2, y2, colour)
        self.fill(x1, y1, x1 + line, y2, colour), self.fill(x2 - line, y1, x2, y2, colour)

    def text(self, x: int, y: int, text: str, background: bytes, dot: int = 2) -> None:
        """Black letters of 5 * dot pixels."""
        self.fill(x, y, x + dot * (4 * len(text) + 1), y + 7 * dot, background)
        for i, letter in enumerate(text.upper()):
            for row, bits in enumerate(FONT.get(letter, "00000")):
                for column in range(3):
                    if int(bits) >> (2 - column) & 1:
                        left, top = x + dot * (4 * i + column + 1), y + dot * (row + 1)
                        self.fill(left, top, left + dot, top + dot, b"\0\0\0")

    def save(self, path: str | os.PathLike) -> None:
        """A PNG. https://www.w3.org/TR/png-3"""
        stride = 3 * self.width
        rows = b"".join(b"\0" + self.pixels[i:i + stride] for i in range(0, len(self.pixels), stride))
        parts = ((b"IHDR", struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)),
                 (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
            for kind, data in parts:
                file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
