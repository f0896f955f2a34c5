"""Stable Diffusion 1 and XL: text encoders, UNet, autoencoder and a sampler, put together.

Rombach et al. 2022; Podell et al. 2023; guidance: Ho and Salimans 2022, "Classifier-Free Diffusion Guidance".
"""
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft import Tensor, TinyJit, dtypes

from models import checkpoint, clip, diffusion_unet as unet, samplers, vae


class StableDiffusion:
    """One text encoder and its tokenizer: Stable Diffusion 1. Two: XL."""

    def __init__(self, encoders: list[clip.TextEncoder], tokenizers: list[Any], net: unet.UNet, autoencoder: vae.VAE) -> None:
        self.encoders, self.tokenizers, self.unet, self.vae = encoders, tokenizers, net, autoencoder
        self.encode, self.step, self.draw = TinyJit(self.conditions), TinyJit(self.denoise), TinyJit(self.pixels)

    @property
    def is_xl(self) -> bool:
        return len(self.encoders) == 2

    @classmethod
    def from_folder(cls, folder: str | Path) -> "StableDiffusion":
        """A folder as diffusers saves it: unet, vae, text_encoder, tokenizer, in XL text_encoder_2 and tokenizer_2."""
        folder = Path(folder)
        prediction = checkpoint.read_json(folder / "scheduler", "scheduler_config.json", missing={"": ""})
        if prediction.get("prediction_type", "epsilon") != "epsilon":
            raise ValueError(f"{folder}: the model predicts {prediction['prediction_type']!r}; those that predict noise "
                             "(\"epsilon\") are supported")
        ends = [end for end in ("", "_2") if (folder / f"text_encoder{end}").is_dir()]
        return cls([clip.TextEncoder.from_folder(folder / f"text_encoder{end}") for end in ends],
                   [clip.read_tokenizer(folder / f"tokenizer{end}") for end in ends],
                   unet.UNet.from_folder(folder / "unet"), vae.VAE.from_folder(folder / "vae"))

    @classmethod
    def random(cls, size: str = "tiny") -> "StableDiffusion":
        """With weights that nobody has trained: "tiny", "tiny-xl", or the real widths, "sd" and "sdxl"."""
        if size not in SIZES:
            raise ValueError(f"configuration {size!r} is not known: one of {', '.join(SIZES)}")
        texts, net, autoencoder = SIZES[size]
        encoders = [clip.TextEncoder(config, projected=i == 1) for i, config in enumerate(texts)]
        return cls(encoders, [checkpoint.ByteTokenizer([c.bos_token_id], [c.eos_token_id], c.bos_token_id) for c in texts],
                   unet.UNet(net), vae.VAE(autoencoder))

    # ---- what is captured

    def conditions(self, ids: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        """Of (2, positions) tokens for each encoder, those of no text first, what the UNet is told: a state for each
        token, and in XL one for the whole text."""
        if not self.is_xl:
            return self.encoders[0](ids[0]), None
        (first, _), (second, pooled) = (encoder.penultimate(x) for encoder, x in zip(self.encoders, ids))
        return first.cat(second, dim=-1), pooled

    def denoise(self, x: Tensor, before: Tensor, fresh: Tensor, row: Tensor, guidance: Tensor, text: Tensor,
                pooled: Tensor | None, sizes: Tensor | None) -> tuple[Tensor, Tensor]:
        """One step of a sampler (samplers.py): what is like the text is away from what is like no text."""
        noise = self.unet(x.cat(x), row[0].expand(2), text, pooled, sizes)
        without, with_text = noise.chunk(2)
        noise = without + guidance * (with_text - without)
        return samplers.apply(row, x, noise, before, fresh)

    def pixels(self, latents: Tensor) -> Tensor:
        """uint8 (height, width, 3)."""
        image = self.vae.decode(latents)[0].permute(1, 2, 0)
        return ((image + 1) * 127.5).round().clamp(0, 255).cast(dtypes.uint8)

    # ---- a picture

    def ids(self, texts: list[str]) -> list[Tensor]:
        """For each encoder the tokens of the texts, cut or filled up to as many as it takes."""
        found = []
        for i, (encoder, tokenizer) in enumerate(zip(self.encoders, self.tokenizers)):
            length, rows = encoder.config.max_position_embeddings, []
            for text in texts:
                *row, end = tokenizer.encode(text)
                row = [*row[:length - 1], end]
                # The first encoder was trained with the end again and again after a text, the second with zeros.
                rows.append(row + [0 if i else end] * (length - len(row)))
            found.append(Tensor(rows, dtype=dtypes.int32))
        return found

    def generate(self, prompt: str, negative: str = "", steps: int = 25, guidance: float = 7.5, size: tuple[int, int] = (512, 512),
                 sampler: str = "dpmpp-2m", karras: bool = False, progress: Callable[[list], Iterator] = iter) -> Tensor:
        """uint8 (height, width, 3) of a size (height, width). The noise is that of Tensor.manual_seed()."""
        if any(side < 1 or side % (self.vae.factor * self.unet.factor) for side in size):
            raise ValueError(f"size {size[0]} x {size[1]}: give multiples of {self.vae.factor * self.unet.factor}")
        text, pooled = self.encode(self.ids([negative, prompt]))
        sizes = Tensor([[*size, 0, 0, *size]] * 2, dtype=dtypes.float32) if self.is_xl else None
        channels = self.vae.config.latent_channels
        x = Tensor.randn(1, channels, *(side // self.vae.factor for side in size)).realize()
        before, rows = Tensor.zeros(*x.shape).contiguous().realize(), samplers.table(sampler, steps, karras)
        strength = Tensor(guidance, dtype=dtypes.float32)
        for row in progress(rows):
            fresh = Tensor.randn(*x.shape).realize()
            x, before = self.step(x, before, fresh, Tensor(row, dtype=dtypes.float32), strength, text, pooled, sizes)
        return self.draw(x)


# Configurations of the text encoders, the UNet and the autoencoder.
SIZES: dict[str, tuple[list[clip.TextConfig], unet.UNetConfig, vae.VAEConfig]] = {
    "tiny": ([clip.TINY.text], unet.TINY, vae.TINY),
    "tiny-xl": ([clip.TINY.text, replace(clip.TINY.text, projection_dim=32)], unet.TINY_XL, vae.TINY),
    "sd": ([clip.TextConfig()], unet.UNetConfig(), vae.VAEConfig()),
    "sdxl": ([clip.TextConfig(), clip.BIG_G], unet.SDXL, vae.SDXL),
}
