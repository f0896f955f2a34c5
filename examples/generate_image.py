"""A picture of what a text says, with Stable Diffusion 1 or XL.

    python examples/generate_image.py --model stable-diffusion-v1-5 "a red house by the sea" --output house.png
"""
import json
import time
from collections.abc import Iterator
from typing import Any

from models import pictures, program, samplers, stable_diffusion
from models.stable_diffusion import StableDiffusion


def progress(rows: list) -> Iterator:
    """Each row, and a line about how far it is."""
    started = time.perf_counter()
    for i, row in enumerate(rows):
        yield row
        program.notice(f"step {i + 1} of {len(rows)}, {time.perf_counter() - started:.1f} s")


def size_of(text: str) -> tuple[int, int]:
    """(height, width) of "512" or "640x512", which is width by height, as people say it."""
    sides = text.lower().split("x")
    if not 1 <= len(sides) <= 2 or not all(side.isdigit() for side in sides):
        raise ValueError(f"size {text!r}: give a side as 512, or width and height as 640x512")
    return int(sides[-1]), int(sides[0])


def read_model(args: Any) -> StableDiffusion:
    if args.model:
        return StableDiffusion.from_folder(args.model)
    return program.realized(StableDiffusion.random(args.config))


def main(args: Any) -> None:
    model = read_model(args)
    native = 8 * model.vae.factor if args.config.startswith("tiny") and not args.model else 1024 if model.is_xl else 512
    size = size_of(args.size) if args.size else (native, native)
    started = time.perf_counter()
    picture = model.generate(args.prompt, args.negative, args.steps, args.guidance, size, args.sampler, args.karras,
                             iter if args.quiet else progress)
    pictures.Canvas(picture.permute(2, 0, 1).float() / 255).save(args.output)
    took = time.perf_counter() - started
    if args.json:
        print(json.dumps({"picture": args.output, "height": size[0], "width": size[1], "steps": args.steps,
                          "sampler": args.sampler, "seed": args.seed, "seconds": round(took, 3)}))
    else:
        print(f"{args.output}: {size[1]} x {size[0]}, {took:.1f} s")


if __name__ == "__main__":
    options = program.parser(__doc__, list(stable_diffusion.SIZES))
    options.add_argument("prompt", metavar="TEXT", help="what is to be seen")
    options.add_argument("--negative", default="", metavar="TEXT", help="what is not")
    options.add_argument("--steps", type=int, default=25)
    options.add_argument("--guidance", type=float, default=7.5, help="how much the text counts")
    options.add_argument("--sampler", default="dpmpp-2m", choices=list(samplers.SAMPLERS))
    options.add_argument("--karras", action="store_true", help="steps as in Karras et al. 2022")
    options.add_argument("--size", metavar="WxH", help="512x512, of XL 1024x1024")
    options.add_argument("--output", default="picture.png", metavar="FILE.png")
    options.add_argument("--quiet", action="store_true", help="no line for each step")
    program.run(main, options)
