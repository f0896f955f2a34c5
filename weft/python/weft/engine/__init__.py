"""Where programs of tinygrad look for TinyJit."""
