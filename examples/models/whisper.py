"""Whisper: an encoder that listens to 30 seconds of sound and a decoder that writes what was said.

Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision". Names of parameters are those of
transformers' WhisperModel; transcriber.py turns what this computes into text.
"""
from dataclasses import dataclass
from pathlib import Path

from weft import Tensor, nn

from models import audio, checkpoint
from models.transformer import Attention, activation, join_heads, split_heads

RATE, FRAME, HOP = 16000, 400, 160  # samples a second, in a spectrum, from one to the next: preprocessor_config.json
SECONDS_PER_POSITION = 2 * HOP / RATE


@dataclass
class WhisperConfig:
    """The defaults are whisper-tiny's: https://huggingface.co/openai/whisper-tiny/blob/main/config.json"""
    vocab_size: int = 51865
    num_mel_bins: int = 80
    d_model: int = 384
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 1536
    max_source_positions: int = 1500
    max_target_positions: int = 448
    activation_function: str = "gelu"

    @property
    def samples(self) -> int:
        """How many are heard at a time: the second convolution makes a position of two spectra."""
        return 2 * self.max_source_positions * HOP


TINY = WhisperConfig(vocab_size=180, num_mel_bins=16, d_model=32, encoder_layers=2, encoder_attention_heads=4,
                     encoder_ffn_dim=64, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64,
                     max_source_positions=50, max_target_positions=32)

RENAMED = {r"^model\.": ""}


class CachedAttention(Attention):
    """One more token for each row: its key and value join those of the tokens before it."""

    def __call__(self, x: Tensor, position, keys: Tensor, values: Tensor) -> Tensor:
        keys[:, :, position:position + 1] = split_heads(self.k_proj(x), self.heads)
        values[:, :, position:position + 1] = split_heads(self.v_proj(x), self.heads)
        q = split_heads(self.q_proj(x), self.heads)
        seen = keys[:, :, :position + 1], values[:, :, :position + 1]
        return self.out_proj(join_heads(q.scaled_dot_product_attention(*seen)))


class CrossAttention(Attention):
    """Attention to what the encoder heard, which is one for all rows: they are queries of one batch."""

    def memory(self, heard: Tensor) -> tuple[Tensor, Tensor]:
        return split_heads(self.k_proj(heard), self.heads), split_heads(self.v_proj(heard), self.heads)

    def __call__(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        q = split_heads(self.q_proj(x.transpose(0, 1)), self.heads)
        return self.out_proj(join_heads(q.scaled_dot_product_attention(keys, values)).transpose(0, 1))


class Layer:
    """What both kinds of layers have: attention to themselves, two products, a norm before each."""

    def __init__(self, width: int, inner: int, attention: Attention, act: str) -> None:
        self.self_attn, self.self_attn_layer_norm = attention, nn.LayerNorm(width)
        self.fc1, self.fc2, self.activation = nn.Linear(width, inner), nn.Linear(inner, width), activation(act)
        self.final_layer_norm = nn.LayerNorm(width)

    def feed_forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.activation(self.fc1(self.final_layer_norm(x))))


class EncoderLayer(Layer):
    def __init__(self, c: WhisperConfig) -> None:
        attention = Attention(c.d_model, c.encoder_attention_heads, key_bias=False)
        super().__init__(c.d_model, c.encoder_ffn_dim, attention, c.activation_function)

    def __call__(self, x: Tensor) -> Tensor:
        return self.feed_forward(x + self.self_attn(self.self_attn_layer_norm(x)))


class DecoderLayer(Layer):
    def __init__(self, c: WhisperConfig) -> None:
        attention = CachedAttention(c.d_model, c.decoder_attention_heads, key_bias=False)
        super().__init__(c.d_model, c.decoder_ffn_dim, attention, c.activation_function)
        self.encoder_attn = CrossAttention(c.d_model, c.decoder_attention_heads, key_bias=False)
        self.encoder_attn_layer_norm = nn.LayerNorm(c.d_model)

    def __call__(self, x: Tensor, position, own: list[Tensor], memory: list[Tensor]) -> Tensor:
        x = x + self.self_attn(self.self_attn_layer_norm(x), position, *own)
        x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), *memory)
        return self.feed_forward(x)


class Encoder:
    """mel (batch, bins, spectra) to (batch, spectra / 2, width)."""

    def __init__(self, c: WhisperConfig) -> None:
        self.conv1 = nn.Conv1d(c.num_mel_bins, c.d_model, 3, padding=1)
        self.conv2 = nn.Conv1d(c.d_model, c.d_model, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(c.max_source_positions, c.d_model)
        self.layers = [EncoderLayer(c) for _ in range(c.encoder_layers)]
        self.layer_norm = nn.LayerNorm(c.d_model)

    def __call__(self, mel: Tensor) -> Tensor:
        x = self.conv2(self.conv1(mel).gelu("none")).gelu("none")
        x = x.transpose(1, 2) + self.embed_positions.weight
        return self.layer_norm(x.sequential(self.layers))


class Decoder:
    """The next token of each row, one at a time: tokens (rows, 1) at a position, which may be a Variable with a value,
    to logits (rows, vocabulary). cache: keys and values of each layer, which it writes; memory: what was heard."""

    def __init__(self, c: WhisperConfig) -> None:
        self.config = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.d_model)
        self.embed_positions = nn.Embedding(c.max_target_positions, c.d_model)
        self.layers = [DecoderLayer(c) for _ in range(c.decoder_layers)]
        self.layer_norm = nn.LayerNorm(c.d_model)

    def cache(self, rows: int) -> list[list[Tensor]]:
        c = self.config
        shape = (rows, c.decoder_attention_heads, c.max_target_positions, c.d_model // c.decoder_attention_heads)
        return [[Tensor.zeros(shape).contiguous().realize() for _ in range(2)] for _ in self.layers]

    def memory(self, heard: Tensor) -> list[list[Tensor]]:
        return [list(layer.encoder_attn.memory(heard)) for layer in self.layers]

    def __call__(self, tokens: Tensor, position, cache: list[list[Tensor]], memory: list[list[Tensor]]) -> Tensor:
        x = self.embed_tokens(tokens) + self.embed_positions.weight[position:position + 1]
        for layer, own, heard in zip(self.layers, cache, memory):
            x = layer(x, position, own, heard)
        return self.layer_norm(x)[:, 0] @ self.embed_tokens.weight.T


class Whisper:
    def __init__(self, config: WhisperConfig = WhisperConfig()) -> None:
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)

    def listen(self, samples: Tensor, filters: Tensor) -> list[list[Tensor]]:
        """What the decoder asks for of config.samples samples: keys and values for each of its layers."""
        mel = audio.log_mel(samples, filters, FRAME, HOP)
        return self.decoder.memory(self.encoder(mel.unsqueeze(0)))

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Whisper":
        config = checkpoint.configured(WhisperConfig, checkpoint.read_json(folder, "config.json"))
        return checkpoint.load(cls(config), folder, RENAMED)
