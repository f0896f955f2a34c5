"""weft.llm.train: what is trained is the same model to transformers."""
import inspect
import json

import numpy as np
import pytest

from weft._core import training_options
from weft.llm import Finetuner, Model, Trainer, finetune, train

TEXT = "".join(f"The {color} {animal} sees {n} {color} birds.\n" for n in range(40)
               for color in ("red", "green", "blue") for animal in ("cat", "dog", "fox"))


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(TEXT)
    return tmp_path / "texts"


OPTIONS = dict(vocabulary=300, validation=0.1, steps=8, batch=4, warmup=2)


@pytest.mark.parametrize("config", ["tiny", "tiny-llama"])
def test_exports_are_equal_to_transformers(texts, tmp_path, config):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    out = tmp_path / "out"
    seen = []
    trainer = train(out, texts, config=config, every=4, progress=lambda t: seen.append(t.steps), **OPTIONS)
    assert seen == [4, 8] and trainer.history["validated_at"] == [4, 8]
    assert len(trainer.history["loss"]) == 8 and trainer.history["loss"][-1] < trainer.history["loss"][0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    prompt = "The red fox sees 7 birds.\nThe"
    ids = tokenizer(prompt)["input_ids"]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(out)
    with torch.no_grad():
        wanted = theirs(torch.tensor([ids])).logits[0].numpy()
    for path in (out, out / "model.gguf"):
        model = Model(path, cache="f32")
        assert model.encode(prompt) == ids
        got = model.logits(ids).numpy()
        assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max()


def combine(seed, value):
    """hash_combine() of weft/base/hash.h."""
    mask = (1 << 64) - 1
    x = (value + 0x2545F4914F6CDD1D) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    product = (seed ^ 0x9E3779B97F4A7C15) * (x ^ (x >> 31))
    return ((product & mask) ^ (product >> 64)) ^ seed


def first_starts(tokens, context, seed, count):
    """WindowOrder of weft/llm/training_texts.h, within the first epoch."""
    seed = combine(seed, 0)
    order = sorted(range(tokens // context - 1), key=lambda i: combine(seed, i))
    return [combine(seed, (1 << 64) - 1) % context + context * i for i in order[:count]]


def rate(step, steps, warmup, lr):
    share = (step - warmup) / (steps - warmup)
    return lr * step / warmup if share < 0 else lr * (0.1 + 0.9 * (1 + np.cos(np.pi * share)) / 2)


def test_losses_are_those_of_pytorch(texts, tmp_path):
    """From the same weights, through AdamW, clipping, warm-up and cosine."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    safetensors = pytest.importorskip("safetensors.numpy")
    steps, batch, warmup, lr = 8, 4, 2, 1e-3
    trainer = Trainer(tmp_path / "out", texts, config="tiny", clip=0.5, **OPTIONS)
    trainer.export()
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()  # without its dropout
    groups = [dict(params=[p for p in model.parameters() if (p.dim() >= 2) == matrix], weight_decay=0.1 * matrix)
              for matrix in (True, False)]
    adamw = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)
    tokens = safetensors.load_file(tmp_path / "out" / "tokens.safetensors")["training"].astype(np.int64)
    starts = first_starts(len(tokens), 64, 1, steps * batch)
    for step in range(steps):
        for group in adamw.param_groups:
            group["lr"] = rate(step + 1, steps, warmup, lr)
        x = torch.tensor(np.stack([tokens[s:s + 65] for s in starts[step * batch:(step + 1) * batch]]))
        logits = model(x[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        adamw.step()
        assert trainer.step() == pytest.approx(loss.item(), rel=2e-5)


def test_a_trainer_goes_on_to_the_same_losses(texts, tmp_path):
    whole = Trainer(tmp_path / "whole", texts, config="tiny", dropout=0.1, **OPTIONS)
    losses = [whole.step() for _ in range(6)]
    part = Trainer(tmp_path / "part", texts, config="tiny", dropout=0.1, **OPTIONS)
    assert [part.step() for _ in range(3)] == losses[:3]
    part.save()
    again = Trainer(tmp_path / "part", config="tiny", dropout=0.1, **OPTIONS)
    assert again.steps == 3 and [again.step() for _ in range(3)] == losses[3:]
    again.save()
    lines = [json.loads(line) for line in (tmp_path / "part" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="with batch = 4, this run has 8"):
        Trainer(tmp_path / "part", config="tiny", dropout=0.1, **{**OPTIONS, "batch": 8})


@pytest.mark.parametrize("case", ["llama", "gemma2", "gemma3", "gpt_oss", "mixtral", "deepseek", "olmoe_clipped", "olmo3", "granite",
                                  "smollm3", "qwen2_moe_dense"])
def test_adapters_learn_as_in_pytorch(case, tmp_path):
    """Factors beside W are W + (alpha / rank) B A; caps, sinks, windows and experts have gradients."""
    random_llms = pytest.importorskip("random_llms")
    torch = random_llms.torch
    safetensors = pytest.importorskip("safetensors.torch")
    model = random_llms.random_model(*random_llms.CASES[case])
    (tmp_path / "base").mkdir()
    base = random_llms.saved(model, tmp_path / "base")
    words = np.random.default_rng(1).integers(3, 40, 1500)
    (tmp_path / "text.txt").write_text(" ".join(f"w{word}" for word in words))
    steps, batch, context, scale, lr = 5, 2, 40, 6.0 / 4, 3e-2
    tuner = Finetuner(tmp_path / "out", base, tmp_path / "text.txt", rank=4, alpha=6.0, targets=["o"], context=context,
                      steps=steps, batch=batch, warmup=1, lr=lr, weight_decay=0.0, clip=0.0, validation=0.1)
    tuner.save()
    saved = safetensors.load_file(tmp_path / "out" / "checkpoint.safetensors")
    factors = {f"model.layers.{name.split('.')[2]}.self_attn.o_proj.weight":
               (saved[name].clone(), saved[name[:-1] + "b"].clone()) for name in saved if name.startswith("model.blk.") and name.endswith(".lora_a")}
    assert len(factors) == model.config.num_hidden_layers
    trained = [x.requires_grad_() for pair in factors.values() for x in pair]
    adamw = torch.optim.AdamW(trained, betas=(0.9, 0.95), eps=1e-8, weight_decay=0)
    weights = dict(model.named_parameters())
    tokens = safetensors.load_file(tmp_path / "out" / "tokens.safetensors")["training"].numpy().astype(np.int64)
    starts = first_starts(len(tokens), context, 1, steps * batch)
    for step in range(steps):
        adamw.param_groups[0]["lr"] = rate(step + 1, steps, 1, lr)
        x = torch.tensor(np.stack([tokens[s:s + context + 1] for s in starts[step * batch:(step + 1) * batch]]))
        changed = {name: weights[name].detach() + scale * b @ a for name, (a, b) in factors.items()}
        logits = torch.func.functional_call(model, changed, (x[:, :-1],)).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        assert tuner.step() == pytest.approx(loss.item(), rel=1e-4)


def test_finetune_exports_an_adapter(texts, tmp_path):
    train(tmp_path / "base", texts, config="tiny", **OPTIONS)
    base, seen = tmp_path / "base" / "model.gguf", []
    options = dict(validation=0.1, context=32, steps=4, batch=4, warmup=1, lr=1e-2)
    tuner = finetune(tmp_path / "out", base, texts, every=2, progress=lambda t: seen.append(t.steps), **options)
    assert seen == [2, 4] and tuner.finished and len(tuner.history["loss"]) == 4
    plain, tuned = (Model(base, cache="f32", lora=lora) for lora in ((), [tmp_path / "out" / "adapter.gguf"]))
    ids = plain.encode("The red fox")
    assert np.abs(plain.logits(ids).numpy() - tuned.logits(ids).numpy()).max() > 1e-3
    again = Finetuner(tmp_path / "out", base, **options)
    assert again.finished and again.history["loss"] == tuner.history["loss"]


@pytest.mark.parametrize("face", [Trainer, Finetuner])
def test_every_face_has_the_same_options(face):
    """The list that the command and C have, with its defaults."""
    known = training_options(face is Finetuner)
    here = {name: p.default for name, p in inspect.signature(face).parameters.items() if name not in ("out", "model")}
    assert set(here) == set(known)
    for name, default in known.items():
        assert name == "data" or here[name] == (tuple(default) if isinstance(default, list) else default), name


def test_errors(tmp_path):
    with pytest.raises(RuntimeError, match="there is no file or folder"):
        Trainer(tmp_path / "out", tmp_path / "none")
    with pytest.raises(ValueError, match=r"optimizer is 'sgd': adamw\|muon"):
        Trainer(tmp_path, optimizer="sgd")
    with pytest.raises(TypeError, match="steps is 'many'"):
        Trainer(tmp_path, steps="many")
    with pytest.raises(FileNotFoundError, match="none.gguf"):
        Finetuner(tmp_path / "out", tmp_path / "none.gguf", tmp_path)
