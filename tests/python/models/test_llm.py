"""weft.llm against transformers: logits of small models of random weights, for a prompt and cached steps."""
import json

import numpy as np
import pytest
from random_llms import CASES, random_model, saved, torch

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
    ours = Model(path, context=256, cache="f32")
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
    got = Model(path, context=64, cache="f32").logits(tokens).numpy()
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
    config = json.loads((tmp_path / "config.json").read_text())
    del config["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="num_hidden_layers"):
        Model(path)
