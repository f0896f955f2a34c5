"""What several vision models are made of, with torchvision's names of weights."""
from weft import Tensor, nn


def divisible(channels: float, by: int = 8) -> int:
    """The multiple of `by` that is nearest to a number of channels, at most a tenth below it."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded if rounded >= 0.9 * channels else rounded + by


class ConvNormAct(nn.Sequential):
    """A convolution that keeps sizes but for its stride ("0"), a norm ("1"), and an activation or none."""

    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1, norm=nn.BatchNorm, act=Tensor.relu):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
                         norm(outputs), *([act] if act else []))


class SqueezeExcite:
    """Channels times a gate that is computed from the means of all. Hu et al. 2018, arXiv:1709.01507."""

    def __init__(self, channels, squeezed, act=Tensor.silu, gate=Tensor.sigmoid):
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = act, gate

    def __call__(self, x):
        means = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.fc2(self.act(self.fc1(means))))


def stochastic_depth(x: Tensor, p: float) -> Tensor:
    """While training all of an example or, with probability p, nothing. Huang et al. 2016, arXiv:1603.09382."""
    if p == 0:
        return x
    return x * Tensor.ones(x.shape[0], *(1,) * (x.ndim - 1), buffer=False).dropout(p)


class InvertedResidual:
    """Expand, convolve each channel, gate, project; added to the input where shapes allow. Sandler et al. 2018,
    arXiv:1801.04381. squeezed: channels of the gate's middle, 0 for no gate; gate: its functions by SqueezeExcite's
    names; drop: the probability that a training example goes without it."""

    def __init__(self, inputs, expanded, outputs, kernel, stride, squeezed, norm, act=Tensor.silu, drop=0.0, gate=None):
        layers = [ConvNormAct(inputs, expanded, 1, norm=norm, act=act)] if expanded != inputs else []
        layers.append(ConvNormAct(expanded, expanded, kernel, stride, groups=expanded, norm=norm, act=act))
        if squeezed:
            layers.append(SqueezeExcite(expanded, squeezed, **(gate or {})))
        layers.append(ConvNormAct(expanded, outputs, 1, norm=norm, act=None))
        self.block = nn.Sequential(*layers)
        self.residual, self.drop = stride == 1 and inputs == outputs, drop

    def __call__(self, x):
        y = self.block(x)
        return x + stochastic_depth(y, self.drop) if self.residual else y


def parameters(model) -> list[Tensor]:
    """What is trained: all tensors of a model but running statistics."""
    return [t for t in nn.state.get_parameters(model) if t.requires_grad is not False]
