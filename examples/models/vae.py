"""The autoencoder of Stable Diffusion: pictures to latents an eighth of their size, and back.

Kingma and Welling 2013; Rombach et al. 2022. Names of parameters are those of diffusers' AutoencoderKL.
"""
from dataclasses import dataclass
from pathlib import Path

from weft import Tensor, nn

from models import checkpoint
from models.transformer import attend
from models.diffusion_unet import ResnetBlock, Upsample


@dataclass
class VAEConfig:
    """The defaults are those of Stable Diffusion 1.5; SDXL's differs in scaling_factor alone.
    https://huggingface.co/stable-diffusion-v1-5/stable-diffusion-v1-5/blob/main/vae/config.json"""
    in_channels: int = 3
    latent_channels: int = 4
    block_out_channels: tuple[int, ...] = (128, 256, 512, 512)
    layers_per_block: int = 2
    norm_num_groups: int = 32
    scaling_factor: float = 0.18215


# https://huggingface.co/stabilityai/stable-diffusion-xl-base-1.0/blob/main/vae/config.json
SDXL = VAEConfig(scaling_factor=0.13025)
TINY = VAEConfig(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)

EPS = 1e-6

# Names before diffusers 0.17.
RENAMED = {r"attentions\.0\.query\.": "attentions.0.to_q.", r"attentions\.0\.key\.": "attentions.0.to_k.",
           r"attentions\.0\.value\.": "attentions.0.to_v.", r"attentions\.0\.proj_attn\.": "attentions.0.to_out.0."}


class Attention:
    """Every pixel of (batch, channels, height, width) sees every other, with one head."""

    def __init__(self, width: int, groups: int) -> None:
        self.group_norm = nn.GroupNorm(groups, width, EPS)
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.to_out = [nn.Linear(width, width)]

    def __call__(self, x: Tensor) -> Tensor:
        pixels = self.group_norm(x).flatten(2).transpose(1, 2)
        seen = attend(self.to_q(pixels), self.to_k(pixels), self.to_v(pixels), heads=1)
        return x + self.to_out[0](seen).transpose(1, 2).reshape(x.shape)


class Downsample:
    """Half the size; the edge that the kernel hangs over is on the right and below."""

    def __init__(self, width: int) -> None:
        self.conv = nn.Conv2d(width, width, 3, stride=2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.conv(x.pad(((0, 0), (0, 0), (0, 1), (0, 1))))


class MidBlock:
    def __init__(self, width: int, groups: int) -> None:
        self.resnets = [ResnetBlock(width, width, groups, EPS) for _ in range(2)]
        self.attentions = [Attention(width, groups)]

    def __call__(self, x: Tensor) -> Tensor:
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Block:
    """Resnets, and a change of size after them except in the last block."""

    def __init__(self, inputs: int, width: int, layers: int, groups: int) -> None:
        self.resnets = [ResnetBlock(inputs if i == 0 else width, width, groups, EPS) for i in range(layers)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.resnets).sequential(getattr(self, "downsamplers", getattr(self, "upsamplers", [])))


class Encoder:
    def __init__(self, c: VAEConfig) -> None:
        widths, groups = c.block_out_channels, c.norm_num_groups
        self.conv_in = nn.Conv2d(c.in_channels, widths[0], 3, padding=1)
        self.down_blocks = [Block(inputs, width, c.layers_per_block, groups)
                            for inputs, width in zip((widths[0], *widths), widths)]
        for block, width in zip(self.down_blocks[:-1], widths):
            block.downsamplers = [Downsample(width)]
        self.mid_block = MidBlock(widths[-1], groups)
        self.conv_norm_out = nn.GroupNorm(groups, widths[-1], EPS)
        self.conv_out = nn.Conv2d(widths[-1], 2 * c.latent_channels, 3, padding=1)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(x).sequential(self.down_blocks))
        return self.conv_out(self.conv_norm_out(x).silu())


class Decoder:
    def __init__(self, c: VAEConfig) -> None:
        widths, groups = c.block_out_channels[::-1], c.norm_num_groups
        self.conv_in = nn.Conv2d(c.latent_channels, widths[0], 3, padding=1)
        self.mid_block = MidBlock(widths[0], groups)
        self.up_blocks = [Block(inputs, width, c.layers_per_block + 1, groups)
                          for inputs, width in zip((widths[0], *widths), widths)]
        for block, width in zip(self.up_blocks[:-1], widths):
            block.upsamplers = [Upsample(width)]
        self.conv_norm_out = nn.GroupNorm(groups, widths[-1], EPS)
        self.conv_out = nn.Conv2d(widths[-1], c.in_channels, 3, padding=1)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(x)).sequential(self.up_blocks)
        return self.conv_out(self.conv_norm_out(x).silu())


class VAE:
    def __init__(self, config: VAEConfig = VAEConfig()) -> None:
        self.config, channels = config, config.latent_channels
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.quant_conv = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.post_quant_conv = nn.Conv2d(channels, channels, 1)

    @property
    def factor(self) -> int:
        """How many times smaller latents are than pictures."""
        return 2 ** (len(self.config.block_out_channels) - 1)

    def encode(self, images: Tensor) -> Tensor:
        """Pictures (batch, 3, height, width) in [-1, 1] to the means of their latents, scaled."""
        return self.quant_conv(self.encoder(images)).chunk(2, dim=1)[0] * self.config.scaling_factor

    def decode(self, latents: Tensor) -> Tensor:
        """encode() undone."""
        return self.decoder(self.post_quant_conv(latents / self.config.scaling_factor))

    @classmethod
    def from_folder(cls, folder: str | Path) -> "VAE":
        config = checkpoint.configured(VAEConfig, checkpoint.read_json(folder, "config.json"))
        return checkpoint.load(cls(config), folder, RENAMED)
