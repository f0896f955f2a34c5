"""Multi-head attention and the layers of transformers (Vaswani et al. 2017), by PyTorch's names."""
import math
from typing import Any

from weft import Tensor, dtypes
from weft._core import ArgumentError
from weft.nn.layers import LayerNorm, Linear

__all__ = ["MultiheadAttention", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]


def _added(mask: Tensor) -> Tensor:
    """What is added to scores: PyTorch's bool masks are True where nothing is seen."""
    return mask.where(-math.inf, 0.0) if mask.dtype == dtypes.bool else mask


def _mask(attn_mask: Tensor | None, keys: Tensor | None, batch: int, heads: int) -> Tensor | None:
    """Of PyTorch's two masks the sum, (batch or 1, heads or 1, queries or 1, keys)."""
    found = None if attn_mask is None else _added(attn_mask)
    if found is not None and found.ndim == 3:
        found = found.reshape(batch, heads, *found.shape[1:])
    if keys is None:
        return found
    padding = _added(keys).reshape(batch, 1, 1, -1)
    return padding if found is None else found + padding


class MultiheadAttention:
    """query (queries, batch, dim), key and value (keys, batch, dim) to (queries, batch, dim), and the mean of the
    weights over the heads (batch, queries, keys) where they are needed. Bool masks are True where nothing is seen,
    as in PyTorch: attn_mask (queries, keys) or (batch * heads, queries, keys), key_padding_mask (batch, keys).
    in_proj_weight starts Glorot uniform, biases with zeros."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(f"[MultiheadAttention] dim must be a multiple of heads: got {embed_dim} and {num_heads}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Tensor.glorot_uniform(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = Tensor.glorot_uniform(embed_dim, embed_dim)
            self.k_proj_weight = Tensor.glorot_uniform(embed_dim, self.kdim)
            self.v_proj_weight = Tensor.glorot_uniform(embed_dim, self.vdim)
        self.in_proj_bias = Tensor.zeros(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = Tensor.zeros(embed_dim)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        joint = hasattr(self, "in_proj_weight")
        if joint and query is key and key is value:  # one product where three would be
            return query.linear(self.in_proj_weight.T, self.in_proj_bias).chunk(3, dim=-1)
        weights = self.in_proj_weight.chunk(3) if joint else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [x.linear(w.T, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, heads, positions, dim / heads)."""
        x = x if self.batch_first else x.transpose(0, 1)
        return x.reshape(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                 need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if not query.ndim == key.ndim == value.ndim == 3:
            raise ArgumentError("[MultiheadAttention] inputs have three axes (positions, batch, dim), got shapes "
                                f"{query.shape}, {key.shape}, {value.shape}")
        q, k, v = map(self._heads, self._project(query, key, value))
        mask = _mask(attn_mask, key_padding_mask, int(q.shape[0]), self.num_heads)
        if is_causal and attn_mask is None:
            unseen = Tensor.ones(q.shape[2], k.shape[2], dtype=dtypes.bool).triu(1)
            mask = _added(unseen) if mask is None else mask + _added(unseen)
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.embed_dim // self.num_heads)
            seen = (scores if mask is None else scores + mask).softmax(-1)
            weights = seen.mean(1) if average_attn_weights else seen
            y = seen.dropout(self.dropout) @ v
        else:
            y = q.scaled_dot_product_attention(k, v, attn_mask=mask, dropout_p=self.dropout)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        return y if self.batch_first else y.transpose(0, 1), weights


_ACTIVATIONS = {"relu": Tensor.relu, "gelu": lambda x: x.gelu("none")}


class _TransformerLayer:
    """What both kinds of layers share: two Linears, norms on either side of sums, dropout before them."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True) -> None:
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ArgumentError(f"[transformer] activation {activation!r}: use \"relu\", \"gelu\" or a function")
        self.activation, self.dropout, self.norm_first = activation, dropout, norm_first
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward, bias), Linear(dim_feedforward, d_model, bias)
        self.norm1, self.norm2 = (LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2))

    def _residual(self, x: Tensor, norm: LayerNorm, part: Any) -> Tensor:
        if self.norm_first:
            return x + part(norm(x)).dropout(self.dropout)
        return norm(x + part(x).dropout(self.dropout))

    def _feed_forward(self, x: Tensor) -> Tensor:
        activation = _ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        return self.linear2(activation(self.linear1(x)).dropout(self.dropout))

    def _attention(self, attention: MultiheadAttention, mask: Any, padding: Any, causal: bool,
                   memory: Tensor | None = None) -> Any:
        def part(x: Tensor) -> Tensor:
            y = x if memory is None else memory
            return attention(x, y, y, padding, need_weights=False, attn_mask=mask, is_causal=causal)[0]
        return part


class TransformerEncoderLayer(_TransformerLayer):
    """Attention of x with itself, then two Linears, each with a norm and added to what it took: x (positions, batch,
    dim) to the same shape."""

    def __call__(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                 is_causal: bool = False) -> Tensor:
        x = self._residual(src, self.norm1, self._attention(self.self_attn, src_mask, src_key_padding_mask, is_causal))
        return self._residual(x, self.norm2, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    """The same with an attention to `memory` (positions of its own, batch, dim) in between."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)

    def __call__(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                 tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                 tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        own = self._attention(self.self_attn, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        others = self._attention(self.multihead_attn, memory_mask, memory_key_padding_mask, memory_is_causal, memory)
        x = self._residual(tgt, self.norm1, own)
        x = self._residual(x, self.norm2, others)
        return self._residual(x, self.norm3, self._feed_forward)


class _Stack:
    """num_layers copies of a layer, of the same values as in PyTorch, and a norm after the last."""

    def __init__(self, layer: Any, num_layers: int, norm: Any = None) -> None:
        import copy
        if num_layers < 1:
            raise ArgumentError(f"[transformer] {num_layers} layers: give at least 1")
        self.layers, self.num_layers, self.norm = [copy.deepcopy(layer) for _ in range(num_layers)], num_layers, norm

    def _run(self, x: Tensor, call: Any) -> Tensor:
        for layer in self.layers:
            x = call(layer, x)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Encoder layers one after the other."""

    def __call__(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                 is_causal: bool = False) -> Tensor:
        return self._run(src, lambda layer, x: layer(x, mask, src_key_padding_mask, is_causal))


class TransformerDecoder(_Stack):
    """Decoder layers one after the other, all of which see `memory`."""

    def __call__(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                 tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                 tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        return self._run(tgt, lambda layer, x: layer(
            x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal))
