"""weft.llm.train: what is trained is the same model to transformers."""
import json

import numpy as np
import pytest

from weft.llm import Model, Trainer, train

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


def test_errors(tmp_path):
    with pytest.raises(RuntimeError, match="there is no file or folder"):
        Trainer(tmp_path / "out", tmp_path / "none")
    with pytest.raises(ValueError, match="optimizer is 'sgd': adamw or muon"):
        Trainer(tmp_path, optimizer="sgd")
