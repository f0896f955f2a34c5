"""ViT: an image is worth 16 x 16 words. Dosovitskiy et al. 2020, arXiv:2010.11929.

    model = ViT(CONFIGS["vit_b_16"])
    logits = model(pictures)  # (n, 3, size, size) to (n, classes)

Weights have torchvision's names.
"""
from dataclasses import dataclass

from weft import Tensor, nn


@dataclass(frozen=True)
class Config:
    patch: int
    layers: int
    heads: int
    dim: int
    hidden: int
    resize: int = 256
    crop: int = 224
    dropout: float = 0.0
    classes: int = 1000


CONFIGS = {
    "vit_b_16": Config(16, 12, 12, 768, 3072),  # table 1 of the paper
    "vit_b_32": Config(32, 12, 12, 768, 3072),
    "vit_l_16": Config(16, 24, 16, 1024, 4096, resize=242),
    "vit_l_32": Config(32, 24, 16, 1024, 4096),
    "vit_s_16": Config(16, 12, 6, 384, 1536),  # Touvron et al. 2020, arXiv:2012.12877: the small and the tiny one
    "vit_ti_16": Config(16, 12, 3, 192, 768),
}


class Layer:
    """Attention of all patches with all, then two products, each of a norm and added."""

    def __init__(self, config: Config):
        self.ln_1, self.ln_2 = nn.LayerNorm(config.dim, 1e-6), nn.LayerNorm(config.dim, 1e-6)
        self.self_attention = nn.MultiheadAttention(config.dim, config.heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(config.dim, config.hidden), nn.GELU(), nn.Dropout(config.dropout),
                                 nn.Linear(config.hidden, config.dim), nn.Dropout(config.dropout))
        self.dropout = config.dropout

    def __call__(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y.dropout(self.dropout)
        return x + self.mlp(self.ln_2(x))


class Encoder:
    def __init__(self, config: Config):
        tokens = (config.crop // config.patch) ** 2 + 1
        self.pos_embedding = Tensor.normal(1, tokens, config.dim, std=0.02)
        self.layers = nn.Sequential({f"encoder_layer_{i}": Layer(config) for i in range(config.layers)})
        self.ln = nn.LayerNorm(config.dim, 1e-6)
        self.dropout = config.dropout

    def __call__(self, x):
        return self.ln(self.layers((x + self.pos_embedding).dropout(self.dropout)))


class ViT:
    def __init__(self, config: Config):
        self.conv_proj = nn.Conv2d(3, config.dim, config.patch, config.patch)
        self.class_token = Tensor.zeros(1, 1, config.dim)
        self.encoder = Encoder(config)
        self.heads = nn.Sequential({"head": nn.Linear(config.dim, config.classes)})

    def __call__(self, x: Tensor) -> Tensor:
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        first = self.class_token.expand(x.shape[0], -1, -1)
        return self.heads(self.encoder(first.cat(patches, dim=1))[:, 0])

    @staticmethod
    def renamed(name: str) -> str:
        """Names of the files that torchvision published as they are here."""
        return name.replace("mlp.linear_1", "mlp.0").replace("mlp.linear_2", "mlp.3")
