"""Encoders of random weights against transformers: embeddings of texts of several lengths, from folders and GGUF files."""
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from weft.llm import Model, convert, quantize  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"w{i}" for i in range(4, 60)] + ["##s"]
SIZES = dict(vocab_size=len(WORDS), hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96)
KINDS = {"Bert": dict(max_position_embeddings=96),
         "Roberta": dict(max_position_embeddings=98, type_vocab_size=1, pad_token_id=1),
         "XLMRoberta": dict(max_position_embeddings=98, type_vocab_size=1, pad_token_id=1),
         "NomicBert": dict(max_position_embeddings=96),
         "MPNet": dict(max_position_embeddings=182, pad_token_id=1)}
LENGTHS = [1, 5, 16, 33, 80]


def made(kind, **more):
    torch.manual_seed(3)
    config = getattr(transformers, kind + "Config")(**SIZES, **KINDS[kind], **more)
    model = getattr(transformers, kind + "Model")(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.2 + float("norm.weight" in name.lower()))
    return model


def folder_of(model, folder, pooling=None):
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    words.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    words.save(str(folder / "tokenizer.json"))
    if pooling:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return str(folder)


def embedding(model, tokens, pooling="mean"):
    with torch.no_grad():
        hidden = model(torch.tensor([tokens])).last_hidden_state[0]
    x = hidden[0] if pooling == "cls" else hidden.mean(0)
    return (x / x.norm()).numpy()


def expect_equal(ours, model, pooling="mean", lengths=LENGTHS):
    torch.manual_seed(4)
    for length in lengths:
        tokens = torch.randint(4, len(WORDS), (length,)).tolist()
        got = np.asarray(ours.embedding(tokens))
        assert np.abs(got - embedding(model, tokens, pooling)).max() < 2e-6, length


@pytest.mark.parametrize("kind", KINDS)
def test_folders(kind, tmp_path):
    model = made(kind)
    ours = Model(folder_of(model, tmp_path), factors="f32")
    expect_equal(ours, model)
    if kind == "MPNet":  # beyond the distances that count
        expect_equal(ours, model, lengths=[180])
    assert ours.encode("w9 w10s") == [2, 9, 10, 60, 3]


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "silu"])
def test_other_activations(activation, tmp_path):
    model = made("Bert", hidden_act=activation)
    expect_equal(Model(folder_of(model, tmp_path), factors="f32"), model)


def test_pooling_and_rounded_products(tmp_path):
    model = made("Bert")
    path = folder_of(model, tmp_path, "cls_token")
    expect_equal(Model(path, factors="f32"), model, "cls")
    tokens = list(range(4, 50))
    got = np.asarray(Model(path).embedding(tokens))
    assert got @ embedding(model, tokens, "cls") > 0.999


def test_gguf_files(tmp_path):
    """As llama.cpp's converter writes them."""
    gguf = pytest.importorskip("gguf")
    model = made("Bert")
    w = gguf.GGUFWriter(str(tmp_path / "bert.gguf"), "bert")
    for key, value in {"block_count": 3, "context_length": 96, "embedding_length": 64, "feed_forward_length": 96,
                       "attention.head_count": 4, "pooling_type": 1}.items():
        w.add_uint32(f"bert.{key}", value)
    w.add_float32("bert.attention.layer_norm_epsilon", model.config.layer_norm_eps)
    w.add_bool("bert.attention.causal", False)
    w.add_tokenizer_model("bert")
    w.add_token_list([t if t[0] == "[" else t[2:] if t[0] == "#" else "\u2581" + t for t in WORDS])
    w.add_token_types([3] * 4 + [1] * (len(WORDS) - 4))
    for role, number in {"unknown": 1, "cls": 2, "seperator": 3, "padding": 0}.items():
        w.add_uint32(f"tokenizer.ggml.{role}_token_id", number)
    names = {"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
             "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
             "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
             "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
             "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
    for key, tensor in model.state_dict().items():
        key, at = key.removeprefix("encoder.layer."), ""
        if key[0].isdigit():
            layer, key = key.split(".", 1)
            at = f"blk.{layer}."
        name, kind = key.rsplit(".", 1)
        w.add_tensor(f"{at}{names[name]}.{kind}", tensor.float().numpy())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    ours = Model(str(tmp_path / "bert.gguf"), factors="f32")
    expect_equal(ours, model)
    assert ours.encode("w9 w10s") == [2, 9, 10, 60, 3]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "MPNet"])
@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
def test_folders_to_gguf_and_back(kind, pooling, tmp_path):
    """What comes back of RoBERTa's is a bert: positions before the first are gone."""
    model = made(kind)
    (tmp_path / "folder").mkdir()
    gguf, back, pool = tmp_path / "m.gguf", tmp_path / "back", pooling[:-6].rstrip("_")
    folder = folder_of(model, tmp_path / "folder", pooling)
    convert(folder, gguf)
    ours = Model(str(gguf), factors="f32")
    expect_equal(ours, model, pool)
    assert ours.encode("w9 w10s") == [2, 9, 10, 60, 3]
    convert(gguf, back)
    expect_equal(Model(str(back), factors="f32"), model, pool)
    again = transformers.AutoModel.from_pretrained(back, add_pooling_layer=False).eval()
    assert type(again) is (transformers.NomicBertModel if kind == "NomicBert" else transformers.BertModel)
    torch.manual_seed(5)
    tokens = torch.randint(4, len(WORDS), (40,)).tolist()
    assert np.abs(embedding(again, tokens, pool) - embedding(model, tokens, pool)).max() < 2e-6
    quantize(folder, tmp_path / "q8.gguf", "Q8_0")
    # The file's codes alone lose up to 0.0003 of the cosine here; factors rounded to bytes, too, are as coarse again in
    # every product (0.0011 at most where all rows are multiplied so, 0.0004 as bf16).
    for factors, least in {"f32": 0.999, None: 0.997}.items():
        ours = Model(str(tmp_path / "q8.gguf"), **({"factors": factors} if factors else {}))
        assert np.asarray(ours.embedding(tokens)) @ embedding(model, tokens, pool) > least


def test_what_encoders_do_not(tmp_path):
    (tmp_path / "mpnet").mkdir()
    with pytest.raises(ValueError, match="is a mpnet, which GGUF files have no name for"):
        convert(folder_of(made("MPNet"), tmp_path / "mpnet"), tmp_path / "m.gguf")
    path = folder_of(made("Bert"), tmp_path)
    ours = Model(path)
    with pytest.raises(ValueError, match="a bert makes embeddings of texts and writes none"):
        ours.generate("w9")
    with pytest.raises(ValueError, match="a bert makes embeddings of texts and writes none"):
        ours.logits([9])
    with pytest.raises(ValueError, match="the prompt has 97 tokens, and the context is 96"):
        ours.embedding([9] * 97)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_act": "mish", "is_decoder": True}))
    with pytest.raises(ValueError, match="the activation 'mish' is not supported\n.*tokens do not see those behind them"):
        Model(path)
