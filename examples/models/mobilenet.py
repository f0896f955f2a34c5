"""MobileNetV2: inverted residuals and linear bottlenecks, Sandler et al. 2018, arXiv:1801.04381, and
MobileNetV3: Howard et al. 2019, arXiv:1905.02244.

    model = MobileNetV2(CONFIGS["mobilenet_v2"])
    logits = model(pictures)  # (n, 3, h, w) to (n, classes)

Weights have torchvision's names.
"""
import functools
from dataclasses import dataclass

from weft import Tensor, nn

from .blocks import ConvNormAct, InvertedResidual, divisible


# ---- version 2

@dataclass(frozen=True)
class ConfigV2:
    width: float = 1.0
    dropout: float = 0.2
    resize: int = 232
    crop: int = 224
    classes: int = 1000


# Table 2 of the paper: expansion, output channels, blocks, stride.
STAGES_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class ResidualV2:
    """The same as blocks.InvertedResidual but for names: the projection's two layers are members of their own."""

    def __init__(self, inputs, outputs, stride, expansion):
        expanded = inputs * expansion
        layers = [ConvNormAct(inputs, expanded, 1, act=Tensor.relu6)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *layers, ConvNormAct(expanded, expanded, 3, stride, groups=expanded, act=Tensor.relu6),
            nn.Conv2d(expanded, outputs, 1, bias=False), nn.BatchNorm(outputs))
        self.residual = stride == 1 and inputs == outputs

    def __call__(self, x):
        y = self.conv(x)
        return x + y if self.residual else y


class MobileNetV2:
    def __init__(self, config: ConfigV2):
        inputs, last = divisible(32 * config.width), divisible(1280 * max(1.0, config.width))
        features = [ConvNormAct(3, inputs, stride=2, act=Tensor.relu6)]
        for expansion, outputs, count, stride in STAGES_V2:
            outputs = divisible(outputs * config.width)
            for i in range(count):
                features.append(ResidualV2(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        features.append(ConvNormAct(inputs, last, 1, act=Tensor.relu6))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(last, config.classes))

    def __call__(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


# ---- version 3

@dataclass(frozen=True)
class ConfigV3:
    # kernel, expanded and output channels, gate, hard swish (else relu), stride
    blocks: tuple[tuple[int, int, int, bool, bool, int], ...]
    last: int
    resize: int = 232
    crop: int = 224
    dropout: float = 0.2
    classes: int = 1000


# Tables 1 and 2 of the paper.
LARGE = ((3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
         (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
         (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
         (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
         (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1))
SMALL = ((3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
         (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
         (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
         (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1))


class MobileNetV3:
    def __init__(self, config: ConfigV3):
        norm = functools.partial(nn.BatchNorm, eps=1e-3, momentum=0.01)
        inputs = 16
        features = [ConvNormAct(3, inputs, stride=2, norm=norm, act=Tensor.hardswish)]
        for kernel, expanded, outputs, gated, swish, stride in config.blocks:
            features.append(InvertedResidual(
                inputs, expanded, outputs, kernel, stride, divisible(expanded // 4) if gated else 0, norm,
                Tensor.hardswish if swish else Tensor.relu, gate=dict(act=Tensor.relu, gate=Tensor.hardsigmoid)))
            inputs = outputs
        features.append(ConvNormAct(inputs, 6 * inputs, 1, norm=norm, act=Tensor.hardswish))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Linear(6 * inputs, config.last), Tensor.hardswish,
                                        nn.Dropout(config.dropout), nn.Linear(config.last, config.classes))

    def __call__(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


CONFIGS = {
    "mobilenet_v2": ConfigV2(),
    "mobilenet_v3_large": ConfigV3(LARGE, 1280),
    "mobilenet_v3_small": ConfigV3(SMALL, 1024, resize=256),
}
