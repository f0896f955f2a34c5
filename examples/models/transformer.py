"""What the transformers of this folder share: attention over heads, activations by name."""
from weft import Tensor, nn

# The names that config.json uses. https://huggingface.co/docs/transformers/internal/model_debugging_utils
ACTIVATIONS = {
    "gelu": lambda x: x.gelu("none"),
    "gelu_new": lambda x: x.gelu("tanh"),
    "quick_gelu": Tensor.quick_gelu,
    "relu": Tensor.relu,
    "silu": Tensor.silu,
}


def activation(name: str):
    """The function that a configuration names."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is not known: one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, positions, width) to (batch, heads, positions, width / heads)."""
    return x.reshape(*x.shape[:-1], heads, -1).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """split_heads() undone."""
    return x.transpose(1, 2).flatten(2)


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Attention (Vaswani et al. 2017) of queries (batch, n, width) to keys and values (batch, m, width). mask: bool,
    True where a key takes part, of a shape that expands to (batch, heads, n, m); causal: no query sees a later key."""
    q, k, v = (split_heads(x, heads) for x in (q, k, v))
    return join_heads(q.scaled_dot_product_attention(k, v, attn_mask=mask, is_causal=causal))


class Attention:
    """Attention with the names that CLIP and Whisper have for its products."""

    def __init__(self, width: int, heads: int, key_bias: bool = True) -> None:
        self.heads = heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width, bias=key_bias)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def __call__(self, x: Tensor, causal: bool = False) -> Tensor:
        return self.out_proj(attend(self.q_proj(x), self.k_proj(x), self.v_proj(x), self.heads, causal=causal))
