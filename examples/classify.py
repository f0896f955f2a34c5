"""What is on pictures: the five best of a thousand classes.

    python examples/classify.py --model resnet50 --weights resnet50.safetensors --labels imagenet.txt cat.jpg
"""
import json

from models import command, convnext, efficientnet, mobilenet, pictures, resnet, vit
from weft import Tensor, TinyJit

KINDS = {
    resnet.Config: resnet.ResNet, efficientnet.Config: efficientnet.EfficientNet, convnext.Config: convnext.ConvNeXt,
    vit.Config: vit.ViT, mobilenet.ConfigV2: mobilenet.MobileNetV2, mobilenet.ConfigV3: mobilenet.MobileNetV3,
}
CONFIGS = resnet.CONFIGS | efficientnet.CONFIGS | convnext.CONFIGS | vit.CONFIGS | mobilenet.CONFIGS


def read_labels(path: str | None, count: int) -> list[str]:
    """A line for each class."""
    if path is None:
        return [f"class {i}" for i in range(count)]
    with open(path, encoding="utf-8") as file:
        labels = [line.strip() for line in file if line.strip()]
    if len(labels) != count:
        raise ValueError(f"{path} has {len(labels)} labels, and the model {count} classes")
    return labels


def show(path: str, found: list[tuple[str, float]], ms: float | None, as_json: bool) -> None:
    if as_json:
        classes = [{"label": label, "probability": round(p, 6)} for label, p in found]
        print(json.dumps({"picture": path, "classes": classes} | ({"ms": round(ms, 3)} if ms else {})))
        return
    print(path + (f"  ({ms:.2f} ms)" if ms else ""))
    for label, p in found:
        print(f"  {100 * p:5.1f} %  {'█' * round(30 * p):30}  {label}")


def main(args) -> None:
    config = CONFIGS[args.model]
    labels = read_labels(args.labels, config.classes)
    model = KINDS[type(config)](config)
    command.load(model, args.weights)

    @TinyJit
    def classify(x: Tensor) -> tuple[Tensor, Tensor]:
        return model(x).softmax(1).topk(args.top)

    for path in args.pictures:
        x = pictures.for_classes(pictures.read(path), config.resize, config.crop, getattr(config, "filter", "linear"))
        (probabilities, places), ms = command.timed(lambda: classify(x), args.bench)
        found = [(labels[i], p) for i, p in zip(places[0].tolist(), probabilities[0].tolist())]
        show(path, found, ms, args.json)


if __name__ == "__main__":
    options = command.parser(__doc__.split("\n")[0])
    options.add_argument("--model", default="resnet50", choices=CONFIGS, metavar="NAME", help=", ".join(CONFIGS))
    options.add_argument("--labels", metavar="FILE", help="the classes' names, one a line")
    options.add_argument("--top", type=int, default=5, help="how many classes are printed")
    command.run(main, options)
