"""ResNet: deep residual learning for image recognition. He et al. 2015, arXiv:1512.03385.

    model = ResNet(CONFIGS["resnet50"])
    logits = model(pictures)  # (n, 3, h, w) to (n, classes)

Weights have torchvision's names; the stride of a bottleneck is in its 3 x 3 convolution, as there.
"""
from dataclasses import dataclass

from weft import Tensor, nn


@dataclass(frozen=True)
class Config:
    bottleneck: bool
    layers: tuple[int, ...]  # blocks of each stage
    width: int = 64
    classes: int = 1000
    resize: int = 232  # the preparation of the published weights (IMAGENET1K_V2 of 50 and 101)
    crop: int = 224


CONFIGS = {
    "resnet18": Config(False, (2, 2, 2, 2), resize=256),
    "resnet34": Config(False, (3, 4, 6, 3), resize=256),
    "resnet50": Config(True, (3, 4, 6, 3)),
    "resnet101": Config(True, (3, 4, 23, 3)),
}


def _shortcut(inputs, outputs, stride, norm):
    """What makes the input as large as the output; None where it is."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))


class BasicBlock:
    expansion = 1

    def __init__(self, inputs, width, stride, norm):
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), norm(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), norm(width)
        self.downsample = _shortcut(inputs, width, stride, norm)

    def __call__(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + (self.downsample(x) if self.downsample else x)).relu()


class Bottleneck:
    expansion = 4

    def __init__(self, inputs, width, stride, norm):
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), norm(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), norm(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), norm(4 * width)
        self.downsample = _shortcut(inputs, 4 * width, stride, norm)

    def __call__(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + (self.downsample(x) if self.downsample else x)).relu()


class Trunk:
    """Everything before the pool: pictures (n, 3, h, w) to the four stages' maps, at 1/4 to 1/32 of the size."""

    def __init__(self, config: Config, norm=nn.BatchNorm):
        self.conv1, self.bn1 = nn.Conv2d(3, config.width, 7, 2, 3, bias=False), norm(config.width)
        block = Bottleneck if config.bottleneck else BasicBlock
        self.channels = [config.width * block.expansion << i for i in range(4)]
        inputs = config.width
        for i, count in enumerate(config.layers):
            strides = [1 if i == 0 else 2] + [1] * (count - 1)
            stage = []
            for stride in strides:
                stage.append(block(inputs, config.width << i, stride, norm))
                inputs = self.channels[i]
            setattr(self, f"layer{i + 1}", stage)

    def maps(self, x: Tensor) -> list[Tensor]:
        x = self.bn1(self.conv1(x)).relu().max_pool2d(3, 2, padding=1)
        found = []
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = x.sequential(stage)
            found.append(x)
        return found


class ResNet(Trunk):
    def __init__(self, config: Config):
        super().__init__(config)
        self.fc = nn.Linear(self.channels[-1], config.classes)

    def __call__(self, x: Tensor) -> Tensor:
        return self.fc(self.maps(x)[-1].mean((2, 3)))
