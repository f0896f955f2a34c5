"""Adapters: weft.llm against PyTorch with W + (alpha / r) B A, and against PEFT where that is installed."""
import json

import numpy as np
import pytest
from random_llms import CASES, random_model, saved, torch, transformers

from weft.llm import Model, convert, merge

safetensors = pytest.importorskip("safetensors.torch")

TOKENS = [int(t) for t in np.random.default_rng(3).integers(3, 100, 40)]
RANK, ALPHA = 4, 6.0


def theirs(model):
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0].numpy()


def ours(path, lora=()):
    return Model(str(path), context=64, cache="f32", lora=lora).logits(TOKENS).numpy()


def off(got, wanted):
    return np.abs(got - wanted).max() / np.abs(wanted).max()


def adapter(model, modules, folder, **more):
    """A folder as PEFT writes it, and the model with the factors in its weights."""
    torch.manual_seed(5)
    tensors = {}
    scale = ALPHA / RANK
    with torch.no_grad():
        for name, module in model.named_modules():
            if name.rsplit(".", 1)[-1] not in modules:
                continue
            transposed = type(module).__name__ == "Conv1D"  # GPT-2's
            inputs, outputs = module.weight.shape if transposed else reversed(module.weight.shape)
            a, b = torch.randn(RANK, inputs) * 0.1, torch.randn(outputs, RANK) * 0.1
            tensors[f"base_model.model.{name}.lora_A.weight"], tensors[f"base_model.model.{name}.lora_B.weight"] = a, b
            delta = scale * b @ a
            module.weight += delta.T if transposed else delta
    folder.mkdir()
    safetensors.save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(dict(
        peft_type="LORA", r=RANK, lora_alpha=ALPHA, target_modules=modules, bias="none", **more)))
    return str(folder)


MODULES = {"llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], "llama3": ["q_proj", "k_proj"],
           "qwen3": ["q_proj", "v_proj"], "gemma3": ["q_proj", "o_proj", "down_proj"], "phi3": ["qkv_proj", "gate_up_proj"],
           "gpt2": ["c_attn", "c_proj", "c_fc"], "deepseek": ["kv_b_proj", "o_proj"]}


@pytest.mark.parametrize("case", MODULES)
def test_logits(case, tmp_path):
    model = random_model(*CASES[case])
    base = tmp_path / "base"
    base.mkdir()
    saved(model, base)
    plain = theirs(model)
    lora = adapter(model, MODULES[case], tmp_path / "lora")
    wanted = theirs(model)
    assert off(plain, wanted) > 0.01
    assert off(ours(base, [lora]), wanted) < 1e-5
    assert off(ours(base), plain) < 1e-5
    gguf, together = tmp_path / "m.gguf", tmp_path / "merged.gguf"
    convert(base, gguf)
    assert off(ours(gguf, [lora]), wanted) < 1e-5
    merge(gguf, [lora], together)
    assert off(ours(together), wanted) < 1e-5
    merge(base, [(lora, 0.5)], together)
    assert off(ours(together), ours(gguf, [(lora, 0.5)])) < 1e-5


@pytest.mark.parametrize("block", [16, None])
def test_folders_in_fp8(block, tmp_path):
    """A scale for each block, or for each row: beside the weights, and added to what they are before that is rounded."""
    model = random_model(*CASES["llama"])
    base = tmp_path / "base"
    base.mkdir()
    saved(model, base)
    tensors, own = safetensors.load_file(base / "model.safetensors"), dict(model.named_parameters())
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        w = tensors[name]
        scale = torch.rand([n // block for n in w.shape] if block else [w.shape[0], 1]) * 0.002 + 0.001
        wide = scale.repeat_interleave(block, 0).repeat_interleave(block, 1) if block else scale
        tensors[name], tensors[name + "_scale_inv"] = (w / wide).to(torch.float8_e4m3fn), scale
        with torch.no_grad():
            own[name].copy_(tensors[name].float() * wide)
    safetensors.save_file(tensors, base / "model.safetensors", {"format": "pt"})
    config = json.loads((base / "config.json").read_text())
    config["quantization_config"] = dict(quant_method="fp8", weight_block_size=block and [block, block])
    (base / "config.json").write_text(json.dumps(config))
    lora = adapter(model, MODULES["llama"], tmp_path / "lora")
    wanted, together = theirs(model), tmp_path / "merged.gguf"

    def exact(path, lora=()):
        return Model(str(path), context=64, cache="f32", factors="f32", lora=lora).logits(TOKENS).numpy()
    assert off(exact(base, [lora]), wanted) < 1e-5
    merge(base, [lora], together, "F32")
    assert off(exact(together), wanted) < 1e-5
    merge(base, [lora], together)
    assert 1e-4 < off(exact(together), wanted) < 0.02  # bf16


def test_stabilised_ranks(tmp_path):
    """rsLoRA scales by alpha / sqrt(r)."""
    model = random_model(*CASES["llama"])
    path = saved(model, tmp_path)
    lora = adapter(model, ["v_proj"], tmp_path / "lora", use_rslora=True)
    assert off(ours(path, [(lora, 1 / RANK**0.5)]), theirs(model)) < 1e-5


def test_one_adapter_needs_no_list(tmp_path):
    model = random_model(*CASES["llama"])
    path = saved(model, tmp_path)
    lora = adapter(model, ["v_proj"], tmp_path / "lora")
    for one in (lora, tmp_path / "lora", (lora, 0.5)):
        assert np.array_equal(ours(path, one), ours(path, [one]))


def test_of_another_model(tmp_path):
    model = random_model("Llama", CASES["llama"][1] | dict(hidden_size=96, num_attention_heads=6), {})
    lora = adapter(model, ["v_proj"], tmp_path / "lora")
    other = saved(random_model(*CASES["llama"]), tmp_path)
    with pytest.raises(ValueError, match=r"\(32, 4\) by \(4, 96\), and the model's \(32, 64\)"):
        Model(other, lora=[lora])


def test_peft(tmp_path):
    """What PEFT saves is read, and gives what PEFT does."""
    peft = pytest.importorskip("peft")
    model = random_model(*CASES["llama"])
    path = saved(model, tmp_path)
    wrapped = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=MODULES["llama"])).eval()
    with torch.no_grad():
        for name, p in wrapped.named_parameters():
            if "lora_B" in name:
                p.copy_(torch.randn_like(p) * 0.1)
    wrapped.save_pretrained(tmp_path / "lora")
    assert off(ours(path, [tmp_path / "lora"]), theirs(wrapped)) < 1e-5
    again = transformers.AutoModelForCausalLM.from_pretrained(path)
    read = peft.PeftModel.from_pretrained(again, tmp_path / "lora").eval()
    assert off(theirs(read), theirs(wrapped)) < 1e-5
