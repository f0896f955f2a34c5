"""What the programs beside this folder share: options, weights from files, times."""
import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import weft
from weft import Tensor, nn


def options(description: str, seed_of: str = "everything random") -> argparse.ArgumentParser:
    """With the options that every program has."""
    made = argparse.ArgumentParser(description=description.split("\n")[0])
    made.add_argument("--json", action="store_true", help="print JSON, an object a line")
    made.add_argument("--device", help=f"one of {', '.join(weft.Device.get_available_devices())}")
    made.add_argument("--threads", type=int, help="worker threads; without it as many as there are CPUs")
    made.add_argument("--seed", type=int, default=0, help=f"of {seed_of}")
    return made


def parser(description: str) -> argparse.ArgumentParser:
    """For pictures."""
    made = options(description, "random weights")
    made.add_argument("pictures", nargs="+", metavar="PICTURE", help="PNG or JPEG")
    made.add_argument("--weights", metavar="FILE", help=".safetensors, .pt, .pth or .npz; without it they are random")
    made.add_argument("--bench", type=int, default=0, metavar="N", help="run each picture N times more and print ms")
    return made


def run(main: Callable[[argparse.Namespace], None], arguments: argparse.ArgumentParser) -> None:
    """main() with what the command line says; errors of the user's are one line."""
    args = arguments.parse_args()
    try:
        if args.threads is not None:
            weft.helpers.THREADS.value = args.threads
        if args.device:
            weft.Device.DEFAULT = args.device
        Tensor.manual_seed(args.seed)
        main(args)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"{arguments.prog}: {error}")


# ---- weights

READERS = {".safetensors": nn.state.safe_load, ".pt": nn.state.torch_load, ".pth": nn.state.torch_load,
           ".npz": nn.state.npz_load}


def read_weights(path: str) -> dict[str, Tensor]:
    """A state dict; of a checkpoint the one within it."""
    kind = os.path.splitext(path)[1]
    if kind not in READERS:
        raise ValueError(f"weights in {path}: files end in {', '.join(READERS)}")
    found = READERS[kind](path)
    for key in ("state_dict", "model"):
        found = found[key] if isinstance(found.get(key), dict) else found
    return {name: x for name, x in found.items() if isinstance(x, Tensor)}


def load(model: Any, path: str | None) -> None:
    """Weights out of a file, or random ones, with a word about that; realized."""
    own = nn.state.get_state_dict(model)
    if path is None:
        print("no --weights: these are random, and so is what follows", file=sys.stderr)
        Tensor.realize(*own.values())
        return
    renamed = getattr(model, "renamed", lambda name: name)
    given = {renamed(name): x for name, x in read_weights(path).items()}
    given.pop(None, None)
    for name, x in own.items():
        if name.endswith("num_batches_tracked"):  # which files of before PyTorch 0.4.1 lack
            given.setdefault(name, x)
    nn.state.load_state_dict(model, given, verbose=False)


def timed(call: Callable[[], Any], runs: int) -> tuple[Any, float | None]:
    """What a captured function gives, and the median of its replays' times in ms; None of no runs. The first two calls
    compile and capture."""
    result, times = call(), []
    for i in range(runs + 1 if runs else 0):
        start = time.perf_counter()
        result = call()
        if i > 0:
            times.append(1e3 * (time.perf_counter() - start))
    return result, sorted(times)[len(times) // 2] if times else None


def output_path(output: str, picture: str, pictures: int) -> str:
    """Where what is drawn goes: a file, or of several pictures a file of the picture's name in a directory."""
    if pictures == 1 and not os.path.isdir(output):
        return output
    os.makedirs(output, exist_ok=True)
    return os.path.join(output, os.path.splitext(os.path.basename(picture))[0] + ".png")
