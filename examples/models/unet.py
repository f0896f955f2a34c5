"""U-Net: convolutional networks for biomedical image segmentation. Ronneberger et al. 2015, arXiv:1505.04597.

    model = UNet(CONFIGS["unet"])
    logits = model(pictures)  # (n, 3, h, w) to (n, classes, h, w)

With padding, so that maps keep the picture's size, and batch norm, as the implementations that are used today; weights
have the names of milesial/Pytorch-UNet (without bilinear).
"""
from dataclasses import dataclass

from weft import Tensor, nn


@dataclass(frozen=True)
class Config:
    classes: int = 2
    width: int = 64
    depth: int = 4


CONFIGS = {"unet": Config(), "unet_small": Config(width=16)}


class DoubleConv:
    def __init__(self, inputs, outputs):
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm(outputs), nn.ReLU())

    def __call__(self, x):
        return self.double_conv(x)


class Down:
    """Half the size, twice the channels."""

    def __init__(self, inputs):
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, 2 * inputs))

    def __call__(self, x):
        return self.maxpool_conv(x)


class Up:
    """Twice the size, half the channels, with what was there on the way down."""

    def __init__(self, inputs):
        self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, 2)
        self.conv = DoubleConv(inputs, inputs // 2)

    def __call__(self, x, skipped):
        x = self.up(x)
        rows, columns = (want - have for want, have in zip(skipped.shape[2:], x.shape[2:]))
        x = x.pad((columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))  # of sizes that were odd
        return self.conv(skipped.cat(x, dim=1))


class UNet:
    def __init__(self, config: Config):
        widths = [config.width << i for i in range(config.depth + 1)]
        self.depth = config.depth
        self.inc = DoubleConv(3, widths[0])
        for i in range(config.depth):
            setattr(self, f"down{i + 1}", Down(widths[i]))
            setattr(self, f"up{i + 1}", Up(widths[-1 - i]))
        self.outc = nn.Sequential({"conv": nn.Conv2d(widths[0], config.classes, 1)})

    def __call__(self, x: Tensor) -> Tensor:
        maps = [self.inc(x)]
        for i in range(self.depth):
            maps.append(getattr(self, f"down{i + 1}")(maps[-1]))
        x = maps.pop()
        for i in range(self.depth):
            x = getattr(self, f"up{i + 1}")(x, maps.pop())
        return self.outc(x)
