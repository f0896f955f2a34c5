"""Writes tests/fuzz/corpus/{bmp,pnm,webp,tiff,jpeg2000}: pictures whose pixels tests/io/picture_formats_test.cpp knows.

    pip install pillow==11.1.0
    python3 tests/io/picture_corpus.py tests/fuzz/corpus
"""
import os
import sys
from PIL import Image

WIDTH, HEIGHT = 13, 6


def picture(mode):
    image = Image.new("RGBA", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (x * 19, y * 40, 200 - x * 7 - y * 5, 255 - x * 10))
    if mode in ("L", "1"):  # red alone: a conversion would round
        red = image.getchannel("R")
        return red if mode == "L" else red.point(lambda v: 255 * (v > 100), "1")
    return image if mode == "RGBA" else image.convert(mode)


FILES = [
    ("bmp", "rgb", "RGB", "BMP", {}), ("bmp", "grey", "L", "BMP", {}), ("bmp", "bits", "1", "BMP", {}),
    ("pnm", "rgb", "RGB", "PPM", {}), ("pnm", "grey", "L", "PPM", {}), ("pnm", "bits", "1", "PPM", {}),
    ("webp", "rgb", "RGB", "WEBP", {"lossless": True}), ("webp", "rgba", "RGBA", "WEBP", {"lossless": True, "exact": True}),
    ("tiff", "rgb", "RGB", "TIFF", {"compression": "tiff_lzw"}), ("tiff", "grey", "L", "TIFF", {"compression": "tiff_adobe_deflate"}),
    ("tiff", "bits", "1", "TIFF", {"compression": "group4"}),
    ("jpeg2000", "rgb", "RGB", "JPEG2000", {}), ("jpeg2000", "grey", "L", "JPEG2000", {"no_jp2": True}),
    ("jpeg2000", "rgba", "RGBA", "JPEG2000", {}),
]


def main():
    for folder, name, mode, kind, options in FILES:
        os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
        picture(mode).save(os.path.join(sys.argv[1], folder, name), kind, **options)


if __name__ == "__main__":
    main()
