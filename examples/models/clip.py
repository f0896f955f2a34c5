"""CLIP: a tower for texts and one for images that meet in one space, and the text encoders of Stable Diffusion.

Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision". Names of parameters are
those of transformers' CLIPModel, CLIPTextModel and CLIPTextModelWithProjection.
"""
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import Tensor, nn

from models import checkpoint
from models.transformer import Attention, activation


@dataclass
class TextConfig:
    """The defaults are clip-vit-large-patch14's, which Stable Diffusion 1 uses:
    https://huggingface.co/openai/clip-vit-large-patch14/blob/main/config.json"""
    vocab_size: int = 49408
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 77
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    bos_token_id: int = 49406
    eos_token_id: int = 49407
    projection_dim: int = 768


# The second text encoder of SDXL:
# https://huggingface.co/stabilityai/stable-diffusion-xl-base-1.0/blob/main/text_encoder_2/config.json
BIG_G = TextConfig(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                   hidden_act="gelu", projection_dim=1280)


@dataclass
class VisionConfig:
    """The defaults are clip-vit-base-patch32's:
    https://huggingface.co/openai/clip-vit-base-patch32/blob/main/config.json"""
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int = 224
    patch_size: int = 32
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5


@dataclass
class ClipConfig:
    text: TextConfig = field(default_factory=lambda: TextConfig(
        hidden_size=512, intermediate_size=2048, num_attention_heads=8, projection_dim=512))
    vision: VisionConfig = field(default_factory=VisionConfig)
    projection_dim: int = 512


TINY = ClipConfig(
    TextConfig(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=24, bos_token_id=97, eos_token_id=98),
    VisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                 patch_size=8),
    projection_dim=16)


class MLP:
    def __init__(self, width: int, inner: int, act: str) -> None:
        self.fc1, self.fc2, self.activation = nn.Linear(width, inner), nn.Linear(inner, width), activation(act)

    def __call__(self, x: Tensor) -> Tensor:
        return self.fc2(self.activation(self.fc1(x)))


class Layer:
    def __init__(self, config: TextConfig | VisionConfig) -> None:
        width = config.hidden_size
        self.self_attn = Attention(width, config.num_attention_heads)
        self.layer_norm1 = nn.LayerNorm(width, config.layer_norm_eps)
        self.mlp = MLP(width, config.intermediate_size, config.hidden_act)
        self.layer_norm2 = nn.LayerNorm(width, config.layer_norm_eps)

    def __call__(self, x: Tensor, causal: bool) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x), causal)
        return x + self.mlp(self.layer_norm2(x))


class Encoder:
    def __init__(self, config: TextConfig | VisionConfig) -> None:
        self.layers = [Layer(config) for _ in range(config.num_hidden_layers)]

    def __call__(self, x: Tensor, causal: bool = False) -> list[Tensor]:
        """x and what each layer made of it."""
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1], causal))
        return states


class TextEmbeddings:
    def __init__(self, config: TextConfig) -> None:
        self.token_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embedding = nn.Embedding(config.max_position_embeddings, config.hidden_size)

    def __call__(self, ids: Tensor) -> Tensor:
        return self.token_embedding(ids) + self.position_embedding.weight[:ids.shape[1]]


class TextTransformer:
    """ids (batch, positions) to the states before the first and after each layer; every token sees those before it."""

    def __init__(self, config: TextConfig) -> None:
        self.eos_token_id = config.eos_token_id
        self.embeddings, self.encoder = TextEmbeddings(config), Encoder(config)
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def __call__(self, ids: Tensor) -> list[Tensor]:
        return self.encoder(self.embeddings(ids), causal=True)

    def pooled(self, ids: Tensor, last: Tensor) -> Tensor:
        """(batch, width): the normalized state of the last layer at each text's end."""
        # Configurations from before transformers 4.31 say 2; the end is the largest number of the vocabulary there.
        end = ids.argmax(1) if self.eos_token_id == 2 else (ids == self.eos_token_id).int().argmax(1)
        return self.final_layer_norm(last)[Tensor.arange(ids.shape[0]), end]


class TextEncoder:
    """The text tower by itself, with a projection (SDXL's second) or without."""

    def __init__(self, config: TextConfig = TextConfig(), projected: bool = False) -> None:
        self.config = config
        self.text_model = TextTransformer(config)
        if projected:
            self.text_projection = nn.Linear(config.hidden_size, config.projection_dim, bias=False)

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, positions, width), normalized: what Stable Diffusion 1 conditions on."""
        return self.text_model.final_layer_norm(self.text_model(ids)[-1])

    def penultimate(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """What the last layer but one gives, and the projection of the whole text: what SDXL conditions on. Without a
        projection the second is the state at the text's end."""
        states = self.text_model(ids)
        pooled = self.text_model.pooled(ids, states[-1])
        return states[-2], self.text_projection(pooled) if hasattr(self, "text_projection") else pooled

    @classmethod
    def from_folder(cls, folder: str | Path) -> "TextEncoder":
        values = checkpoint.read_json(folder, "config.json")
        projected = "CLIPTextModelWithProjection" in values.get("architectures", [])
        return checkpoint.load(cls(checkpoint.configured(TextConfig, values), projected), folder)


class VisionEmbeddings:
    def __init__(self, config: VisionConfig) -> None:
        width, patch = config.hidden_size, config.patch_size
        self.class_embedding = Tensor.normal(width, std=width ** -0.5)
        self.patch_embedding = nn.Conv2d(config.num_channels, width, patch, stride=patch, bias=False)
        self.position_embedding = nn.Embedding((config.image_size // patch) ** 2 + 1, width)

    def __call__(self, images: Tensor) -> Tensor:
        patches = self.patch_embedding(images).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(images.shape[0], 1, -1)
        return first.cat(patches, dim=1) + self.position_embedding.weight


class VisionTransformer:
    """images (batch, channels, size, size) to the normalized state of the class token, (batch, width)."""

    def __init__(self, config: VisionConfig) -> None:
        self.embeddings, self.encoder = VisionEmbeddings(config), Encoder(config)
        self.pre_layrnorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)  # spelt so in every checkpoint
        self.post_layernorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def __call__(self, images: Tensor) -> Tensor:
        return self.post_layernorm(self.encoder(self.pre_layrnorm(self.embeddings(images)))[-1][:, 0])


class Clip:
    """Both towers. Features of either are vectors of length 1."""

    def __init__(self, config: ClipConfig = ClipConfig()) -> None:
        self.config = config
        self.text_model, self.vision_model = TextTransformer(config.text), VisionTransformer(config.vision)
        self.text_projection = nn.Linear(config.text.hidden_size, config.projection_dim, bias=False)
        self.visual_projection = nn.Linear(config.vision.hidden_size, config.projection_dim, bias=False)
        self.logit_scale = Tensor(2.6592)  # the logarithm of 1 / 0.07

    def text_features(self, ids: Tensor) -> Tensor:
        return self.text_projection(self.text_model.pooled(ids, self.text_model(ids)[-1])).normalize(dim=-1)

    def image_features(self, images: Tensor) -> Tensor:
        return self.visual_projection(self.vision_model(images)).normalize(dim=-1)

    def __call__(self, ids: Tensor, images: Tensor) -> Tensor:
        """(images, texts): how well each fits each; softmax over the texts gives probabilities."""
        return self.image_features(images) @ self.text_features(ids).T * self.logit_scale.exp()

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Clip":
        values = checkpoint.read_json(folder, "config.json")
        # Only what differs from ViT-B/32's configuration is in the file.
        default = ClipConfig()
        text = checkpoint.configured(TextConfig, {**vars(default.text), **values.get("text_config", {})})
        vision = checkpoint.configured(VisionConfig, {**vars(default.vision), **values.get("vision_config", {})})
        config = ClipConfig(text, vision, values.get("projection_dim", default.projection_dim))
        return checkpoint.load(cls(config), folder)


# ---- texts

FIRST, LAST = "<|startoftext|>", "<|endoftext|>"
WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def read_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a folder, which in those of Stable Diffusion has no tokenizer.json but what it is made of."""
    folder = Path(folder)
    if (folder / "tokenizer.json").is_file() or not (folder / "vocab.json").is_file():
        return checkpoint.read_tokenizer(folder)
    from weft import text
    merges = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
    merges = [line for line in merges if line and not line.startswith("#version")]
    return text.Tokenizer.from_json(json.dumps(tokenizer_of(checkpoint.read_json(folder, "vocab.json"), merges)))


def tokenizer_of(vocabulary: dict[str, int], merges: list[str]) -> dict[str, Any]:
    """CLIP's tokenizer as tokenizer.json has it: lower case, words and signs, pairs of bytes that are merged, the last
    piece of a word marked (https://github.com/openai/CLIP, simple_tokenizer.py)."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": vocabulary[token], "content": token, **flags} for token in (FIRST, LAST)],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Removed", "invert": True}, byte_level]},
        "post_processor": {"type": "RobertaProcessing", "sep": [LAST, vocabulary[LAST]],
                           "cls": [FIRST, vocabulary[FIRST]], "trim_offsets": False, "add_prefix_space": False},
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": LAST, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "</w>", "fuse_unk": False, "vocab": vocabulary, "merges": merges}}
