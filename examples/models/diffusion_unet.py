"""The UNet of Stable Diffusion 1 and XL: from noisy latents to the noise in them.

Rombach et al. 2022, "High-Resolution Image Synthesis with Latent Diffusion Models"; Podell et al. 2023, "SDXL". Names of
parameters are those of diffusers' UNet2DConditionModel.
"""
import math
from dataclasses import dataclass
from pathlib import Path

from weft import Tensor, nn

from models import checkpoint
from models.transformer import attend


@dataclass
class UNetConfig:
    """The defaults are Stable Diffusion 1.5's, by the names of unet/config.json:
    https://huggingface.co/stable-diffusion-v1-5/stable-diffusion-v1-5/blob/main/unet/config.json"""
    in_channels: int = 4
    out_channels: int = 4
    block_out_channels: tuple[int, ...] = (320, 640, 1280, 1280)
    down_block_types: tuple[str, ...] = ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
    up_block_types: tuple[str, ...] = ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3
    layers_per_block: int = 2
    transformer_layers_per_block: int | tuple[int, ...] = 1
    attention_head_dim: int | tuple[int, ...] = 8  # the number of heads, in spite of its name
    cross_attention_dim: int = 768
    use_linear_projection: bool = False
    norm_num_groups: int = 32
    norm_eps: float = 1e-5
    addition_embed_type: str = ""
    addition_time_embed_dim: int = 256
    projection_class_embeddings_input_dim: int = 2816

    def __post_init__(self) -> None:
        known = {"CrossAttnDownBlock2D", "DownBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"}
        unknown = {*self.down_block_types, *self.up_block_types} - known
        if unknown or self.addition_embed_type not in ("", "text_time"):
            raise ValueError(f"unet/config.json: {', '.join(sorted(unknown)) or self.addition_embed_type!r} is not "
                             "supported: the blocks and embeddings of Stable Diffusion 1 and XL are")

    def each(self, value: int | tuple[int, ...]) -> tuple[int, ...]:
        """A value for every block."""
        return (value,) * len(self.block_out_channels) if isinstance(value, int) else tuple(value)


# https://huggingface.co/stabilityai/stable-diffusion-xl-base-1.0/blob/main/unet/config.json
SDXL = UNetConfig(
    block_out_channels=(320, 640, 1280), down_block_types=("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2,
    up_block_types=("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",), transformer_layers_per_block=(1, 2, 10),
    attention_head_dim=(5, 10, 20), cross_attention_dim=2048, use_linear_projection=True,
    addition_embed_type="text_time")
TINY = UNetConfig(
    block_out_channels=(16, 32), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1, attention_head_dim=2,
    cross_attention_dim=32, norm_num_groups=4)
TINY_XL = UNetConfig(
    block_out_channels=(16, 32), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), layers_per_block=1, transformer_layers_per_block=(1, 2),
    attention_head_dim=(2, 4), cross_attention_dim=64, use_linear_projection=True, norm_num_groups=4,
    addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=32 + 6 * 8)


def sinusoids(x: Tensor, width: int) -> Tensor:
    """(...) numbers to (..., width): cosines and sines of x times frequencies from 1 down to 1/10000."""
    half = width // 2
    angles = x.float().unsqueeze(-1) * (Tensor.arange(half).float() * (-math.log(10000) / half)).exp()
    return angles.cos().cat(angles.sin(), dim=-1)


class TimestepEmbedding:
    def __init__(self, inputs: int, width: int) -> None:
        self.linear_1, self.linear_2 = nn.Linear(inputs, width), nn.Linear(width, width)

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear_2(self.linear_1(x).silu())


class ResnetBlock:
    """Two convolutions; what time it is, (batch, time), is added between them. time 0: without."""

    def __init__(self, inputs: int, outputs: int, groups: int, eps: float, time: int = 0) -> None:
        self.norm1, self.conv1 = nn.GroupNorm(groups, inputs, eps), nn.Conv2d(inputs, outputs, 3, padding=1)
        if time:
            self.time_emb_proj = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(groups, outputs, eps), nn.Conv2d(outputs, outputs, 3, padding=1)
        if inputs != outputs:
            self.conv_shortcut = nn.Conv2d(inputs, outputs, 1)

    def __call__(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        y = self.conv1(self.norm1(x).silu())
        if time is not None:
            y = y + self.time_emb_proj(time.silu())[:, :, None, None]
        y = self.conv2(self.norm2(y).silu())
        return y + (self.conv_shortcut(x) if hasattr(self, "conv_shortcut") else x)


class Attention:
    """Attention of x (batch, positions, width) to a context, or to itself."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k, self.to_v = (nn.Linear(context, width, bias=False) for _ in range(2))
        self.to_out = [nn.Linear(width, width)]

    def __call__(self, x: Tensor, context: Tensor) -> Tensor:
        return self.to_out[0](attend(self.to_q(x), self.to_k(context), self.to_v(context), self.heads))


class GEGLU:
    """Shazeer 2020, "GLU Variants Improve Transformer"."""

    def __init__(self, width: int, inner: int) -> None:
        self.proj = nn.Linear(width, 2 * inner)

    def __call__(self, x: Tensor) -> Tensor:
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * gate.gelu("none")


class FeedForward:
    def __init__(self, width: int) -> None:
        self.net = [GEGLU(width, 4 * width), nn.Identity(), nn.Linear(4 * width, width)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.net)


class TransformerBlock:
    def __init__(self, width: int, heads: int, context: int) -> None:
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1, self.attn2 = Attention(width, heads, width), Attention(width, heads, context)
        self.ff = FeedForward(width)

    def __call__(self, x: Tensor, context: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attn1(y, y)
        x = x + self.attn2(self.norm2(x), context)
        return x + self.ff(self.norm3(x))


class Transformer2D:
    """Transformer blocks over the pixels of (batch, channels, height, width)."""

    def __init__(self, width: int, heads: int, depth: int, c: UNetConfig) -> None:
        self.norm, self.linear = nn.GroupNorm(c.norm_num_groups, width, 1e-6), c.use_linear_projection
        self.proj_in, self.proj_out = (
            nn.Linear(width, width) if self.linear else nn.Conv2d(width, width, 1) for _ in range(2))
        self.transformer_blocks = [TransformerBlock(width, heads, c.cross_attention_dim) for _ in range(depth)]

    def __call__(self, x: Tensor, context: Tensor) -> Tensor:
        def pixels(t: Tensor) -> Tensor:
            return t.flatten(2).transpose(1, 2)

        def image(t: Tensor) -> Tensor:
            return t.transpose(1, 2).reshape(x.shape)
        y = self.norm(x)
        y = self.proj_in(pixels(y)) if self.linear else pixels(self.proj_in(y))
        for block in self.transformer_blocks:
            y = block(y, context)
        return x + (image(self.proj_out(y)) if self.linear else self.proj_out(image(y)))


class Downsample:
    def __init__(self, width: int) -> None:
        self.conv = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.conv(x)


class Upsample:
    def __init__(self, width: int) -> None:
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.conv(x.interpolate((2 * x.shape[2], 2 * x.shape[3]), mode="nearest"))


class Block:
    """Resnets from inputs[i] to `width` channels, each with a transformer after it where depth is not 0."""

    def __init__(self, inputs: list[int], width: int, heads: int, depth: int, c: UNetConfig) -> None:
        time = 4 * c.block_out_channels[0]
        self.resnets = [ResnetBlock(i, width, c.norm_num_groups, c.norm_eps, time) for i in inputs]
        self.attentions = [Transformer2D(width, heads, depth, c) for _ in inputs] if depth else []

    def layer(self, i: int, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        x = self.resnets[i](x, time)
        return self.attentions[i](x, context) if self.attentions else x


class DownBlock(Block):
    """x and the skips so far to x, with one more skip for each of its layers."""

    def __init__(self, inputs: list[int], width: int, heads: int, depth: int, last: bool, c: UNetConfig) -> None:
        super().__init__(inputs, width, heads, depth, c)
        self.downsamplers = [] if last else [Downsample(width)]

    def __call__(self, x: Tensor, skips: list[Tensor], time: Tensor, context: Tensor) -> Tensor:
        for i in range(len(self.resnets)):
            x = self.layer(i, x, time, context)
            skips.append(x)
        for smaller in self.downsamplers:
            x = smaller(x)
            skips.append(x)
        return x


class UpBlock(Block):
    """x and the skips so far to x; each of its layers takes the last skip."""

    def __init__(self, inputs: list[int], width: int, heads: int, depth: int, last: bool, c: UNetConfig) -> None:
        super().__init__(inputs, width, heads, depth, c)
        self.upsamplers = [] if last else [Upsample(width)]

    def __call__(self, x: Tensor, skips: list[Tensor], time: Tensor, context: Tensor) -> Tensor:
        for i in range(len(self.resnets)):
            x = self.layer(i, x.cat(skips.pop(), dim=1), time, context)
        return x.sequential(self.upsamplers)


class MidBlock(Block):
    """Two resnets around a transformer."""

    def __init__(self, width: int, heads: int, depth: int, c: UNetConfig) -> None:
        super().__init__([width, width], width, heads, depth, c)
        self.attentions.pop()

    def __call__(self, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        return self.resnets[1](self.layer(0, x, time, context), time)


class UNet:
    """latents (batch, channels, height, width) at time (batch) on a text (batch, positions, cross_attention_dim) to
    noise of the latents' shape. SDXL adds the text as a whole, `pooled`, and `sizes` (batch, 6): of the original, where
    it was cropped, of the picture, each height first."""

    def __init__(self, config: UNetConfig = UNetConfig()) -> None:
        self.config = c = config
        widths, time = c.block_out_channels, 4 * c.block_out_channels[0]
        self.conv_in = nn.Conv2d(c.in_channels, widths[0], 3, padding=1)
        self.time_embedding = TimestepEmbedding(widths[0], time)
        if c.addition_embed_type:
            self.add_embedding = TimestepEmbedding(c.projection_class_embeddings_input_dim, time)
        heads, depths = c.each(c.attention_head_dim), c.each(c.transformer_layers_per_block)
        self.down_blocks, self.up_blocks = [], []
        skips, last = [widths[0]], len(widths) - 1
        for i, (kind, width) in enumerate(zip(c.down_block_types, widths)):
            inputs = [skips[-1]] + [width] * (c.layers_per_block - 1)
            depth = depths[i] if "CrossAttn" in kind else 0
            self.down_blocks.append(DownBlock(inputs, width, heads[i], depth, i == last, c))
            skips += [width] * (c.layers_per_block + (i < last))
        self.mid_block, above = MidBlock(widths[-1], heads[-1], depths[-1], c), widths[-1]
        for kind, i in zip(c.up_block_types, reversed(range(len(widths)))):
            inputs = [x + skips.pop() for x in [above] + [widths[i]] * c.layers_per_block]
            depth, above = depths[i] if "CrossAttn" in kind else 0, widths[i]
            self.up_blocks.append(UpBlock(inputs, widths[i], heads[i], depth, i == 0, c))
        self.conv_norm_out = nn.GroupNorm(c.norm_num_groups, widths[0], c.norm_eps)
        self.conv_out = nn.Conv2d(widths[0], c.out_channels, 3, padding=1)

    @property
    def factor(self) -> int:
        """What the sides of latents are multiples of."""
        return 2 ** (len(self.config.block_out_channels) - 1)

    def _time(self, time: Tensor, pooled: Tensor | None, sizes: Tensor | None) -> Tensor:
        embedded = self.time_embedding(sinusoids(time, self.config.block_out_channels[0]))
        if pooled is None or sizes is None:
            return embedded
        added = sinusoids(sizes, self.config.addition_time_embed_dim).flatten(1)
        return embedded + self.add_embedding(pooled.cat(added, dim=1))

    def __call__(self, x: Tensor, time: Tensor, text: Tensor, pooled: Tensor | None = None,
                 sizes: Tensor | None = None) -> Tensor:
        now, x = self._time(time, pooled, sizes), self.conv_in(x)
        skips = [x]
        for down in self.down_blocks:
            x = down(x, skips, now, text)
        x = self.mid_block(x, now, text)
        for up in self.up_blocks:
            x = up(x, skips, now, text)
        return self.conv_out(self.conv_norm_out(x).silu())

    @classmethod
    def from_folder(cls, folder: str | Path) -> "UNet":
        return checkpoint.load(cls(checkpoint.configured(UNetConfig, checkpoint.read_json(folder, "config.json"))), folder)
