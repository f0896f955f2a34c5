"""weft.llm.convert: folders to GGUF files and back, of every family, against transformers."""
import json

import numpy as np
import pytest
from random_llms import CASES, NOT_IN_GGUF, random_model, saved, tokenizers, torch, transformers

from weft.llm import Model, convert, quantize

TOKENS = [int(t) for t in np.random.default_rng(3).integers(3, 100, 90)]  # beyond windows and trained contexts


def theirs(model):
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0].numpy()


def ours(path):
    return Model(str(path), context=128, cache="f32", factors="f32").logits(TOKENS).numpy()


def off(got, wanted):
    return np.abs(got - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("case", NOT_IN_GGUF)
def test_refuses_what_would_be_lost(case, tmp_path):
    path = saved(random_model(*CASES[case]), tmp_path)
    with pytest.raises(ValueError, match=f"GGUF metadata cannot say all of this model.*\n.*{NOT_IN_GGUF[case]}"):
        convert(path, tmp_path / "model.gguf")


@pytest.mark.parametrize("case", [c for c in CASES if c not in NOT_IN_GGUF])
def test_there_and_back(case, tmp_path):
    """The GGUF file computes what the folder does, and so does the folder that is made of it, for transformers, too."""
    model = random_model(*CASES[case])
    wanted = theirs(model)
    folder = tmp_path / "folder"
    folder.mkdir()
    saved(model, folder)
    gguf, back = tmp_path / "model.gguf", tmp_path / "back"
    convert(folder, gguf)
    assert off(ours(gguf), wanted) < 1e-5
    convert(gguf, back)
    assert off(ours(back), wanted) < 1e-5
    again = transformers.AutoModelForCausalLM.from_pretrained(back, dtype=torch.float32, attn_implementation="eager").eval()
    assert type(again) is type(model)
    assert off(theirs(again), wanted) < 1e-5
    assert (back / "tokenizer.json").read_text() == (folder / "tokenizer.json").read_text()  # words are nothing GGUF has keys for


# What its reader does not take from the file is as its configurations have it where nothing is said.
READ_BY_TRANSFORMERS = {
    "llama": dict(head_dim=16), "qwen2": {}, "qwen3": dict(head_dim=128), "gpt2": dict(n_positions=1024),
    "qwen2_moe": dict(moe_intermediate_size=1408, shared_expert_intermediate_size=5632),
    "qwen3_moe": dict(moe_intermediate_size=768)}


@pytest.mark.parametrize("case", READ_BY_TRANSFORMERS)
def test_transformers_reads_what_is_written(case, tmp_path):
    pytest.importorskip("gguf")
    kind, sizes, options = CASES[case]
    model = random_model(kind, sizes | options | READ_BY_TRANSFORMERS[case], {})
    convert(saved(model, tmp_path), tmp_path / "model.gguf")
    read = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf", dtype=torch.float32).eval()
    assert off(theirs(read), theirs(model)) < 1e-5


def test_quantises_folders(tmp_path):
    model = random_model(*CASES["llama"])
    path = saved(model, tmp_path)
    quantize(path, tmp_path / "q8.gguf", "Q8_0")
    wanted = theirs(model)
    got = ours(tmp_path / "q8.gguf")
    assert 1e-4 < off(got, wanted) < 0.05
    convert(path, tmp_path / "bf16.gguf", "BF16")
    assert off(ours(tmp_path / "bf16.gguf"), wanted) < 0.05


def byte_pairs(text):
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=["<|end|>"],
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([text], trainer)
    return t


def sentence_pieces(text):
    """Byte pairs as they are made of a SentencePiece model: spaces are marked, unknown characters are bytes."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("\u2581"), tokenizers.normalizers.Replace(" ", "\u2581")])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)], limit_alphabet=60)
    t.pre_tokenizer = tokenizers.pre_tokenizers.Split("\u2581", "merged_with_next")
    t.train_from_iterator([text], trainer)
    t.pre_tokenizer = None
    t.decoder = tokenizers.decoders.Sequence([tokenizers.decoders.Replace("\u2581", " "), tokenizers.decoders.ByteFallback(),
                                              tokenizers.decoders.Fuse(), tokenizers.decoders.Strip(" ", 1, 0)])
    t.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    written = json.loads(t.to_str())
    written["added_tokens"] = [a for a in written["added_tokens"] if not a["content"].startswith("<0x")]
    return tokenizers.Tokenizer.from_str(json.dumps(written))


def unigrams(text):
    t = tokenizers.Tokenizer(tokenizers.models.Unigram())
    t.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    t.decoder = tokenizers.decoders.Metaspace()
    t.train_from_iterator([text], tokenizers.trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>", "</s>"], unk_token="<unk>"))
    return t


TEXT = " ".join(f"The {a} of the {b} was seen by {c}, who said: it's {i}!" for i, (a, b, c) in enumerate(
    (a, b, c) for a in ("weaver", "thread", "cloth", "loom") for b in ("house", "river", "mountain") for c in ("her", "them", "nobody")))


@pytest.mark.parametrize("kind, name", [(byte_pairs, "gpt2"), (sentence_pieces, "llama"), (unigrams, "t5")])
def test_tokenizers(kind, name, tmp_path):
    """The keys alone give the same tokens: files are written without tokenizer.huggingface.json."""
    made = kind(TEXT)
    model = random_model("Llama", CASES["llama"][1] | dict(vocab_size=made.get_vocab_size() + 3), {})
    model.save_pretrained(tmp_path)
    made.save(str(tmp_path / "tokenizer.json"))
    gguf, back = tmp_path / "m.gguf", tmp_path / "back"
    convert(tmp_path, gguf)
    with open(gguf, "rb") as file:
        content = file.read()
    assert b"tokenizer.huggingface.json" not in content
    assert f"tokenizer.ggml.model".encode() in content and name.encode() in content
    convert(gguf, back)
    again = tokenizers.Tokenizer.from_file(str(back / "tokenizer.json"))
    first, second = Model(str(gguf), context=64), Model(str(back), context=64)
    for text in [TEXT[:300], "the weaver's  cloth", " nobody\n", "h\u00e9llo \u4f60 x", "<s> a </s>b", ""]:
        ids = made.encode(text).ids
        assert first.encode(text) == second.encode(text) == again.encode(text).ids == ids, text
        assert first.decode(ids) == second.decode(ids) == again.decode(ids) == made.decode(ids), text


def test_says_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        convert(tmp_path / "none", tmp_path / "x.gguf")
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(ValueError, match="is no GGUF file: it begins with '<htm'"):
        convert(tmp_path / "page.gguf", tmp_path / "x.gguf")
    path = saved(random_model(*CASES["llama"]), tmp_path)
    with pytest.raises(ValueError, match="there is no mix of formats 'Q9'"):
        quantize(path, tmp_path / "x.gguf", "Q9")
    convert(path, tmp_path / "x.gguf")
    with pytest.raises(ValueError, match="in 'Q4_0': F32, F16 or BF16"):
        convert(tmp_path / "x.gguf", tmp_path / "back", "Q4_0")
    assert not (tmp_path / "back").exists()
