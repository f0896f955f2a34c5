"""Texts for models: tokenizers out of tokenizer.json and GGUF files, or learnt from texts.

    from weft.text import Tokenizer

    t = Tokenizer.from_file("all-MiniLM-L6-v2")
    ids = t.encode("Hello, world")
"""
from weft._core import BpeTrainer, DecodeStream, Encoding, Tokenizer

__all__ = ["BpeTrainer", "DecodeStream", "Encoding", "Tokenizer"]
