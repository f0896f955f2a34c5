"""What large models take, before there are weights: kernels, memory, and seconds to schedule and compile each part.

    python examples/plan_models.py sd sdxl whisper-tiny

On the device NULL, which takes the kernels of the CPU, has room for the weights without touching it, and runs nothing.
"""
import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["WEFT_CACHE"] = "0"  # read when weft is imported: times are of compiling, not of finding what was compiled

import weft
from weft import Tensor, TinyJit, Variable, dtypes, nn

from models import program, transcriber, whisper
from models.stable_diffusion import SIZES, StableDiffusion


def _numbers(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def diffusion_parts(size: str) -> dict[str, tuple[Any, Callable, list]]:
    """For each part the model that has its weights, what is called, and what with: a step of a picture of 512 x 512
    pixels, in XL of 1024 x 1024."""
    model = StableDiffusion.random(size)
    length = model.encoders[0].config.max_position_embeddings
    tokens = [_numbers(2, length, dtype=dtypes.int32) for _ in model.encoders]
    side = 128 if model.is_xl else 64
    latents = [_numbers(1, 4, side, side) for _ in range(3)]
    text = _numbers(2, length, model.unet.config.cross_attention_dim)
    extra = [_numbers(2, model.encoders[1].config.projection_dim), _numbers(2, 6)] if model.is_xl else [None, None]
    return {"text encoders": (model.encoders, model.conditions, [tokens]),
            "UNet, a step": (model.unet, model.denoise, [*latents, _numbers(7), _numbers(), text, *extra]),
            "VAE, decoding": (model.vae.decoder, model.pixels, [_numbers(1, 4, side, side)]),
            "VAE, encoding": (model.vae.encoder, model.vae.encode, [_numbers(1, 3, *[side * model.vae.factor] * 2)])}


def whisper_parts() -> dict[str, tuple[Any, Callable, list]]:
    """A window of 30 seconds, and a token of the text with a cache for all positions."""
    model = whisper.Whisper()
    listener = transcriber.Transcriber(model, transcriber.Tokens(), None)
    c = model.config
    heads = (1, c.decoder_attention_heads, c.max_source_positions, c.d_model // c.decoder_attention_heads)
    memory = [[_numbers(*heads) for _ in range(2)] for _ in model.decoder.layers]
    position = Variable("position", 0, c.max_target_positions - 1).bind(5)
    step = [_numbers(1, 1, dtype=dtypes.int32), position, _numbers(c.vocab_size, dtype=dtypes.bool),
            _numbers(1, 3, dtype=dtypes.int32), memory]
    return {"encoder, 30 s": (model.encoder, lambda x: model.listen(x, listener.filters), [_numbers(c.samples)]),
            "decoder, a token": (model.decoder, listener._step, step)}


MODELS: dict[str, Callable[[], dict]] = {
    **{size: (lambda size=size: diffusion_parts(size)) for size in SIZES}, "whisper-tiny": whisper_parts}


def _tensors(x: Any) -> list[Tensor]:
    return [x] if isinstance(x, Tensor) else [t for part in x or () for t in _tensors(part)]


def plan(name: str, part: str, weights: Any, call: Callable, inputs: list) -> dict[str, Any]:
    """A row of the table. The rest is memory beside weights and what is kept of them in the order products read."""
    parameters = nn.state.get_parameters(weights)
    Tensor.realize(*parameters)
    started = time.perf_counter()
    results = _tensors(call(*inputs))
    passes = weft.explain_passes(*results)
    wall = time.perf_counter() - started
    captured = TinyJit(call)
    for _ in range(3):
        captured(*inputs)
    size = sum(p.numel() * p.dtype.itemsize for p in parameters)
    scheduling = sum(p.us for p in passes if p.name.split(".")[0] in ("normalise", "schedule", "plan")) / 1e6
    return {"model": name, "part": part, "parameters": sum(p.numel() for p in parameters), "weights_bytes": size,
            "kernels": len({p.subject for p in passes if p.name.startswith("codegen.")}), "launches": captured.kernels,
            "planned_bytes": captured.planned_bytes, "kept_bytes": captured.kept_bytes,
            "other_bytes": captured.planned_bytes - captured.kept_bytes - size,
            "schedule_s": scheduling, "compile_s": sum(p.us for p in passes) / 1e6 - scheduling, "wall_s": wall}


COLUMNS = {"model": "model", "part": "part", "parameters": "parameters M", "weights_bytes": "weights MB",
           "kept_bytes": "kept MB", "other_bytes": "rest MB", "kernels": "kernels", "launches": "launches",
           "schedule_s": "schedule s", "compile_s": "compile s", "wall_s": "wall s"}


def cell(key: str, value: Any) -> str:
    if key == "parameters" or key.endswith("_bytes"):
        return f"{value / 1e6:.1f}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main(args: Any) -> None:
    rows = []
    for name in args.models:
        if name not in MODELS:
            raise ValueError(f"model {name!r} is not known: one of {', '.join(MODELS)}")
        rows += [plan(name, part, *what) for part, what in MODELS[name]().items()]
    if args.json:
        print(json.dumps(rows))
        return
    table = [list(COLUMNS.values())] + [[cell(key, row[key]) for key in COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(text.ljust(w) if i < 2 else text.rjust(w) for i, (text, w) in enumerate(zip(line, widths))))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("models", nargs="*", default=["sd", "sdxl", "whisper-tiny"], metavar="MODEL",
                         help=", ".join(MODELS))
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--threads", type=int, help="worker threads")
    options.set_defaults(device="NULL", seed=0)
    program.run(main, options)
