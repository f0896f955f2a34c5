"""weft.text against the package tokenizers: small tokenizers of every kind, trained here."""
import json
import random
import unicodedata

import pytest

from weft.text import BpeTrainer, DecodeStream, Tokenizer

hf = pytest.importorskip("tokenizers")
TEXTS = ["Hello, world! It's 3.14 o'clock; we'll go. THEY'LL SEE", "naïve café ÀÉÎ ẞß İstanbul ﬁﬂ Ⅻ ½", "日本語のテキスト ﾊﾝｶｸ が き゚ 漢字",
         "한국어 텍스트 각 힣", "שלום עולם مرحبا ‏‎", "👩‍👩‍👧‍👦 🇩🇪🇫🇷🇩 👍🏽 ❤️‍🔥 1️⃣", "a\u0301e\u0302\u0323o\u0328\u0304 \u0344 \u0958 \u2126",
         "x\x00y\x01\x07\x7f\x80\u200b\u200d\ufeff\u2028\ufffd", "   leading  and\n\n\t\t \r\n \u00a0\u3000 ", "def f(x):\n    return x  # c\n\n\tif x == 0x1F: pass",
         "1234567890 12 345 ١٢٣ ४५६ ⅓", "नमस्ते क्षत्रिय ไทย", "<s> </s> <unk> [CLS] [MASK] <|endoftext|>", "", "  ", "▁▁a ▁b", "Ａｂｃ ㎏ ﷺ"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


# The package's normalizers have older tables of Unicode than weft: what all versions say the same of.
OLD = [c for c in map(chr, range(0x20000)) if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs") and c not in "\u1734\u1885\u1886"]


def texts():
    rng = random.Random(1)
    pool = [c for t in TEXTS for c in t] + ["'s", "'LL", "  ", "the", "ing", "<s>", "[MASK]", "'ſ"]

    def one():
        count = rng.choice([1, 2, 3, 8, 30])
        if rng.random() < 0.7:
            return "".join(rng.choice(pool) for _ in range(count))
        return "".join(rng.choice(OLD[:rng.choice([1000, 8000, len(OLD)])]) for _ in range(count))

    return TEXTS + [one() for _ in range(400)]


def byte_pairs(cut, normalizer=None, **options):
    t = hf.Tokenizer(hf.models.BPE(**options))
    t.pre_tokenizer, t.decoder = cut, hf.decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    suffix = {"end_of_word_suffix": options["end_of_word_suffix"]} if "end_of_word_suffix" in options else {}
    t.train_from_iterator(TEXTS * 2, hf.trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=["<|endoftext|>", "<s>"],
                                                            initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(), **suffix))
    return t


def gpt2():
    return byte_pairs(hf.pre_tokenizers.ByteLevel(add_prefix_space=False))


def roberta():
    t = byte_pairs(hf.pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.post_processor = hf.processors.RobertaProcessing(("<|endoftext|>", 0), ("<s>", 1))
    return t


def llama3():
    pre = hf.pre_tokenizers
    t = byte_pairs(pre.Sequence([pre.Split(hf.Regex(LLAMA3), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)]))
    content = json.loads(t.to_str())
    content["model"]["ignore_merges"] = True
    t = hf.Tokenizer.from_str(json.dumps(content))
    t.post_processor = hf.processors.TemplateProcessing("<s> $A", "<s> $A <s> $B:1", [("<s>", 1)])
    return t


def qwen():
    pre = hf.pre_tokenizers
    return byte_pairs(pre.Sequence([pre.Split(hf.Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
                                    pre.ByteLevel(add_prefix_space=False, use_regex=False)]), hf.normalizers.NFC())


def clip():
    n, pre = hf.normalizers, hf.pre_tokenizers
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    t = byte_pairs(pre.Sequence([pre.Split(hf.Regex(pattern), "removed", invert=True), pre.ByteLevel(add_prefix_space=False)]),
                   n.Sequence([n.NFC(), n.Replace(hf.Regex(r"\s+"), " "), n.Lowercase()]), unk_token="<|endoftext|>", end_of_word_suffix="</w>")
    t.post_processor = hf.processors.RobertaProcessing(("<|endoftext|>", 0), ("<s>", 1), trim_offsets=False, add_prefix_space=False)
    return t


def llama2():
    n, d = hf.normalizers, hf.decoders
    t = hf.Tokenizer(hf.models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.train_from_iterator([x.replace(" ", "▁") for x in TEXTS], hf.trainers.BpeTrainer(
        vocab_size=500, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]))
    content = json.loads(t.to_str())
    content["added_tokens"] = [a for a in content["added_tokens"] if not a["content"].startswith("<0x")]
    t = hf.Tokenizer.from_str(json.dumps(content))
    t.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    t.post_processor = hf.processors.TemplateProcessing("<s> $A", "<s> $A <s> $B:1", [("<s>", 1)])
    return t


def mistral():
    t = llama2()
    t.normalizer, t.pre_tokenizer = None, hf.pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return t


def bert(lowercase=True):
    t = hf.Tokenizer(hf.models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = hf.normalizers.BertNormalizer(lowercase=lowercase), hf.pre_tokenizers.BertPreTokenizer()
    t.decoder = hf.decoders.WordPiece()
    t.train_from_iterator(TEXTS, hf.trainers.WordPieceTrainer(vocab_size=500, show_progress=False,
                                                              special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = hf.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def cased_bert():
    return bert(lowercase=False)


def t5():
    n = hf.normalizers
    t = hf.Tokenizer(hf.models.Unigram())
    t.normalizer = n.Sequence([n.Nmt(), n.NFKC(), n.Replace(hf.Regex(" {2,}"), " ")])
    t.pre_tokenizer, t.decoder = hf.pre_tokenizers.Metaspace(), hf.decoders.Metaspace()
    t.train_from_iterator(TEXTS * 4, hf.trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>",
                                                                special_tokens=["<s>", "</s>", "<unk>"]))
    t.post_processor = hf.processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return t


def added():
    t = byte_pairs(hf.pre_tokenizers.ByteLevel(add_prefix_space=False), hf.normalizers.Lowercase())
    token = hf.AddedToken
    t.add_tokens([token("the", single_word=True), token("ing", lstrip=True), token("a b", rstrip=True, lstrip=True), token("日")])
    t.add_special_tokens([token("[MASK]", lstrip=True), token("<unk>", rstrip=True)])
    return t


@pytest.mark.parametrize("make", [gpt2, roberta, llama3, qwen, clip, llama2, mistral, bert, cased_bert, t5, added])
def test_ids_and_texts_are_theirs(make):
    theirs = make()
    ours = Tokenizer.from_json(theirs.to_str())
    assert ours.vocab_size == theirs.get_vocab_size()
    for text in texts():
        want = theirs.encode(text).ids
        assert ours.encode(text) == want, repr(text)
        assert ours.decode(want) == theirs.decode(want), repr(text)
        assert ours.decode(want, skip_special_tokens=False) == theirs.decode(want, skip_special_tokens=False)


@pytest.mark.parametrize("make", [gpt2, llama3, bert, t5])
def test_pairs_truncation_and_padding(make):
    theirs = make()
    ours = Tokenizer.from_json(theirs.to_str())
    for most, direction in ((None, "right"), (8, "right"), (7, "left")):
        if most:
            theirs.enable_truncation(most, direction=direction)
            ours.enable_truncation(most, direction=direction)
        for a, b in zip(TEXTS, TEXTS[1:]):
            want, got = theirs.encode(a, b), ours.encoding(a, b)
            assert (got.ids, got.type_ids) == (want.ids, want.type_ids)
            assert got.special_tokens_mask == want.special_tokens_mask
    theirs.enable_padding(pad_to_multiple_of=4, direction="left")
    ours.enable_padding(pad_to_multiple_of=4, direction="left")
    for got, want in zip(ours.encodings(TEXTS), theirs.encode_batch(TEXTS)):
        assert (got.ids, got.attention_mask) == (want.ids, want.attention_mask)


@pytest.mark.parametrize("make", [gpt2, llama2, bert])
def test_streams_give_the_whole_text(make):
    t = Tokenizer.from_json(make().to_str())
    for text in TEXTS:
        ids = t.encode(text)
        stream = DecodeStream(t)
        parts = [stream.step(i) for i in ids]
        assert "".join(parts) + stream.finish() == t.decode(ids)
        assert not any("\ufffd" in p for p in parts) or "\ufffd" in text


@pytest.mark.parametrize("size, frequency", [(300, 1), (600, 2), (2000, 3)])
@pytest.mark.parametrize("pattern", ["", LLAMA3])
def test_training_learns_what_theirs_learns(size, frequency, pattern):
    pre = hf.pre_tokenizers
    theirs = hf.Tokenizer(hf.models.BPE())
    theirs.pre_tokenizer = pre.Sequence([pre.Split(hf.Regex(pattern), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)]) \
        if pattern else pre.ByteLevel(add_prefix_space=False)
    corpus = texts() + [" ".join(name for name in dir(hf)), "aaaaaaaa aaaa abababab", json.__doc__]
    special = ["<|endoftext|>", "<s>"]
    theirs.train_from_iterator(corpus, hf.trainers.BpeTrainer(vocab_size=size, min_frequency=frequency, show_progress=False, special_tokens=special,
                                                              initial_alphabet=pre.ByteLevel.alphabet()))
    trainer = BpeTrainer(size, frequency, special_tokens=special, pattern=pattern)
    for text in corpus:
        trainer.add(text)
    ours = json.loads(trainer.train())
    assert ours["model"]["vocab"] == json.loads(theirs.to_str())["model"]["vocab"]
    assert ours["model"]["merges"] == json.loads(theirs.to_str())["model"]["merges"]
    both = Tokenizer.from_json(json.dumps(ours)), hf.Tokenizer.from_str(json.dumps(ours))  # theirs reads it, too
    for text in corpus[:100]:
        assert both[0].encode(text) == both[1].encode(text).ids


def test_what_python_gives():
    t = Tokenizer.from_json(bert().to_str())
    assert t.encode(b"abc") == t.encode("abc")
    assert t.encode("\ud800") == t.encode("\ufffd\ufffd\ufffd")
    assert t.decode([2**40, -1, 3]) == ""
    assert t.special_tokens[2] == ("[CLS]", 2)
    assert t.token_to_id("[CLS]") == 2 and t.id_to_token(2) == "[CLS]" and t.id_to_token(2**40) is None
    assert len(t.encoding("a", "b")) == len(t.encode("a", "b"))
    assert t.encode("[MASK]", add_special_tokens=False) == [4]
    assert 4 not in t.encode("[MASK]", add_special_tokens=False, parse_special=False)
    with pytest.raises(TypeError, match="a text is a str or bytes, not int"):
        t.encode(7)
    with pytest.raises(ValueError, match="no strategy is called sideways"):
        t.enable_truncation(4, "sideways")
    with pytest.raises(ValueError, match="a direction is left or right, not up"):
        t.enable_padding(direction="up")
