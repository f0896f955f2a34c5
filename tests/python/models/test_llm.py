"""weft.llm against transformers: logits of small models of random weights, for a prompt and cached steps."""
import json

import numpy as np
import pytest

from weft.llm import Model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

PROMPT, STEPS, WINDOW = 76, 64, 24
SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=100,
             max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MOE = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48)
LATENT = dict(SIZES, num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, kv_lora_rank=16, qk_nope_head_dim=16,
              qk_rope_head_dim=8, v_head_dim=12, moe_intermediate_size=24, first_k_dense_replace=1, n_group=1, topk_group=1)


def rope(kind, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **more))


SHORT = dict(original_max_position_embeddings=32)
CASES = {
    "llama": ("Llama", SIZES, {}),
    "llama3": ("Llama", SIZES, dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                                    **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **SHORT))),
    "linear": ("Llama", SIZES, rope("linear", factor=3.0)),
    "yarn": ("Llama", SIZES, rope("yarn", factor=4.0, **SHORT)),
    "mistral": ("Mistral", SIZES, dict(sliding_window=WINDOW)),
    "qwen2": ("Qwen2", SIZES, {}),
    "qwen2_window": ("Qwen2", SIZES, dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)),
    "qwen3": ("Qwen3", SIZES, dict(head_dim=32)),
    "gpt2": ("GPT2", {}, dict(n_embd=64, n_layer=3, n_head=4, vocab_size=100, n_positions=512, bos_token_id=1, eos_token_id=2)),
    "gemma": ("Gemma", SIZES, dict(head_dim=32)),
    "gemma2": ("Gemma2", SIZES, dict(head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=20)),
    "gemma3": ("Gemma3Text", dict(SIZES, num_hidden_layers=7),
               dict(head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=20, rope_parameters={
                   "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                   "sliding_attention": dict(rope_type="default", rope_theta=10000.0)})),
    "phi3": ("Phi3", SIZES, dict(original_max_position_embeddings=64, sliding_window=40,
                                 **rope("longrope", factor=8.0, long_factor=[1 + 0.1 * i for i in range(8)],
                                        short_factor=[1 + 0.02 * i for i in range(8)], original_max_position_embeddings=64))),
    "mixtral": ("Mixtral", SIZES, dict(num_local_experts=4)),
    "qwen2_moe": ("Qwen2Moe", SIZES, dict(MOE, shared_expert_intermediate_size=80)),
    "qwen3_moe": ("Qwen3Moe", SIZES, dict(MOE, head_dim=32, norm_topk_prob=True)),
    "olmoe": ("Olmoe", SIZES, dict(num_experts=8, num_experts_per_tok=3)),
    "gpt_oss": ("GptOss", SIZES, dict(num_local_experts=4, num_experts_per_tok=2, head_dim=32, sliding_window=WINDOW)),
    "deepseek": ("DeepseekV2", LATENT, dict(q_lora_rank=24)),
    "deepseek_lite": ("DeepseekV2", LATENT, dict(q_lora_rank=None, **rope("yarn", factor=4.0, mscale=0.7, mscale_all_dim=0.9, **SHORT))),
}


def random_model(kind, sizes, options):
    torch.manual_seed(1)
    config = getattr(transformers, kind + "Config")(**sizes, **options)
    config._attn_implementation = "eager"
    name = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}.get(kind, kind + "ForCausalLM")
    model = getattr(transformers, name)(config).eval().float()
    with torch.no_grad():
        for key, p in model.named_parameters():
            norm = "norm" in key and p.dim() == 1 and "Gemma" not in kind  # Gemma adds the 1 itself
            p.copy_(torch.randn_like(p) * (0.12 if p.dim() > 1 else 0.3) + float(norm))
    return model


def saved(model, folder):
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(100)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    return str(folder)


@pytest.mark.parametrize("case", CASES)
def test_logits(case, tmp_path):
    model = random_model(*CASES[case])
    path = saved(model, tmp_path)
    tokens = torch.randint(3, 100, (1, PROMPT + STEPS))
    with torch.no_grad():
        out = model(tokens[:, :PROMPT], use_cache=True)
        wanted = [out.logits[0]]
        for i in range(PROMPT, PROMPT + STEPS):
            out = model(tokens[:, i:i + 1], past_key_values=out.past_key_values, use_cache=True)
            wanted.append(out.logits[0])
    wanted = torch.cat(wanted).numpy()
    ours = Model(path, context=256, cache="f32", factors="f32")
    got = ours.logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5
    text = ours.generate(tokens[0, :PROMPT].tolist(), max_tokens=STEPS, temperature=0, ignore_end=True)
    with torch.no_grad():
        greedy = model.generate(tokens[:, :PROMPT], max_new_tokens=STEPS, do_sample=False, eos_token_id=None)[0, PROMPT:]
    assert ours.encode(text) == greedy.tolist()


def test_bf16(tmp_path):
    """Weights stay bf16 in memory; sums are f32's."""
    model = random_model(*CASES["qwen3"]).bfloat16()
    path = saved(model, tmp_path)
    tokens = list(range(3, 40))
    exact = type(model).from_pretrained(path, dtype=torch.float32)  # not model.float(): its rotary frequencies were rounded, too
    with torch.no_grad():
        wanted = exact(torch.tensor([tokens])).logits[0].numpy()
    got = Model(path, context=64, cache="f32", factors="f32").logits(tokens).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5


def test_streams(tmp_path):
    model = Model(saved(random_model(*CASES["llama"]), tmp_path), context=128, slots=2)
    options = dict(max_tokens=12, ignore_end=True, seed=3)
    whole = [model.generate(f"w{i} w5 w9", **options) for i in (4, 7)]
    a, b = (model.stream(f"w{i} w5 w9", **options) for i in (4, 7))
    first = next(a)
    assert "".join(b) == whole[1]
    assert first + "".join(a) == whole[0]
    cut = model.stream("w4 w5 w9", max_tokens=100, ignore_end=True)
    next(cut)
    cut.close()
    assert model.generate("w4 w5 w9", **options) == whole[0]
    assert model.counters["running"] == 0


def test_errors(tmp_path):
    path = saved(random_model(*CASES["llama"]), tmp_path)
    model = Model(path, context=64)
    with pytest.raises(ValueError, match="the prompt has no tokens"):
        model.generate([])
    with pytest.raises(ValueError, match="token 100 is none of the model's 100"):
        model.generate([100])
    with pytest.raises(ValueError, match="a cache of 'q8'"):
        Model(path, cache="q8")
    with pytest.raises(ValueError, match="no factors 'int8': f32, bf16, q8, or auto"):
        Model(path, factors="int8")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="num_hidden_layers"):
        Model(path)
