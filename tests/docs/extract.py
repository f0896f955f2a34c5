#!/usr/bin/env python3
"""extract.py FOLDER PAGE...: writes the programs and shell lines of Markdown pages as files.

A ```cpp or ```c block that has a main() becomes <page>_<n>.cpp or .c, a ```sh block <page>_<n>.sh. A ```text block
right after one of them is what it prints: <page>_<n>.out. Files that stay the same are not touched; what the pages no
longer have is removed."""
import os
import re
import sys

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def write(path, text):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as old:
            if old.read() == text:
                return
    with open(path, "w", encoding="utf-8") as new:
        new.write(text)


def main():
    folder, pages = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    written = set()
    for page in pages:
        name = os.path.splitext(os.path.basename(page))[0].lower()
        with open(page, encoding="utf-8") as file:
            text = file.read()
        number, last, end = 0, None, 0
        for block in FENCE.finditer(text):
            language, body = block.groups()
            follows = last is not None and text[end:block.start()].strip() in ("", "prints")
            if language == "text" and follows:
                write(f"{last}.out", body)
                written.add(f"{last}.out")
            last = None
            if language == "sh" or (language in ("cpp", "c") and "int main(" in body):
                number += 1
                last, end = os.path.join(folder, f"{name}_{number}"), block.end()
                write(f"{last}.{language}", body)
                written.add(f"{last}.{language}")
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if path not in written and path.endswith((".c", ".cpp", ".sh", ".out")):
            os.remove(path)


if __name__ == "__main__":
    main()
