"""Where things are on pictures: boxes of COCO's classes, as a table, as JSON, and drawn.

    python examples/detect.py --model yolov8n --weights yolov8n.safetensors street.jpg --output boxes.png
"""
import functools
import json

from models import coco, command, pictures, retinanet, yolov8
from weft import Tensor, TinyJit

CONFIGS = yolov8.CONFIGS | retinanet.CONFIGS


class Yolo:
    """Pictures in a square, as YOLO's models are trained."""
    labels = coco.THINGS

    def __init__(self, config, args):
        if args.size < 32 or args.size % 32:
            raise ValueError(f"--size {args.size}: give a multiple of 32")
        self.model, self.size = yolov8.YOLOv8(config), args.size
        self.captured = TinyJit(functools.partial(self.model.detect, score=args.score))

    def prepare(self, picture):
        x, scale, left, top = pictures.letterboxed(picture, self.size)
        return functools.partial(self.captured, x), scale, left, top


class Retina:
    """Pictures of all shapes: each is captured for itself."""
    labels = coco.CLASSES

    def __init__(self, config, args):
        self.model, self.config, self.score, self.captured = retinanet.RetinaNet(config), config, args.score, {}

    def prepare(self, picture):
        x, scale, size = pictures.within(picture, self.config.shortest, self.config.longest)
        if size not in self.captured:
            self.captured[size] = TinyJit(functools.partial(self.model.detect, size=size, score=self.score))
        return functools.partial(self.captured[size], x), scale, 0, 0


def found(rows: Tensor, labels: list[str], size: tuple[int, int], scale: float, left: int, top: int) -> list[dict]:
    """Detections in the picture's own pixels, cut at its sides."""
    def own(box):
        moved = [(at - before) / scale for at, before in zip(box, (left, top, left, top))]
        return [min(max(at, 0.0), float(most)) for at, most in zip(moved, (*size, *size))]
    return [{"label": labels[int(number)], "class": int(number), "score": round(score, 6), "box": own(box)}
            for *box, score, number in rows.tolist() if score > 0]


def draw(picture: Tensor, detections: list[dict], path: str) -> None:
    canvas = pictures.Canvas(picture)
    for detection in reversed(detections):  # the best on top
        x1, y1, x2, y2 = map(round, detection["box"])
        colour = pictures.colour(detection["class"])
        canvas.frame(x1, y1, x2, y2, colour)
        canvas.text(x1, y1, f"{detection['label']} {detection['score']:.2f}", colour)
    canvas.save(path)


def show(path: str, detections: list[dict], ms: float | None, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"picture": path, "boxes": detections} | ({"ms": round(ms, 3)} if ms else {})))
        return
    print(f"{path}: {len(detections)} boxes" + (f"  ({ms:.2f} ms)" if ms else ""))
    for d in detections:
        print(f"  {d['score']:.3f}  {d['label']:14}", *(f"{side:8.1f}" for side in d["box"]))


def main(args) -> None:
    config = CONFIGS[args.model]
    detector = (Yolo if args.model in yolov8.CONFIGS else Retina)(config, args)
    command.load(detector.model, args.weights)
    for path in args.pictures:
        picture = pictures.read(path)
        call, *placed = detector.prepare(picture)
        rows, ms = command.timed(call, args.bench)
        height, width = picture.shape[1:]
        detections = found(rows[0], detector.labels, (width, height), *placed)
        show(path, detections, ms, args.json)
        if args.output:
            draw(picture, detections, command.output_path(args.output, path, len(args.pictures)))


if __name__ == "__main__":
    options = command.parser(__doc__.split("\n")[0])
    options.add_argument("--model", default="yolov8n", choices=CONFIGS, metavar="NAME", help=", ".join(CONFIGS))
    options.add_argument("--score", type=float, default=0.25, help="the least score of a box (default 0.25)")
    options.add_argument("--size", type=int, default=640, help="of YOLO's square, a multiple of 32 (default 640)")
    options.add_argument("--output", metavar="FILE", help="the picture with its boxes, a PNG; of several a directory")
    command.run(main, options)
