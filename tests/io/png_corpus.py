"""Writes tests/fuzz/corpus/png: small images of every kind, whose pixels tests/io/png_test.cpp knows.

    pip install pillow
    python3 tests/io/png_corpus.py tests/fuzz/corpus/png

The encoder is this file's own, since common ones choose filters themselves and write no interlaced images;
Pillow has to read the same pixels.
"""
import os
import struct
import sys
import zlib
from PIL import Image

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def sample(x, y, c, depth):
    return (x * 37 + y * 91 + c * 53 + x * y) % (1 << depth)


def row_bytes(values, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", v) for v in values)
    bits = "".join(f"{v:0{depth}b}" for v in values)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def paeth(a, b, c):
    near = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
    return (a, b, c)[near.index(min(near))]


def filtered(rows, step):
    out, before = b"", None
    for number, row in enumerate(rows):
        kind, line = number % 5, []
        before = before or bytes(len(row))
        for i, v in enumerate(row):
            a, c = (row[i - step], before[i - step]) if i >= step else (0, 0)
            line.append((v - (0, a, before[i], (a + before[i]) // 2, paeth(a, before[i], c))[kind]) % 256)
        out, before = out + bytes([kind]) + bytes(line), row
    return out


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, interlaced=False, extra=b""):
    n, data = SAMPLES[colour], b""
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        rows = [row_bytes([sample(x, y, c, depth) for x in range(x0, width, dx) for c in range(n)], depth)
                for y in range(y0, height, dy)]
        data += filtered([r for r in rows if r], max(1, n * depth // 8))
    packed = zlib.compress(data)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    half = len(packed) // 2  # data may be in several chunks
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"Title\0x") + extra +
            chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:]) + chunk(b"IEND", b""))


def colour_of(i):
    return (i * 16, 255 - i, i * i % 256)


PALETTE = chunk(b"PLTE", b"".join(bytes(colour_of(i)) for i in range(16)))
ALPHA = chunk(b"tRNS", bytes(i * 10 for i in range(8)))
FILES = {
    "grey1": (9, 6, 1, 0), "grey2": (5, 6, 2, 0), "grey4": (5, 6, 4, 0), "grey8": (7, 6, 8, 0),
    "grey16": (3, 6, 16, 0), "rgb8": (5, 7, 8, 2), "rgb16": (2, 6, 16, 2), "grey_alpha8": (4, 6, 8, 4),
    "rgb_alpha8": (3, 6, 8, 6), "palette4": (5, 6, 4, 3, False, PALETTE),
    "palette_alpha4": (5, 6, 4, 3, False, PALETTE + ALPHA), "interlaced_rgb8": (9, 10, 8, 2, True),
    "interlaced_grey1": (9, 3, 1, 0, True), "interlaced_tiny": (1, 1, 8, 0, True),
}


def check(path, width, height, depth, colour, *_):
    """Pillow's pixels are the formula's, for the kinds that it keeps as they are."""
    image = Image.open(path)
    if colour == 3 or depth not in (1, 8):
        image.load()
        return
    for y in range(height):
        for x in range(width):
            pixel = image.getpixel((x, y))
            pixel = pixel if isinstance(pixel, tuple) else (pixel,)
            scale = 255 if depth == 1 else 1
            assert pixel == tuple(sample(x, y, c, depth) * scale for c in range(len(pixel))), path


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, arguments in FILES.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(png(*arguments))
        check(path, *arguments)


main(sys.argv[1])
