"""BERT, and sentence embeddings as MiniLM and its kin make them.

Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"; Reimers and
Gurevych 2019, "Sentence-BERT". Names of parameters are those of transformers' BertModel.
"""
from dataclasses import dataclass
from pathlib import Path

from weft import Tensor, dtypes, nn

from models import checkpoint
from models.transformer import activation, attend


@dataclass
class BertConfig:
    """The defaults are bert-base-uncased's: https://huggingface.co/google-bert/bert-base-uncased/blob/main/config.json"""
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12


# https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/blob/main/config.json
MINILM = BertConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536)
TINY = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                  max_position_embeddings=64)

# A model with a head has its BertModel under "bert."; the first files say gamma and beta.
RENAMED = {r"^bert\.": "", r"\.gamma$": ".weight", r"\.beta$": ".bias"}


class Embeddings:
    def __init__(self, config: BertConfig) -> None:
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def __call__(self, ids: Tensor) -> Tensor:
        x = self.word_embeddings(ids) + self.position_embeddings.weight[:ids.shape[1]]
        return self.LayerNorm(x + self.token_type_embeddings.weight[0])


class SelfAttention:
    def __init__(self, config: BertConfig) -> None:
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        return attend(self.query(x), self.key(x), self.value(x), self.heads, mask)


class Output:
    """A product, the sum with what went in, a norm."""

    def __init__(self, inputs: int, config: BertConfig) -> None:
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def __call__(self, x: Tensor, before: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + before)


class Attention:
    def __init__(self, config: BertConfig) -> None:
        self.self = SelfAttention(config)
        self.output = Output(config.hidden_size, config)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.output(self.self(x, mask), x)


class Intermediate:
    def __init__(self, config: BertConfig) -> None:
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = activation(config.hidden_act)

    def __call__(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class Layer:
    def __init__(self, config: BertConfig) -> None:
        self.attention, self.intermediate = Attention(config), Intermediate(config)
        self.output = Output(config.intermediate_size, config)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder:
    def __init__(self, config: BertConfig) -> None:
        self.layer = [Layer(config) for _ in range(config.num_hidden_layers)]

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Bert:
    """ids (batch, positions) and whether they count, bool of the same shape, to (batch, positions, hidden_size)."""

    def __init__(self, config: BertConfig = BertConfig()) -> None:
        self.config = config
        self.embeddings, self.encoder = Embeddings(config), Encoder(config)

    def __call__(self, ids: Tensor, counts: Tensor) -> Tensor:
        return self.encoder(self.embeddings(ids), counts[:, None, None, :])

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Bert":
        config = checkpoint.configured(BertConfig, checkpoint.read_json(folder, "config.json"))
        return checkpoint.load(cls(config), folder, RENAMED)


@dataclass
class Pooling:
    """How the states of a text's tokens become one vector: 1_Pooling/config.json of sentence-transformers."""
    pooling_mode_cls_token: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_tokens: bool = True
    normalize: bool = True

    def __post_init__(self) -> None:
        if self.pooling_mode_cls_token + self.pooling_mode_max_tokens + self.pooling_mode_mean_tokens != 1:
            raise ValueError("1_Pooling/config.json: one of the modes cls_token, max_tokens and mean_tokens is "
                             "supported at a time")

    def __call__(self, x: Tensor, counts: Tensor) -> Tensor:
        """(batch, positions, width) to (batch, width)."""
        mask = counts[:, :, None]
        if self.pooling_mode_cls_token:
            pooled = x[:, 0]
        elif self.pooling_mode_max_tokens:
            pooled = mask.where(x, -dtypes.float32.max).max(1)
        else:
            pooled = mask.where(x, 0.0).sum(1) / mask.sum(1)
        return pooled.normalize(dim=-1) if self.normalize else pooled

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Pooling":
        """A folder without modules.json is a BERT that nobody has trained for this: the mean, normalized."""
        modules = checkpoint.read_json(folder, "modules.json", missing=[{"type": "Normalize"}])
        values = checkpoint.read_json(folder, "1_Pooling/config.json", missing={})
        normalize = any(module["type"].endswith("Normalize") for module in modules)
        return checkpoint.configured(cls, {**values, "normalize": normalize})
