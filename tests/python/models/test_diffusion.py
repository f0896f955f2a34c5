"""Stable Diffusion of examples/: parts against diffusers' layers in PyTorch, samplers against their papers in NumPy."""
import json
import math

import numpy as np
import pytest

from media_references import Diffusers, given_waves, relative, run_example
from weft import Tensor, nn
from weft.data import read_picture

from models import clip, diffusion_unet as unet, samplers, stable_diffusion, vae
from models.stable_diffusion import StableDiffusion


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def unet_inputs(config):
    inputs = [numbers(2, 4, 8, 8), np.array([981.0, 3.0], np.float32), numbers(2, 5, config.cross_attention_dim, seed=1)]
    if config.addition_embed_type:
        inputs += [numbers(2, 32, seed=2), np.array([[64, 96, 0, 8, 64, 96]] * 2, np.float32)]
    return inputs


# ---- parts

@pytest.mark.parametrize("config", [unet.TINY, unet.TINY_XL], ids=["sd", "xl"])
def test_unet_like_diffusers(config):
    torch = pytest.importorskip("torch")
    model = unet.UNet(config)
    wanted = Diffusers(given_waves(model), config.norm_num_groups).unet(config, *map(torch.tensor, unet_inputs(config)))
    assert relative(model(*map(Tensor, unet_inputs(config))), wanted) < 1e-4


def test_vae_like_diffusers():
    torch = pytest.importorskip("torch")
    model = vae.VAE(vae.TINY)
    reference = Diffusers(given_waves(model), vae.TINY.norm_num_groups)
    latents, images = numbers(2, 4, 4, 4), numbers(2, 3, 8, 8)
    assert relative(model.decode(Tensor(latents)), reference.decode(torch.tensor(latents) / 0.18215)) < 1e-4
    assert relative(model.encode(Tensor(images)), reference.encode(torch.tensor(images)) * 0.18215) < 1e-4


@pytest.mark.parametrize("config", [unet.TINY, unet.TINY_XL], ids=["sd", "xl"])
def test_unet_stored(config):
    """What diffusers 0.42.1 computes of the same weights."""
    model = unet.UNet(config)
    given_waves(model)
    got = model(*map(Tensor, unet_inputs(config))).numpy()
    assert relative(got[1, 2, 3, 2:6], STORED[config.addition_embed_type]) < 1e-3


STORED = {"": [0.40878737, -0.57890850, 0.33988509, 0.36683542],
          "text_time": [0.69502181, 0.64257544, 0.06509680, -0.38415509]}


@pytest.mark.parametrize("size, parameters", [("sd", 859_520_964), ("sdxl", 2_567_463_684)])
def test_real_widths_have_as_many_parameters_as_published(size, parameters):
    """The model cards' counts; nothing is computed."""
    _, config, _ = stable_diffusion.SIZES[size]
    assert sum(math.prod(p.shape) for p in nn.state.get_parameters(unet.UNet(config))) == parameters


def test_autoencoder_has_as_many_parameters_as_published():
    assert sum(math.prod(p.shape) for p in nn.state.get_parameters(vae.VAE())) == 83_653_863


def test_names_of_old_autoencoders(tmp_path):
    model = vae.VAE(vae.TINY)
    values = {}
    for name, x in given_waves(model).items():
        for new, old in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
            if f"attentions.0.{new}." in name:
                name = name.replace(new, old)
                x = x[..., None, None] if x.ndim == 2 else x  # products were convolutions of size 1
        values[name] = Tensor(x)
    nn.state.safe_save(values, tmp_path / "diffusion_pytorch_model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(vars(vae.TINY) | {"_class_name": "AutoencoderKL"}))
    read = vae.VAE.from_folder(tmp_path)
    latents = Tensor(numbers(1, 4, 4, 4))
    assert relative(read.decode(latents), model.decode(latents)) < 1e-6


def test_a_block_that_is_not_known():
    with pytest.raises(ValueError, match="unet/config.json: 'AttnDownBlock2D' is not supported"):
        unet.UNetConfig(down_block_types=("AttnDownBlock2D",))


# ---- samplers: the papers' own variables

SHARES = np.cumprod(1 - np.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000) ** 2)


def model_noise(x, time):
    """Some function of noisy latents that is not linear in them."""
    return np.tanh(x * 0.7 + time / 900) + 0.1 * x


def ddim(x, times, fresh, eta):
    """Song et al. 2020, equation 12; the time after the last has the first share of the training."""
    for i, t in enumerate(times):
        a = SHARES[t]
        b = SHARES[times[i + 1]] if i + 1 < len(times) else (SHARES[0] if eta == 0 else 1.0)
        e = model_noise(x, t)
        sigma = eta * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        predicted = (x - np.sqrt(1 - a) * e) / np.sqrt(a)
        x = np.sqrt(b) * predicted + np.sqrt(1 - b - sigma ** 2) * e + sigma * fresh[i]
    return x


def euler(x, times, fresh, ancestral):
    """Karras et al. 2022 in x / sqrt(a), whose noise is s; k-diffusion's sample_euler and sample_euler_ancestral."""
    s = np.append(np.sqrt(1 / SHARES[times] - 1), 0)
    y = x * np.sqrt(s[0] ** 2 + 1)
    for i, t in enumerate(times):
        denoised = y - s[i] * model_noise(y / np.sqrt(s[i] ** 2 + 1), t)
        up = min(s[i + 1], (s[i + 1] ** 2 * (s[i] ** 2 - s[i + 1] ** 2) / s[i] ** 2) ** 0.5) if ancestral else 0.0
        down = (s[i + 1] ** 2 - up ** 2) ** 0.5
        y = y + (y - denoised) / s[i] * (down - s[i]) + up * fresh[i]
    return y


def dpmpp_2m(x, times, fresh):
    """Lu et al. 2022, algorithm 2, by alpha, sigma and lambda."""
    alpha, sigma = np.sqrt(np.append(SHARES[times], 1)), np.sqrt(np.append(1 - SHARES[times], 0))
    with np.errstate(divide="ignore"):
        lam = np.log(alpha) - np.log(sigma)
    before = None
    for i, t in enumerate(times):
        d = (x - sigma[i] * model_noise(x, t)) / alpha[i]
        h, mixed = lam[i + 1] - lam[i], d
        if before is not None and np.isfinite(h):
            r = (lam[i] - lam[i - 1]) / h
            mixed = (1 + 1 / (2 * r)) * d - 1 / (2 * r) * before
        x = sigma[i + 1] / sigma[i] * x - alpha[i + 1] * np.expm1(-h) * mixed
        before = d
    return x


REFERENCES = {"ddim": lambda *a: ddim(*a, 0.0), "ddpm": lambda *a: ddim(*a, 1.0), "euler": lambda *a: euler(*a, False),
              "euler-ancestral": lambda *a: euler(*a, True), "dpmpp-2m": dpmpp_2m}


@pytest.mark.parametrize("sampler", samplers.SAMPLERS)
@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_samplers_like_their_papers(sampler, steps):
    rows, start = samplers.table(sampler, steps), numbers(6).astype(np.float64)
    fresh = numbers(steps, 6, seed=5).astype(np.float64)
    times = np.array(samplers.even_times(steps))
    x, before = start, np.zeros(6)
    for row, new in zip(rows, fresh):
        x, before = samplers.apply(row, x, model_noise(x, row[0]), before, new)
    np.testing.assert_allclose(x, REFERENCES[sampler](start, times, fresh), rtol=1e-9, atol=1e-12)


def test_times():
    assert samplers.even_times(4) == [751, 501, 251, 1]
    shares = samplers.pictures()
    np.testing.assert_allclose(shares, SHARES, rtol=1e-12)
    times = samplers.karras_times(9, shares)
    ratios = [samplers.ratio(samplers.share_at(t, shares)) for t in times]
    first, last = np.sqrt(1 / SHARES[[-1, 0]] - 1)
    wanted = np.linspace(first ** (1 / 7), last ** (1 / 7), 9) ** 7
    np.testing.assert_allclose(ratios, wanted, rtol=1e-9)
    assert times[0] == pytest.approx(999) and times[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("wrong, text", [(("heun", 5), "sampler 'heun' is not known: one of ddim"),
                                         (("ddim", 0), "0 steps: give a number from 1 to 999"),
                                         (("ddim", 1000), "1000 steps")])
def test_wrong_samplers(wrong, text):
    with pytest.raises(ValueError, match=text):
        samplers.table(*wrong)


# ---- all of it

def test_one_capture_for_all_samplers():
    Tensor.manual_seed(0)
    model = StableDiffusion.random("tiny")
    for part in (model.encoders, model.unet, model.vae):
        Tensor.realize(*nn.state.get_parameters(part))
    pictures = []
    for sampler in samplers.SAMPLERS:
        Tensor.manual_seed(1)
        pictures.append(model.generate("a cat", steps=4, size=(16, 16), sampler=sampler).numpy())
    Tensor.manual_seed(1)
    again = model.generate("a cat", steps=4, size=(16, 16), sampler="ddim").numpy()
    assert model.step.captured and model.step.cnt >= 2
    assert (again == pictures[0]).all() and (pictures[0] != pictures[1]).any()
    with pytest.raises(ValueError, match="size 18 x 16: give multiples of 4"):
        model.generate("a cat", size=(18, 16))


def saved(folder, model, config, file, **more):
    folder.mkdir(parents=True)
    nn.state.safe_save(nn.state.get_state_dict(model), folder / file)
    (folder / "config.json").write_text(json.dumps(vars(config) | more))


@pytest.mark.parametrize("size", ["tiny", "tiny-xl"])
def test_folders_of_diffusers(tmp_path, size):
    Tensor.manual_seed(3)
    model = StableDiffusion.random(size)
    for i, encoder in enumerate(model.encoders):
        end, kind = ("", "CLIPTextModel") if i == 0 else ("_2", "CLIPTextModelWithProjection")
        saved(tmp_path / f"text_encoder{end}", encoder, encoder.config, "model.safetensors", architectures=[kind])
        (tmp_path / f"tokenizer{end}").mkdir()
        names = [chr(ord("a") + i) for i in range(26)] + [f"{chr(ord('a') + i)}</w>" for i in range(26)]
        vocabulary = {name: i for i, name in enumerate(names)} | {clip.FIRST: 97, clip.LAST: 98}
        (tmp_path / f"tokenizer{end}" / "vocab.json").write_text(json.dumps(vocabulary))
        (tmp_path / f"tokenizer{end}" / "merges.txt").write_text("#version: 0.2\n")
    saved(tmp_path / "unet", model.unet, model.unet.config, "diffusion_pytorch_model.safetensors")
    saved(tmp_path / "vae", model.vae, model.vae.config, "diffusion_pytorch_model.safetensors")
    read = StableDiffusion.from_folder(tmp_path)
    model.tokenizers = read.tokenizers
    pictures = []
    for each in (model, read):
        Tensor.manual_seed(1)
        pictures.append(each.generate("a cat", "dogs", steps=2, size=(16, 16)).numpy())
    assert (pictures[0] == pictures[1]).all()
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "scheduler" / "scheduler_config.json").write_text('{"prediction_type": "v_prediction"}')
    with pytest.raises(ValueError, match="predicts 'v_prediction'; those that predict noise"):
        StableDiffusion.from_folder(tmp_path)


@pytest.mark.parametrize("config", ["tiny", "tiny-xl"])
def test_program(tmp_path, config):
    output = tmp_path / "picture.png"
    done = run_example("generate_image.py", "a cat", "--config", config, "--steps", 2, "--size", "24x16", "--output",
                       output, "--json")
    assert done.returncode == 0, done.stderr
    assert "weights are random" in done.stderr and "step 2 of 2" in done.stderr
    said = json.loads(done.stdout)
    assert (said["width"], said["height"], said["steps"]) == (24, 16, 2)
    assert read_picture(output).shape == (16, 24, 3)


@pytest.mark.parametrize("arguments, text", [
    (["--size", "big"], "size 'big': give a side as 512, or width and height as 640x512"),
    (["--size", "17"], "size 17 x 17: give multiples of 4"),
    (["--model", "/nowhere/at/all"], "No such file or directory"),
    (["--steps", "0"], "0 steps: give a number from 1 to 999"),
])
def test_program_errors(arguments, text):
    done = run_example("generate_image.py", "a cat", *arguments)
    assert done.returncode == 1 and text in done.stderr.splitlines()[-1]


def test_plans():
    done = run_example("plan_models.py", "tiny", "tiny-xl", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 8 and all(row["kernels"] > 0 and row["planned_bytes"] > row["weights_bytes"] for row in rows)
