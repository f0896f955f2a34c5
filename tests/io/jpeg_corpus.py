"""Writes tests/fuzz/corpus/jpeg: small pictures whose pixels tests/io/pictures_test.cpp knows about.

    pip install pillow==11.1.0
    python3 tests/io/jpeg_corpus.py tests/fuzz/corpus/jpeg
"""
import os
import sys
from PIL import Image

WIDTH, HEIGHT = 24, 17


def picture(mode):
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (x * 10, y * 14, 128 + x * 2 - y * 3))
    return image.convert(mode)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, mode, options in [
            ("rgb", "RGB", {"quality": 95, "subsampling": 0}), ("rgb_420", "RGB", {"quality": 90, "subsampling": 2}),
            ("grey", "L", {"quality": 95}), ("progressive", "RGB", {"quality": 92, "progressive": True}),
            ("cmyk", "CMYK", {"quality": 90})]:
        picture(mode).save(os.path.join(folder, name), "JPEG", **options)


if __name__ == "__main__":
    main()
