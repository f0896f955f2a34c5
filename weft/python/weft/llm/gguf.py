"""GGUF files, where tinygrad has them."""
from weft.nn.gguf import ggml_data_to_tensor, gguf_load

__all__ = ["ggml_data_to_tensor", "gguf_load"]
