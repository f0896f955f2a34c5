"""GGUF files and packed weights; against the package gguf where it is installed."""
import struct

import numpy as np
import pytest

from weft import Tensor, _core, dtypes
from weft.llm import quantize
from weft.llm.gguf import gguf_load as where_tinygrad_has_it
from weft.nn.state import ggml_data_to_tensor, gguf_load, gguf_save, product_with

PACKED = [(number, name, elements, size) for number, name, elements, size in _core.codecs() if elements > 1]
OWN = ("Q8_1", "Q8_K", "Q1_0")  # the package knows these, and decodes none


def random_blocks(count, size, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, size), dtype=np.uint8)


# Where the floats of a block are that scale it, in bytes; of MXFP4 and NVFP4 every byte is tried anyhow.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
          "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64]}
# +-0, the least and the largest denormal, the least normal, 1, the largest, infinities, NaNs.
SPECIAL = np.array([0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01], np.uint16)


def blocks_with_special_scales(name, size, seed):
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    blocks = random_blocks(2 * len(pairs), size, seed)
    blocks[:len(pairs):7] = 0
    for block, scales in zip(blocks, pairs + pairs):
        for at, scale in zip(SCALES.get(name, []), scales):
            block[at:at + 2] = np.array([scale]).view(np.uint8)
    if name == "IQ1_M":  # four bits each at the top of four words
        for block, (scale, _) in zip(blocks, pairs + pairs):
            for i in range(4):
                block[49 + 2 * i] = block[49 + 2 * i] & 15 | int(scale) >> 4 * i << 4 & 240
    return blocks


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("number,name,elements,size", PACKED)
def test_decodes_to_the_same_bits(number, name, elements, size, special):
    gguf = pytest.importorskip("gguf")
    if name in OWN:
        pytest.skip("the package does not decode it")
    blocks = blocks_with_special_scales(name, size, number) if special else random_blocks(512, size, number)
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(number))
    got = ggml_data_to_tensor(Tensor(blocks), len(blocks) * elements, number).numpy().reshape(wanted.shape)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.nan_to_num(got).view(np.uint32), np.nan_to_num(wanted).view(np.uint32))


def test_every_type_of_the_package_is_known():
    gguf = pytest.importorskip("gguf")
    sizes = {number: (elements, size) for number, _, elements, size in _core.codecs()}
    sizes[9] = (32, 40)  # Q8_1: ggml-common.h's block_q8_1 has two halves, the package counts two floats
    for t in gguf.GGMLQuantizationType:
        assert sizes[t.value] == tuple(gguf.GGML_QUANT_SIZES[t]), t.name


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4", "F16", "BF16"])
def test_quantises_to_the_same_bytes(name):
    gguf = pytest.importorskip("gguf")
    rng = np.random.default_rng(len(name))
    x = (rng.standard_normal((64, 512)) * np.exp2(rng.integers(-12, 12, (64, 1)))).astype(np.float32)
    x[7], x[8, :256], x[9] = 0, 1, np.round(x[9]) + 0.0  # whose least is no -0: which one min() takes is NumPy's
    wanted = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
    np.testing.assert_array_equal(_core.quantise(Tensor(x), name).numpy(), wanted.view(np.uint8))


@pytest.mark.parametrize("name,limit", [("Q2_K", .3), ("Q3_K", .16), ("Q4_K", .075), ("Q5_K", .04), ("Q6_K", .02), ("IQ4_NL", .09),
                                        ("IQ4_XS", .09), ("NVFP4", .1), ("Q8_1", .006), ("Q8_K", .008)])
def test_other_types_come_back_near(name, limit):
    x = np.random.default_rng(3).standard_normal((16, 512)).astype(np.float32)
    back = _core.decode(_core.quantise(Tensor(x), name), name, x.shape, "float32").numpy()
    assert np.sqrt(np.mean((back - x) ** 2) / np.mean(x ** 2)) < limit


def test_reads_the_packages_files(tmp_path):
    gguf = pytest.importorskip("gguf")
    rng = np.random.default_rng(0)
    w = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    w.add_uint32("n", 7)
    w.add_float64("f", 0.25)
    w.add_bool("b", True)
    w.add_uint64("large", 2 ** 63 + 1)
    w.add_array("tokens", ["<s>", "ä", ""])
    w.add_array("scores", [0.5, -1.5])
    f32, f16 = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal((2, 2)).astype(np.float16)
    packed = gguf.quants.quantize(rng.standard_normal((4, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("a", f32)
    w.add_tensor("h", f16)
    w.add_tensor("w", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    for source in (tmp_path / "m.gguf", str(tmp_path / "m.gguf"), Tensor(tmp_path / "m.gguf")):
        metadata, tensors = gguf_load(source)
        assert metadata == {"general.architecture": "llama", "n": 7, "f": 0.25, "b": True, "large": 2 ** 63 + 1,
                            "tokens": ["<s>", "ä", ""], "scores": [0.5, -1.5]}
        assert list(tensors) == ["a", "h", "w"] and tensors["h"].dtype == dtypes.float16
        np.testing.assert_array_equal(tensors["a"].numpy(), f32)
        np.testing.assert_array_equal(tensors["h"].numpy(), f16)
        np.testing.assert_array_equal(tensors["w"].numpy(), gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q8_0))
        x = Tensor.ones(2, 64)
        np.testing.assert_allclose((x @ tensors["w"].T).numpy(), x.numpy() @ tensors["w"].numpy().T, rtol=1e-5, atol=1e-5)


def test_the_package_reads_ours(tmp_path):
    gguf = pytest.importorskip("gguf")
    x = Tensor.randn(4, 256)
    metadata = {"general.architecture": "x", "n": 3, "minus": -3, "f": 0.5, "b": False, "s": ["a", "b"], "i": [1, 2], "fs": [.5, 2]}
    gguf_save({"w": x, "b": x[0]}, tmp_path / "m.gguf", metadata, types={"w": "Q4_K"})
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    assert [(t.name, t.tensor_type.name, list(t.shape)) for t in reader.tensors] == [("w", "Q4_K", [256, 4]), ("b", "F32", [256])]
    np.testing.assert_array_equal(gguf.quants.dequantize(reader.tensors[0].data, reader.tensors[0].tensor_type),
                                  gguf_load(tmp_path / "m.gguf")[1]["w"].numpy())
    assert {k: reader.get_field(k).contents() for k in metadata} == metadata


def test_round_trips(tmp_path):
    assert where_tinygrad_has_it is gguf_load
    x = Tensor.randn(2, 64).realize()
    tensors = {"f": x, "h": x.half(), "i": Tensor([1, 2, 3]), "s": Tensor(5.0)}
    metadata = {"text": "ä", "n": 2 ** 40, "list": [1, -1], "none": []}
    gguf_save(tensors, tmp_path / "m.gguf", metadata)
    back, loaded = gguf_load(tmp_path / "m.gguf")
    assert back == metadata
    for name, t in tensors.items():
        assert loaded[name].dtype == t.dtype and loaded[name].shape == t.shape
        np.testing.assert_array_equal(loaded[name].numpy(), t.numpy())


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="GGML type 5 is not supported"):
        ggml_data_to_tensor(Tensor([0], dtype="uint8"), 32, 5)
    with pytest.raises(ValueError, match="Q4_0 has blocks of 32, which do not make up 33"):
        ggml_data_to_tensor(Tensor([0], dtype="uint8"), 33, 2)
    with pytest.raises(ValueError, match="'u' is .*, which GGUF files do not have"):
        gguf_save({"u": Tensor([1], dtype="uint8")}, tmp_path / "m")
    with pytest.raises(ValueError, match="is no type of ggml's; there are F32, F16, Q4_0"):
        gguf_save({"u": Tensor([1.0])}, tmp_path / "m", types="Q9")
    with pytest.raises(FileNotFoundError):
        gguf_load(tmp_path / "none.gguf")
    with pytest.raises(ValueError, match="does not begin with 'GGUF'"):
        gguf_load(Tensor(b"GGJT" + bytes(20)))
    with pytest.raises(ValueError, match="promises 9223372036854775808 metadata pairs"):
        gguf_load(Tensor(b"GGUF" + struct.pack("<IQQ", 3, 0, 2 ** 63)))
    assert not list(tmp_path.iterdir())


def test_models_are_quantised(tmp_path):
    Tensor.manual_seed(1)
    tensors = {f"blk.{i}.{part}.weight": Tensor.randn(8, 256) for i in range(8) for part in ("attn_v", "attn_q")} | {"output.weight": Tensor.randn(8, 256)}
    gguf_save(tensors | {"output_norm.weight": Tensor.ones(256)}, tmp_path / "m.gguf", {"general.architecture": "llama", "llama.block_count": 8})
    quantize(tmp_path / "m.gguf", tmp_path / "q.gguf")
    metadata, loaded = gguf_load(tmp_path / "q.gguf")
    assert metadata["general.file_type"] == 15 and metadata["llama.block_count"] == 8
    for name, x in tensors.items():
        error = (loaded[name] - x).square().mean().item()
        assert error < 0.01 and (error < 0.001) == (name in ("output.weight", *(f"blk.{i}.attn_v.weight" for i in (0, 3, 6, 7))))
    with pytest.raises(ValueError, match="is packed already"):
        quantize(tmp_path / "q.gguf", tmp_path / "r.gguf", "Q2_K")
    quantize(tmp_path / "q.gguf", tmp_path / "r.gguf", "Q2_K", requantize=True)


def test_products_round_as_they_are_told(tmp_path):
    rng = np.random.default_rng(1)
    gguf_save({"w": Tensor(rng.standard_normal((48, 256), np.float32))}, tmp_path / "w.gguf", types="Q4_K")
    w = gguf_load(tmp_path / "w.gguf")[1]["w"]
    x = rng.standard_normal((3, 256), np.float32)
    plain = w.numpy()
    exact = x @ plain.T
    bound = np.abs(x).reshape(3, 8, 32).max(-1) @ np.abs(plain).reshape(48, 8, 32).sum(-1).T
    near = product_with(Tensor(x), w, "q8").numpy()
    assert 0 < np.abs(near - exact).max() and (np.abs(near - exact) <= bound * (1 / 254 + 1e-5)).all()
    assert np.allclose(product_with(Tensor(x), w).numpy(), exact, rtol=1e-5, atol=1e-5)
    assert np.abs(product_with(Tensor(x), w, "auto").numpy() - exact).max() <= bound.max() / 200
    with pytest.raises(ValueError, match="there are no factors 'f8': f32, bf16, q8, or auto"):
        product_with(Tensor(x), w, "f8")
