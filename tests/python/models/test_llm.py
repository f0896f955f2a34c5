"""weft.llm against transformers: logits of small models of random weights, for a prompt and cached steps."""
import json

import numpy as np
import pytest
from random_llms import CASES, SIZES, random_model, rope, saved, torch

from weft.llm import Model

PROMPT, STEPS = 76, 64


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


@pytest.mark.parametrize("context", [60, 140])
def test_dynamic_positions(context, tmp_path):
    """Frequencies are those of a text as long as the context, where that is longer than what the model was trained with."""
    model = random_model("Llama", dict(SIZES, max_position_embeddings=64), rope("dynamic", factor=4.0))
    tokens = torch.randint(3, 100, (1, context))
    with torch.no_grad():
        wanted = model(tokens).logits[0].numpy()
    got = Model(saved(model, tmp_path), context=context, cache="f32").logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5


@pytest.mark.parametrize("case", ["mistral", "gemma3", "gpt_oss"])
def test_windows_far_behind_the_beginning(case, tmp_path):
    """Layers with a window of 24 read a few of 600 positions."""
    model = random_model(CASES[case][0], dict(CASES[case][1], max_position_embeddings=1024), CASES[case][2])
    tokens = torch.randint(3, 100, (1, 600))
    with torch.no_grad():
        wanted = model(tokens).logits[0].numpy()
    ours = Model(saved(model, tmp_path), context=768, cache="f32")
    got = ours.logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5
    text = ours.generate(tokens[0, :590].tolist(), max_tokens=10, temperature=0, ignore_end=True)
    with torch.no_grad():
        greedy = model.generate(tokens[:, :590], max_new_tokens=10, do_sample=False, eos_token_id=None)[0, 590:]
    assert ours.encode(text) == greedy.tolist()


def deepseek_gguf(model, path, split):
    """As llama.cpp's converter writes it, with the matrix of keys and values as one or as two (then with sizes of the
    narrow vector for heads)."""
    gguf = pytest.importorskip("gguf")
    c, arch = model.config, "deepseek2"
    w = gguf.GGUFWriter(str(path), arch)
    head = c.qk_nope_head_dim + c.qk_rope_head_dim
    sizes = {"block_count": c.num_hidden_layers, "context_length": 512, "embedding_length": c.hidden_size,
             "feed_forward_length": c.intermediate_size, "attention.head_count": c.num_attention_heads,
             "attention.head_count_kv": 1 if split else c.num_attention_heads, "attention.q_lora_rank": c.q_lora_rank,
             "attention.kv_lora_rank": c.kv_lora_rank, "rope.dimension_count": c.qk_rope_head_dim,
             "attention.key_length": c.kv_lora_rank + c.qk_rope_head_dim if split else head,
             "attention.value_length": c.kv_lora_rank if split else c.v_head_dim,
             "expert_count": c.n_routed_experts, "expert_used_count": c.num_experts_per_tok,
             "expert_feed_forward_length": c.moe_intermediate_size, "expert_shared_count": c.n_shared_experts,
             "leading_dense_block_count": c.first_k_dense_replace, "expert_gating_func": 2,
             "expert_group_count": c.n_group, "expert_group_used_count": c.topk_group, "vocab_size": 100}
    if split:
        sizes |= {"attention.key_length_mla": head, "attention.value_length_mla": c.v_head_dim}
    for key, value in sizes.items():
        w.add_uint32(f"{arch}.{key}", value)
    w.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", c.rms_norm_eps)
    w.add_float32(f"{arch}.expert_weights_scale", c.routed_scaling_factor)
    w.add_bool(f"{arch}.expert_weights_norm", c.norm_topk_prob)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>"] + [f"w{i}" for i in range(1, 100)])
    w.add_token_scores([0.0] * 100)
    w.add_token_types([2] + [1] * 99)
    names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_a_proj": "attn_q_a",
             "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
             "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
             "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp"}
    outside = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for key, tensor in model.state_dict().items():
        x = tensor.float().numpy()
        if not key.startswith("model.layers."):
            w.add_tensor(outside[key.removesuffix(".weight")] + ".weight", x)
            continue
        layer, rest = key.removeprefix("model.layers.").split(".", 1)
        at, rest = f"blk.{layer}.", rest.removesuffix(".weight")
        if rest in names:
            w.add_tensor(at + names[rest] + ".weight", x)
        elif rest.endswith("e_score_correction_bias"):
            w.add_tensor(at + "exp_probs_b.bias", x)
        elif rest == "mlp.experts.gate_up_proj":
            for name, part in zip(("gate", "up"), np.split(x, 2, axis=1)):
                w.add_tensor(f"{at}ffn_{name}_exps.weight", np.ascontiguousarray(part))
        elif rest == "mlp.experts.down_proj":
            w.add_tensor(at + "ffn_down_exps.weight", x)
        elif rest == "self_attn.kv_b_proj" and not split:
            w.add_tensor(at + "attn_kv_b.weight", x)
        else:
            assert rest == "self_attn.kv_b_proj", rest
            k, v = np.split(x.reshape(c.num_attention_heads, -1, c.kv_lora_rank), [c.qk_nope_head_dim], axis=1)
            w.add_tensor(at + "attn_k_b.weight", np.ascontiguousarray(k.transpose(0, 2, 1)))
            w.add_tensor(at + "attn_v_b.weight", np.ascontiguousarray(v))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


@pytest.mark.parametrize("split", [False, True])
def test_deepseek_gguf(split, tmp_path):
    model = random_model(*CASES["deepseek3"])
    path = tmp_path / "m.gguf"
    deepseek_gguf(model, path, split)
    tokens = torch.randint(3, 100, (1, 100))
    with torch.no_grad():
        wanted = model(tokens).logits[0].numpy()
    got = Model(str(path), context=128, cache="f32", factors="f32").logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5


def test_cache_of_8_bits(tmp_path):
    """Keys and values are off by a half of 1/127 of the largest of 32 at most."""
    path = saved(random_model(*CASES["qwen3"]), tmp_path)
    tokens = torch.randint(3, 100, (200,)).tolist()
    wanted = Model(path, context=256, cache="f32").logits(tokens).numpy()
    ours = Model(path, context=256, cache="q8")
    off = np.abs(ours.logits(tokens).numpy() - wanted).max() / np.abs(wanted).max()
    assert 1e-6 < off < 0.03
    assert ours.counters["cache_bytes"] == Model(path, context=256).counters["cache_bytes"] * 34 / 64


def test_drafts_keep_answers(tmp_path):
    path = saved(random_model(*CASES["qwen3"]), tmp_path)
    options = [dict(temperature=0), dict(seed=3), dict(seed=4, temperature=1.5, top_k=0, top_p=1.0)]
    plain = Model(path, context=256)
    for draft in ("lookup", path):
        ours = Model(path, context=256, draft=draft, slots=2)
        for more in options:
            for prompt in ("w5 w6 w7 w5 w6", "w9"):
                wanted = plain.generate(prompt, max_tokens=60, ignore_end=True, **more)
                assert ours.generate(prompt, max_tokens=60, ignore_end=True, **more) == wanted
        assert ours.counters["accepted_tokens"] > 0


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
    with pytest.raises(ValueError, match="a cache of 'q4'"):
        Model(path, cache="q4")
    with pytest.raises(ValueError, match="no factors 'int8': f32, bf16, q8, or auto"):
        Model(path, factors="int8")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="num_hidden_layers"):
        Model(path)


def test_mxfp4_folder(tmp_path):
    """Experts packed as gpt-oss's own folders have them."""
    from safetensors.torch import load_file, save_file
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    model = random_model(*CASES["gpt_oss"])
    path = saved(model, tmp_path)
    tensors, state = load_file(tmp_path / "model.safetensors"), model.state_dict()
    for name in [n for n in tensors if n.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, columns, rows = tensors.pop(name).shape
        blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
        scales = torch.randint(122, 125, (experts, rows, columns // 32), dtype=torch.uint8)
        tensors |= {name + "_blocks": blocks, name + "_scales": scales}
        state[name].copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32))
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokens = torch.randint(3, 100, (1, 70))
    with torch.no_grad():
        wanted = model(tokens).logits[0].numpy()
    got = Model(path, context=128, cache="f32", factors="f32").logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5
    config["quantization_config"] = {"quant_method": "gptq"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="packed by 'gptq', of which weft reads none but fp8 and mxfp4"):
        Model(path)


def test_fp8_folder(tmp_path):
    """As DeepSeek and Qwen publish them: 8-bit floats, a scale for each block; 96 rows are a block and a half."""
    from safetensors.torch import load_file, save_file
    model, size = random_model(*CASES["qwen3_moe"]), 64
    path = saved(model, tmp_path)
    tensors, exact = load_file(tmp_path / "model.safetensors"), {}
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        w = tensors[name]
        grid = [-(-n // size) for n in w.shape]
        scale = torch.rand(grid) * 0.002 + 0.001
        wide = scale.repeat_interleave(size, 0).repeat_interleave(size, 1)[:w.shape[0], :w.shape[1]]
        tensors[name] = (w / wide).to(torch.float8_e4m3fn)
        exact[name] = tensors[name].float() * wide
        tensors[name + "_scale_inv"] = scale
    (tmp_path / "plain").mkdir()
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "plain" / "config.json").write_text(json.dumps(config))
    save_file({n: exact.get(n, t) for n, t in tensors.items() if not n.endswith("_inv")},
              tmp_path / "plain" / "model.safetensors", {"format": "pt"})
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [size, size], "activation_scheme": "dynamic"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    plain = type(model).from_pretrained(tmp_path / "plain", dtype=torch.float32, attn_implementation="eager").eval()
    tokens = torch.randint(3, 100, (1, 70))
    with torch.no_grad():
        wanted = plain(tokens).logits[0].numpy()
    got = Model(path, context=128, cache="f32", factors="f32").logits(tokens[0].tolist()).numpy()
    assert np.abs(got - wanted).max() / np.abs(wanted).max() < 1e-5
