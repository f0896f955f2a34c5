"""EfficientNet: rethinking model scaling for convolutional networks. Tan and Le 2019, arXiv:1905.11946.

    model = EfficientNet(CONFIGS["efficientnet_b0"])
    logits = model(pictures)  # (n, 3, h, w) to (n, classes)

Weights have torchvision's names.
"""
import functools
import math
from dataclasses import dataclass

from weft import Tensor, nn

from .blocks import ConvNormAct, InvertedResidual, divisible


@dataclass(frozen=True)
class Config:
    width: float
    depth: float
    resize: int
    crop: int
    dropout: float
    norm_eps: float = 1e-5
    classes: int = 1000
    filter: str = "cubic"  # the preparation of the published weights (IMAGENET1K_V1)


CONFIGS = {
    "efficientnet_b0": Config(1.0, 1.0, 256, 224, 0.2),
    "efficientnet_b1": Config(1.0, 1.1, 256, 240, 0.2),
    "efficientnet_b2": Config(1.1, 1.2, 288, 288, 0.3),
    "efficientnet_b3": Config(1.2, 1.4, 320, 300, 0.3),
    "efficientnet_b4": Config(1.4, 1.8, 384, 380, 0.4),
    "efficientnet_b5": Config(1.6, 2.2, 456, 456, 0.4, 1e-3),
    "efficientnet_b6": Config(1.8, 2.6, 528, 528, 0.5, 1e-3),
    "efficientnet_b7": Config(2.0, 3.1, 600, 600, 0.5, 1e-3),
}

# Table 1 of the paper, and its appendix: expansion, kernel, stride, input and output channels, blocks.
STAGES = ((1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
          (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1))
STOCHASTIC_DEPTH = 0.2  # of the last block; the first is never left out


class EfficientNet:
    def __init__(self, config: Config):
        norm = functools.partial(nn.BatchNorm, eps=config.norm_eps)
        counts = [math.ceil(stage[-1] * config.depth) for stage in STAGES]
        features = [ConvNormAct(3, divisible(32 * config.width), stride=2, norm=norm, act=Tensor.silu)]
        for i, (expansion, kernel, stride, inputs, outputs, _) in enumerate(STAGES):
            inputs, outputs = divisible(inputs * config.width), divisible(outputs * config.width)
            stage = []
            for j in range(counts[i]):
                drop = STOCHASTIC_DEPTH * (sum(counts[:i]) + j) / sum(counts)
                stage.append(InvertedResidual(inputs, divisible(inputs * expansion), outputs, kernel, stride,
                                              max(1, inputs // 4), norm, drop=drop))
                inputs, stride = outputs, 1
            features.append(nn.Sequential(*stage))
        features.append(ConvNormAct(outputs, 4 * outputs, 1, norm=norm, act=Tensor.silu))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(4 * outputs, config.classes))

    def __call__(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))
