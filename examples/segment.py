"""Which class each pixel of a picture has.

    python examples/segment.py --weights unet_carvana.pt car.jpg --output mask.png
"""
import json

from models import command, pictures, unet
from weft import Tensor, TinyJit


def show(path: str, shares: list[float], ms: float | None, as_json: bool) -> None:
    if as_json:
        shown = [round(share, 6) for share in shares]
        print(json.dumps({"picture": path, "shares": shown} | ({"ms": round(ms, 3)} if ms else {})))
        return
    print(path + (f"  ({ms:.2f} ms)" if ms else ""))
    for i, share in enumerate(shares):
        print(f"  class {i}  {100 * share:5.1f} %")


def draw(picture: Tensor, classes: Tensor, path: str) -> None:
    """Half the picture, half the class's colour; class 0 is the background and stays as it is."""
    count = int(classes.max().item()) + 1
    colours = Tensor([list(pictures.colour(i)) for i in range(count)]).float() / 255
    painted = (picture + colours[classes].permute(2, 0, 1)) / 2
    pictures.Canvas((classes == 0).where(picture, painted)).save(path)


def main(args) -> None:
    model = unet.UNet(unet.Config(args.classes, unet.CONFIGS[args.model].width))
    command.load(model, args.weights)

    captured = {}  # by the picture's size
    for path in args.pictures:
        picture = pictures.read(path)
        height, width = (max(16, round(size * args.scale)) for size in picture.shape[1:])
        segment = captured.setdefault((height, width), TinyJit(lambda x: model(x).argmax(1)))
        x = pictures.resized(picture, height, width).unsqueeze(0).contiguous().realize()
        classes, ms = command.timed(lambda: segment(x), args.bench)
        show(path, [(classes == i).float().mean().item() for i in range(args.classes)], ms, args.json)
        if args.output:
            draw(pictures.resized(picture, height, width), classes[0],
                 command.output_path(args.output, path, len(args.pictures)))


if __name__ == "__main__":
    options = command.parser(__doc__.split("\n")[0])
    options.add_argument("--model", default="unet", choices=unet.CONFIGS, metavar="NAME", help=", ".join(unet.CONFIGS))
    options.add_argument("--classes", type=int, default=2, help="that the model tells apart (default 2)")
    options.add_argument("--scale", type=float, default=0.5, help="of the picture before it is looked at (default 0.5)")
    options.add_argument("--output", metavar="FILE", help="the picture with its classes, a PNG; of several a directory")
    command.run(main, options)
