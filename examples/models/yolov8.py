"""YOLOv8, a detector without anchors (Jocher et al. 2023, github.com/ultralytics/ultralytics), whose boxes are
distributions over distances (Li et al. 2020, arXiv:2006.04388).

    model = YOLOv8(CONFIGS["yolov8n"])
    found = model.detect(pictures)  # (n, 3, h, w) in [0, 1] to (n, 300, 6): x1, y1, x2, y2, score, class

Weights have the names of ultralytics' state dicts.
"""
import math
from dataclasses import dataclass

from weft import Tensor, nn

from . import boxes


@dataclass(frozen=True)
class Config:
    depth: float
    width: float
    most: int  # channels before they are scaled
    classes: int = 80


# yolov8.yaml of ultralytics
CONFIGS = {
    "yolov8n": Config(1 / 3, 0.25, 1024),
    "yolov8s": Config(1 / 3, 0.50, 1024),
    "yolov8m": Config(2 / 3, 0.75, 768),
    "yolov8l": Config(1.0, 1.00, 512),
    "yolov8x": Config(1.0, 1.25, 512),
}
STRIDES = (8, 16, 32)
DISTANCES = 16  # places of each distance's distribution


class Conv:
    def __init__(self, inputs, outputs, kernel=1, stride=1):
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm(outputs, eps=1e-3, momentum=0.03)

    def __call__(self, x):
        return self.bn(self.conv(x)).silu()


class Bottleneck:
    def __init__(self, width, shortcut):
        self.cv1, self.cv2, self.shortcut = Conv(width, width, 3), Conv(width, width, 3), shortcut

    def __call__(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.shortcut else y


class C2f:
    """Half of the channels pass, the other half goes through bottlenecks; all that they made meets again."""

    def __init__(self, inputs, outputs, count, shortcut=False):
        half = outputs // 2
        self.cv1, self.cv2 = Conv(inputs, 2 * half), Conv((2 + count) * half, outputs)
        self.m = [Bottleneck(half, shortcut) for _ in range(count)]

    def __call__(self, x):
        parts = self.cv1(x).chunk(2, dim=1)
        for bottleneck in self.m:
            parts.append(bottleneck(parts[-1]))
        return self.cv2(Tensor.cat(*parts, dim=1))


class SPPF:
    """Pools of 5, 9 and 13 elements, each made of the one before. He et al. 2014, arXiv:1406.4729."""

    def __init__(self, inputs, outputs):
        self.cv1, self.cv2 = Conv(inputs, inputs // 2), Conv(4 * (inputs // 2), outputs)

    def __call__(self, x):
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(parts[-1].max_pool2d(5, 1, padding=2))
        return self.cv2(Tensor.cat(*parts, dim=1))


class Concat:
    def __call__(self, *maps):
        return Tensor.cat(*maps, dim=1)


class Detect:
    """Three maps to (n, 4, places) distances from the place to the box's sides, in strides, and (n, classes, places)
    logits."""

    def __init__(self, widths, classes):
        to_boxes, to_classes = max(16, widths[0] // 4, 4 * DISTANCES), max(widths[0], min(classes, 100))
        self.cv2 = [nn.Sequential(Conv(w, to_boxes, 3), Conv(to_boxes, to_boxes, 3),
                                  nn.Conv2d(to_boxes, 4 * DISTANCES, 1)) for w in widths]
        self.cv3 = [nn.Sequential(Conv(w, to_classes, 3), Conv(to_classes, to_classes, 3),
                                  nn.Conv2d(to_classes, classes, 1)) for w in widths]
        self.dfl = nn.Sequential({"conv": nn.Conv2d(DISTANCES, 1, 1, bias=False)})
        self.dfl.conv.weight = Tensor.arange(DISTANCES).float().reshape(1, DISTANCES, 1, 1).is_param_(False)

    def __call__(self, *maps):
        sides = Tensor.cat(*[layer(x).flatten(2) for layer, x in zip(self.cv2, maps)], dim=2)
        logits = Tensor.cat(*[layer(x).flatten(2) for layer, x in zip(self.cv3, maps)], dim=2)
        expected = self.dfl(sides.reshape(sides.shape[0], 4, DISTANCES, -1).transpose(1, 2).softmax(1))
        return expected.squeeze(1), logits


def places(height: int, width: int) -> tuple[Tensor, Tensor]:
    """The middles of all maps' elements (2, places) in strides, and the strides (places)."""
    middles, strides = [], []
    for stride in STRIDES:
        rows, columns = height // stride, width // stride
        y, x = Tensor.arange(rows).float() + 0.5, Tensor.arange(columns).float() + 0.5
        middles.append(x.expand(rows, columns).flatten().stack(y.unsqueeze(1).expand(rows, columns).flatten()))
        strides.append(Tensor.full((rows * columns,), float(stride)))
    return Tensor.cat(*middles, dim=1), Tensor.cat(*strides)


class YOLOv8:
    def __init__(self, config: Config):
        def width(channels):
            return math.ceil(min(channels, config.most) * config.width / 8) * 8

        def depth(count):
            return max(1, round(count * config.depth))
        c1, c2, c3, c4, c5 = (width(channels) for channels in (64, 128, 256, 512, 1024))
        self.model = [
            Conv(3, c1, 3, 2), Conv(c1, c2, 3, 2), C2f(c2, c2, depth(3), True),  # 0 to 2, at 1/4 of the size
            Conv(c2, c3, 3, 2), C2f(c3, c3, depth(6), True),  # 4: at 1/8
            Conv(c3, c4, 3, 2), C2f(c4, c4, depth(6), True),  # 6: at 1/16
            Conv(c4, c5, 3, 2), C2f(c5, c5, depth(3), True), SPPF(c5, c5),  # 9: at 1/32
            nn.Upsample(scale_factor=2), Concat(), C2f(c5 + c4, c4, depth(3)),  # and up again: 12 at 1/16
            nn.Upsample(scale_factor=2), Concat(), C2f(c4 + c3, c3, depth(3)),  # 15 at 1/8
            Conv(c3, c3, 3, 2), Concat(), C2f(c3 + c4, c4, depth(3)),  # and down: 18 at 1/16
            Conv(c4, c4, 3, 2), Concat(), C2f(c4 + c5, c5, depth(3)),  # 21 at 1/32
            Detect((c3, c4, c5), config.classes),
        ]
        # What layers take that do not take the one before them.
        self.sources = {11: (10, 6), 14: (13, 4), 17: (16, 12), 20: (19, 9), 22: (15, 18, 21)}

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 3, h, w), h and w multiples of 32, to what Detect gives."""
        made = []
        for i, layer in enumerate(self.model):
            sources = [made[j] for j in self.sources[i]] if i in self.sources else made[-1:] or [x]
            made.append(layer(*sources))
        return made[-1]

    def decode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes (n, places, 4) in pixels and probabilities (n, places, classes) of pictures."""
        sides, logits = self(x)
        middles, strides = places(*x.shape[2:])
        corners = Tensor.cat(middles - sides[:, :2], middles + sides[:, 2:], dim=1) * strides
        return corners.transpose(1, 2), logits.transpose(1, 2).sigmoid()

    def detect(self, x: Tensor, score: float = 0.25, overlap: float = 0.7, candidates: int = 1000,
               count: int = 300) -> Tensor:
        """(n, count, 6), as boxes.best() says."""
        corners, probabilities = self.decode(x)
        found = [boxes.best(c, p.max(1), p.argmax(1), candidates, count, score, overlap)
                 for c, p in zip(corners, probabilities)]
        return Tensor.stack(*found)
