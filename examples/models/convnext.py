"""ConvNeXt: a ConvNet for the 2020s. Liu et al. 2022, arXiv:2201.03545.

    model = ConvNeXt(CONFIGS["convnext_tiny"])
    logits = model(pictures)  # (n, 3, h, w) to (n, classes)

Weights have torchvision's names.
"""
import functools
from dataclasses import dataclass

from weft import Tensor, nn

from .blocks import stochastic_depth


@dataclass(frozen=True)
class Config:
    depths: tuple[int, ...]  # blocks of each stage
    widths: tuple[int, ...]  # and its channels
    drop: float  # stochastic depth of the last block
    resize: int = 232
    crop: int = 224
    classes: int = 1000


CONFIGS = {
    "convnext_tiny": Config((3, 3, 9, 3), (96, 192, 384, 768), 0.1, 236),
    "convnext_small": Config((3, 3, 27, 3), (96, 192, 384, 768), 0.4, 230),
    "convnext_base": Config((3, 3, 27, 3), (128, 256, 512, 1024), 0.5),
    "convnext_large": Config((3, 3, 27, 3), (192, 384, 768, 1536), 0.5),
}


def _channels_last(x):
    return x.permute(0, 2, 3, 1)


def _channels_first(x):
    return x.permute(0, 3, 1, 2)


class Block:
    """7 x 7 for each channel, then two products over the channels, which are the last axis meanwhile."""

    def __init__(self, width, drop):
        self.block = nn.Sequential(
            nn.Conv2d(width, width, 7, padding=3, groups=width), _channels_last, nn.LayerNorm(width, 1e-6),
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), _channels_first)
        self.layer_scale = Tensor.full((width, 1, 1), 1e-6)
        self.drop = drop

    def __call__(self, x):
        return x + stochastic_depth(self.layer_scale * self.block(x), self.drop)


class ConvNeXt:
    def __init__(self, config: Config):
        norm = functools.partial(nn.LayerNorm2d, eps=1e-6)
        inputs, width = 3, config.widths[0]
        last = max(1, sum(config.depths) - 1)
        features = []
        for i, (depth, width) in enumerate(zip(config.depths, config.widths)):
            features.append(nn.Sequential(nn.Conv2d(3, width, 4, 4), norm(width)) if i == 0 else
                            nn.Sequential(norm(inputs), nn.Conv2d(inputs, width, 2, 2)))
            before = sum(config.depths[:i])
            features.append(nn.Sequential(*[Block(width, config.drop * (before + j) / last) for j in range(depth)]))
            inputs = width
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(norm(width), nn.Flatten(1), nn.Linear(width, config.classes))

    def __call__(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3), keepdim=True))
