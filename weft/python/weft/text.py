"""Texts for models: tokenizers out of tokenizer.json and GGUF files.

    from weft.text import Tokenizer

    t = Tokenizer.from_file("all-MiniLM-L6-v2")
    ids = t.encode("Hello, world")
"""
from weft._core import DecodeStream, Encoding, Tokenizer

__all__ = ["DecodeStream", "Encoding", "Tokenizer"]
