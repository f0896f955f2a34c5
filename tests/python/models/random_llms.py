"""Small language models of random weights in every family that weft has, made by transformers."""
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WINDOW = 24
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
    "llama_part": ("Llama", SIZES, rope("default", partial_rotary_factor=0.5)),  # which it does not heed
    "proportional": ("Llama", SIZES, rope("proportional", factor=3.0, partial_rotary_factor=0.4)),
    "mistral": ("Mistral", SIZES, dict(sliding_window=WINDOW)),
    "qwen2": ("Qwen2", SIZES, {}),
    "qwen2_window": ("Qwen2", SIZES, dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)),
    "qwen3": ("Qwen3", SIZES, dict(head_dim=32)),
    "gpt2": ("GPT2", {}, dict(n_embd=64, n_layer=3, n_head=4, vocab_size=100, n_positions=512, bos_token_id=1, eos_token_id=2)),
    "gpt2_scales": ("GPT2", {}, dict(n_embd=64, n_layer=3, n_head=4, vocab_size=100, n_positions=512, bos_token_id=1, eos_token_id=2,
                                     scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False)),
    "gpt2_relu": ("GPT2", {}, dict(n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=512, bos_token_id=1, eos_token_id=2,
                                   activation_function="relu")),
    "gemma": ("Gemma", SIZES, dict(head_dim=32)),
    "gemma2": ("Gemma2", SIZES, dict(head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=20)),
    "gemma3": ("Gemma3Text", dict(SIZES, num_hidden_layers=7),
               dict(head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=20, rope_parameters={
                   "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                   "sliding_attention": dict(rope_type="default", rope_theta=10000.0)})),
    "gemma3_scaled": ("Gemma3Text", dict(SIZES, num_hidden_layers=7),
                      dict(head_dim=32, sliding_window=WINDOW, rope_parameters={
                          "full_attention": dict(rope_type="yarn", factor=4.0, rope_theta=1000000.0, **SHORT),
                          "sliding_attention": dict(rope_type="linear", factor=3.0, rope_theta=20000.0)})),
    "phi3": ("Phi3", SIZES, dict(original_max_position_embeddings=64, sliding_window=40,
                                 **rope("longrope", factor=8.0, long_factor=[1 + 0.1 * i for i in range(8)],
                                        short_factor=[1 + 0.02 * i for i in range(8)], original_max_position_embeddings=64))),
    "mixtral": ("Mixtral", SIZES, dict(num_local_experts=4)),
    "qwen2_moe": ("Qwen2Moe", SIZES, dict(MOE, shared_expert_intermediate_size=80)),
    "qwen3_moe": ("Qwen3Moe", SIZES, dict(MOE, head_dim=32, norm_topk_prob=True)),
    "qwen2_moe_dense": ("Qwen2Moe", SIZES, dict(MOE, shared_expert_intermediate_size=80, mlp_only_layers=[3], decoder_sparse_step=2)),
    "qwen3_moe_dense": ("Qwen3Moe", SIZES, dict(MOE, head_dim=32, mlp_only_layers=[0, 2])),
    "olmoe_clipped": ("Olmoe", SIZES, dict(num_experts=8, num_experts_per_tok=3, clip_qkv=0.5, norm_topk_prob=True)),
    "olmoe": ("Olmoe", SIZES, dict(num_experts=8, num_experts_per_tok=3)),
    "olmo2": ("Olmo2", SIZES, dict(attention_bias=True)),
    "olmo3": ("Olmo3", SIZES, dict(sliding_window=WINDOW, rope_parameters={
        "full_attention": dict(rope_type="yarn", factor=4.0, rope_theta=500000.0, **SHORT),
        "sliding_attention": dict(rope_type="default", rope_theta=500000.0)})),
    "granite": ("Granite", SIZES, dict(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.15, logits_scaling=5.0)),
    "smollm3": ("SmolLM3", SIZES, dict(no_rope_layers=[1, 0, 1, 0])),
    "smollm3_window": ("SmolLM3", SIZES, dict(use_sliding_window=True, sliding_window=WINDOW, no_rope_layer_interval=2)),
    "arcee": ("Arcee", SIZES, dict(mlp_bias=True)),
    "ernie4_5": ("Ernie4_5", SIZES, dict(head_dim=32, use_bias=True)),
    "stablelm": ("StableLm", SIZES, dict(use_qkv_bias=True)),
    "nemotron": ("Nemotron", SIZES, dict(head_dim=32, attention_bias=True)),
    "starcoder2": ("Starcoder2", SIZES, dict(sliding_window=WINDOW)),
    "starcoder2_bare": ("Starcoder2", SIZES, dict(use_bias=False, tie_word_embeddings=False)),
    "cohere": ("Cohere", SIZES, dict(logit_scale=0.3)),
    "cohere_norms": ("Cohere", SIZES, dict(use_qk_norm=True, attention_bias=True, tie_word_embeddings=False)),
    "cohere2": ("Cohere2", SIZES, dict(sliding_window=WINDOW)),
    "cohere2_layers": ("Cohere2", SIZES, dict(sliding_window=WINDOW, layer_types=["full_attention", "sliding_attention"] * 2)),
    "glm4": ("Glm4", SIZES, dict(head_dim=32)),
    "glm4_bare": ("Glm4", SIZES, dict(head_dim=32, attention_bias=False, tie_word_embeddings=True, **rope("default", partial_rotary_factor=0.75))),
    "phimoe": ("Phimoe", SIZES, dict(num_local_experts=6, attention_bias=True, lm_head_bias=True)),
    "phimoe_scaled": ("Phimoe", SIZES, dict(num_local_experts=6, router_jitter_noise=0.01, sliding_window=WINDOW,
                                            **rope("longrope", long_factor=[1 + 0.1 * i for i in range(8)], short_mscale=1.2, long_mscale=1.2,
                                                   short_factor=[1 + 0.02 * i for i in range(8)], original_max_position_embeddings=256))),
    "phimoe_jitter": ("Phimoe", SIZES, dict(num_local_experts=6, router_jitter_noise=0.2)),
    "gpt_oss": ("GptOss", SIZES, dict(num_local_experts=4, num_experts_per_tok=2, head_dim=32, sliding_window=WINDOW)),
    "deepseek": ("DeepseekV2", LATENT, dict(q_lora_rank=24)),
    "deepseek_shares": ("DeepseekV2", LATENT, dict(q_lora_rank=24, norm_topk_prob=True)),  # which it does not heed
    "deepseek_groups": ("DeepseekV2", dict(LATENT, n_routed_experts=8, n_group=4, topk_group=2),
                        dict(q_lora_rank=24, topk_method="group_limited_greedy")),
    "deepseek3": ("DeepseekV3", dict(LATENT, n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3),
                  dict(q_lora_rank=24, routed_scaling_factor=2.5)),
    "deepseek3_yarn": ("DeepseekV3", LATENT, dict(q_lora_rank=24, norm_topk_prob=False,
                                                  **rope("yarn", factor=4.0, mscale=1.0, mscale_all_dim=1.0, **SHORT))),
    "deepseek_lite": ("DeepseekV2", LATENT, dict(q_lora_rank=None, **rope("yarn", factor=4.0, mscale=0.7, mscale_all_dim=0.9, **SHORT))),
}

# What GGUF files have no words for, as config.json's.
NOT_IN_GGUF = {"gpt2_relu": "activation of feed-forward parts", "gemma3_scaled": "rotary frequencies", "phimoe_jitter": "jitter of the experts' scores"}


def random_model(kind, sizes, options):
    torch.manual_seed(1)
    config = getattr(transformers, kind + "Config")(**sizes, **options)
    config._attn_implementation = "eager"
    name = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}.get(kind, kind + "ForCausalLM")
    model = getattr(transformers, name)(config).eval().float()
    with torch.no_grad():
        for key, p in model.named_parameters():
            norm = "norm" in key and "Gemma" not in kind  # Gemma adds the 1 itself
            p.copy_(torch.randn_like(p) * (0.12 if p.dim() > 1 else 0.3) + float(norm))
        for key, b in model.named_buffers():
            if key.endswith("e_score_correction_bias"):
                b.copy_(torch.randn_like(b) * 0.2)
    return model


def saved(model, folder):
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(100)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    return str(folder)
