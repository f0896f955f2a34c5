"""RetinaNet: focal loss for dense object detection. Lin et al. 2017, arXiv:1708.02002, on feature pyramids
(arXiv:1612.03144).

    model = RetinaNet(CONFIGS["retinanet_resnet50_fpn"])
    found = model.detect(pictures)  # (n, 3, h, w), normalised, to (n, 300, 6): x1, y1, x2, y2, score, class

Weights have torchvision's names (retinanet_resnet50_fpn, COCO_V1).
"""
import math
from dataclasses import dataclass

from weft import Tensor, nn

from . import boxes, resnet


@dataclass(frozen=True)
class Config:
    trunk: resnet.Config = resnet.CONFIGS["resnet50"]
    width: int = 256  # channels of the pyramid
    classes: int = 91  # COCO's numbers, of which some name nothing
    shortest: int = 800  # pictures are resized to this on their shorter side,
    longest: int = 1333  # or to this on the longer one


CONFIGS = {"retinanet_resnet50_fpn": Config()}
SIZES = (32, 64, 128, 256, 512)  # of the anchors of each level, times 1, 2^(1/3) and 2^(2/3)
RATIOS = (0.5, 1.0, 2.0)  # heights to widths
ANCHORS = 3 * len(RATIOS)


class FrozenBatchNorm:
    """A batch norm that never trains: the published weights were made with its statistics, without an epsilon."""

    def __init__(self, width):
        self.weight, self.bias = Tensor.ones(width, requires_grad=False), Tensor.zeros(width, requires_grad=False)
        self.running_mean = Tensor.zeros(width, requires_grad=False)
        self.running_var = Tensor.ones(width, requires_grad=False)

    def __call__(self, x):
        return x.batchnorm(self.weight, self.bias, self.running_mean, self.running_var.rsqrt())


def _conv(inputs, outputs, kernel=3, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)


class Pyramid:
    """Maps of 1/8, 1/16, 1/32 of the size, each with what the next one sees, and two more of 1/64 and 1/128."""

    def __init__(self, inputs, width):
        self.inner_blocks = [nn.Sequential(_conv(channels, width, 1)) for channels in inputs]
        self.layer_blocks = [nn.Sequential(_conv(width, width)) for _ in inputs]
        self.extra_blocks = {"p6": _conv(width, width, 3, 2), "p7": _conv(width, width, 3, 2)}

    def __call__(self, maps):
        inner = [block(x) for block, x in zip(self.inner_blocks, maps)]
        for i in reversed(range(len(inner) - 1)):
            inner[i] = inner[i] + inner[i + 1].interpolate(inner[i].shape[2:], "nearest")
        found = [block(x) for block, x in zip(self.layer_blocks, inner)]
        found.append(self.extra_blocks["p6"](found[-1]))
        found.append(self.extra_blocks["p7"](found[-1].relu()))
        return found


class Head:
    """Four convolutions and one more: (n, width, h, w) to (n, h * w * anchors, outputs), for every level the same."""

    def __init__(self, width, last, outputs):
        self.conv = [nn.Sequential(_conv(width, width), nn.ReLU()) for _ in range(4)]
        setattr(self, last, _conv(width, ANCHORS * outputs))
        self.last, self.outputs = last, outputs

    def __call__(self, x):
        y = getattr(self, self.last)(x.sequential(self.conv))
        n, _, h, w = y.shape
        return y.reshape(n, ANCHORS, self.outputs, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, self.outputs)


def anchors(size: int, rows: int, columns: int, picture: tuple[int, int]) -> Tensor:
    """(rows * columns * anchors, 4): the boxes of one level around the corners of its elements, rounded to pixels."""
    corners = []
    for ratio in RATIOS:
        for step in range(3):
            height = int(size * 2 ** (step / 3)) * math.sqrt(ratio)
            width = height / ratio
            corners.append([round(-width / 2), round(-height / 2), round(width / 2), round(height / 2)])
    y, x = Tensor.arange(rows) * (picture[0] // rows), Tensor.arange(columns) * (picture[1] // columns)
    x, y = x.expand(rows, columns), y.unsqueeze(1).expand(rows, columns)
    return (Tensor.stack(x, y, x, y, dim=2).unsqueeze(2) + Tensor(corners)).reshape(-1, 4).float()


def decoded(deltas: Tensor, around: Tensor) -> Tensor:
    """Boxes whose middles are moved by parts of the anchors' sides, and whose sides grow by exponentials. Girshick et
    al. 2014, arXiv:1311.2524, appendix C; sides grow at most by 1000 / 16, as published models were trained."""
    sides = around[..., 2:] - around[..., :2]
    middles = around[..., :2] + sides / 2 + deltas[..., :2] * sides
    grown = deltas[..., 2:].clamp(None, math.log(1000 / 16)).exp() * sides
    return (middles - grown / 2).cat(middles + grown / 2, dim=-1)


class RetinaNet:
    def __init__(self, config: Config):
        body = resnet.Trunk(config.trunk, FrozenBatchNorm)
        self.backbone = {"body": body, "fpn": Pyramid(body.channels[1:], config.width)}
        self.head = {"classification_head": Head(config.width, "cls_logits", config.classes),
                     "regression_head": Head(config.width, "bbox_reg", 4)}

    def levels(self, x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Of each level logits (n, anchors, classes), deltas (n, anchors, 4), anchors (anchors, 4)."""
        maps = self.backbone["fpn"](self.backbone["body"].maps(x)[1:])
        return [(self.head["classification_head"](m), self.head["regression_head"](m),
                 anchors(size, *m.shape[2:], x.shape[2:])) for size, m in zip(SIZES, maps)]

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, anchors, classes) and deltas (n, anchors, 4) of all levels."""
        logits, deltas, _ = zip(*self.levels(x))
        return Tensor.cat(*logits, dim=1), Tensor.cat(*deltas, dim=1)

    def detect(self, x: Tensor, size: tuple[int, int] | None = None, score: float = 0.05, overlap: float = 0.5,
               candidates: int = 1000, count: int = 300) -> Tensor:
        """(n, count, 6), as boxes.best() says. size: (height, width) within the padding, where there is some;
        `candidates` pairs of an anchor and a class of each level are looked at."""
        levels = self.levels(x)
        height, width = size or x.shape[2:]
        found = []
        for i in range(x.shape[0]):
            parts = zip(*[_candidates(logits[i], deltas[i], around, candidates) for logits, deltas, around in levels])
            corners, scores, classes = (Tensor.cat(*part) for part in parts)
            corners = corners.maximum(0).minimum(Tensor([width, height, width, height]))
            found.append(boxes.best(corners, scores, classes, scores.shape[0], count, score, overlap))
        return Tensor.stack(*found)

    @staticmethod
    def renamed(name: str) -> str | None:
        """Names of the file that torchvision published as they are here; None for what is not used."""
        if name.endswith("num_batches_tracked"):
            return None
        parts = name.split(".")
        if parts[1] == "fpn" and parts[2] != "extra_blocks" and len(parts) == 5:  # inner_blocks.0.weight
            parts.insert(4, "0")
        if parts[2:3] == ["conv"] and len(parts) == 5:  # conv.6.weight, whose odd numbers are activations
            parts[3:4] = [str(int(parts[3]) // 2), "0"]
        return ".".join(parts)


def _candidates(logits, deltas, around, count):
    """(boxes, scores, classes) of a level's best pairs of an anchor and a class."""
    classes = logits.shape[1]
    scores, pairs = logits.flatten().topk(min(count, logits.numel()))
    anchor = pairs // classes
    return decoded(deltas[anchor], around[anchor]), scores.sigmoid(), pairs % classes
