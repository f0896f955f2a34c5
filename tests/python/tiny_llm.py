"""A llama of random weights in a folder of Hugging Face's, for tests that need no other package."""
import json

import numpy as np

from weft import Tensor
from weft.nn.state import safe_save

WIDTH, FFN, HEADS, LAYERS, WORDS = 64, 96, 4, 2, 100


def tiny_llama(folder, context=512):
    """Its words are w0 to w99."""
    rng = np.random.default_rng(0)
    shapes = {"model.embed_tokens": (WORDS, WIDTH), "lm_head": (WORDS, WIDTH)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        shapes |= {f"{name}self_attn.{p}_proj": (WIDTH, WIDTH) for p in "qkvo"}
        shapes |= {f"{name}mlp.{p}_proj": (FFN, WIDTH) for p in ("gate", "up")} | {f"{name}mlp.down_proj": (WIDTH, FFN)}
        shapes |= {f"{name}{p}_layernorm": (WIDTH,) for p in ("input", "post_attention")}
    shapes["model.norm"] = (WIDTH,)
    safe_save({f"{name}.weight": Tensor((rng.standard_normal(s) * 0.2 + (len(s) == 1)).astype(np.float32))
               for name, s in shapes.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(
        model_type="llama", hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, vocab_size=WORDS, max_position_embeddings=context, rms_norm_eps=1e-5, eos_token_id=2,
        rope_theta=10000.0, tie_word_embeddings=False)))
    (folder / "tokenizer.json").write_text(json.dumps({
        "model": {"type": "WordLevel", "vocab": {f"w{i}": i for i in range(WORDS)}, "unk_token": "w0"},
        "pre_tokenizer": {"type": "Whitespace"}}))
    return str(folder)
