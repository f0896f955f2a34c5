"""What tests of examples/ for texts, sounds and generated pictures compare with: weights that any library can make, and
diffusers' UNet2DConditionModel and AutoencoderKL as functions of a state dict in PyTorch."""
import pathlib
import subprocess
import sys

import numpy as np

from weft import Tensor, nn

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))


def relative(got, wanted) -> float:
    """The largest difference beside the largest value."""
    got, wanted = (np.asarray(x.numpy() if hasattr(x, "numpy") else x, dtype=np.float64) for x in (got, wanted))
    assert got.shape == wanted.shape, f"shape {got.shape}, wanted {wanted.shape}"
    return float(abs(got - wanted).max() / abs(wanted).max())


def waves(shapes: dict[str, tuple]) -> dict[str, np.ndarray]:
    """Values for each name, that depend on names and shapes alone; scales of norms are near 1."""
    found = {}
    for i, name in enumerate(sorted(shapes)):
        wave = np.sin(np.arange(np.prod(shapes[name], dtype=int)) * (0.7 + 0.013 * i) + i).reshape(shapes[name])
        is_scale = "norm" in name.lower() and name.endswith("weight")
        found[name] = (wave * 0.2 + is_scale).astype(np.float32)
    return found


def given_waves(model) -> dict[str, np.ndarray]:
    """A model of weft's gets waves(), which are returned."""
    state = nn.state.get_state_dict(model)
    found = waves({name: tuple(x.shape) for name, x in state.items()})
    nn.state.load_state_dict(model, {name: Tensor(x) for name, x in found.items()})
    return found


def give_torch(model, values: dict[str, np.ndarray], prefix: str = "") -> None:
    """The same weights for a model of PyTorch's, whose names may have a prefix. What is left out is computed or tied."""
    import torch
    state = {prefix + name: torch.tensor(x) for name, x in values.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith(("position_ids", "proj_out.weight", "pooler.dense.weight", "pooler.dense.bias"))
               for name in missing), missing
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    model.eval()


def run_example(name: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True)


class Diffusers:
    """The layers of a state dict by their names; which of them a model has is seen by looking for them."""

    def __init__(self, values: dict[str, np.ndarray], groups: int) -> None:
        import torch
        self.state, self.groups = {name: torch.tensor(x) for name, x in values.items()}, groups

    def has(self, name: str) -> bool:
        return any(key.startswith(name + ".") for key in self.state)

    def numbered(self, name: str) -> list[str]:
        """name.0, name.1, ... as many as there are."""
        found = []
        while self.has(f"{name}.{len(found)}"):
            found.append(f"{name}.{len(found)}")
        return found

    def linear(self, name, x):
        import torch.nn.functional as F
        return F.linear(x, self.state[name + ".weight"], self.state.get(name + ".bias"))

    def conv(self, name, x, stride=1, padding=None):
        import torch.nn.functional as F
        weight = self.state[name + ".weight"]
        return F.conv2d(x, weight, self.state[name + ".bias"], stride, weight.shape[-1] // 2 if padding is None else padding)

    def group_norm(self, name, x, eps):
        import torch.nn.functional as F
        return F.group_norm(x, self.groups, self.state[name + ".weight"], self.state[name + ".bias"], eps)

    def layer_norm(self, name, x):
        import torch.nn.functional as F
        return F.layer_norm(x, x.shape[-1:], self.state[name + ".weight"], self.state[name + ".bias"])

    def attention(self, name, x, context, heads):
        q, k, v = self.linear(name + ".to_q", x), self.linear(name + ".to_k", context), self.linear(name + ".to_v", context)
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        seen = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
        return self.linear(name + ".to_out.0", seen.transpose(1, 2).flatten(2))

    def resnet(self, name, x, eps, time=None):
        import torch.nn.functional as F
        y = self.conv(name + ".conv1", F.silu(self.group_norm(name + ".norm1", x, eps)))
        if time is not None:
            y = y + self.linear(name + ".time_emb_proj", F.silu(time))[:, :, None, None]
        y = self.conv(name + ".conv2", F.silu(self.group_norm(name + ".norm2", y, eps)))
        return y + (self.conv(name + ".conv_shortcut", x) if self.has(name + ".conv_shortcut") else x)

    def transformer(self, name, x, context, heads):
        import torch.nn.functional as F
        b, c, h, w = x.shape
        y, linear = self.group_norm(name + ".norm", x, 1e-6), self.state[name + ".proj_in.weight"].ndim == 2
        y = self.linear(name + ".proj_in", y.flatten(2).mT) if linear else self.conv(name + ".proj_in", y).flatten(2).mT
        for block in self.numbered(name + ".transformer_blocks"):
            z = self.layer_norm(block + ".norm1", y)
            y = y + self.attention(block + ".attn1", z, z, heads)
            y = y + self.attention(block + ".attn2", self.layer_norm(block + ".norm2", y), context, heads)
            z, gate = self.linear(block + ".ff.net.0.proj", self.layer_norm(block + ".norm3", y)).chunk(2, -1)
            y = y + self.linear(block + ".ff.net.2", z * F.gelu(gate))
        if linear:
            return x + self.linear(name + ".proj_out", y).mT.reshape(b, c, h, w)
        return x + self.conv(name + ".proj_out", y.mT.reshape(b, c, h, w))

    @staticmethod
    def sinusoids(x, width):
        import torch
        angles = x[..., None] * torch.exp(-np.log(10000) * torch.arange(width // 2) / (width // 2))
        return torch.cat([angles.cos(), angles.sin()], -1)

    def embedding(self, name, x):
        import torch.nn.functional as F
        return self.linear(name + ".linear_2", F.silu(self.linear(name + ".linear_1", x)))

    def unet(self, config, x, time, text, pooled=None, sizes=None):
        import torch
        import torch.nn.functional as F
        now = self.embedding("time_embedding", self.sinusoids(time, config.block_out_channels[0]))
        if pooled is not None:
            added = self.sinusoids(sizes, config.addition_time_embed_dim).flatten(1)
            now = now + self.embedding("add_embedding", torch.cat([pooled, added], 1))
        heads = config.each(config.attention_head_dim)
        x = self.conv("conv_in", x)
        skips = [x]
        for block, h in zip(self.numbered("down_blocks"), heads):
            for i, resnet in enumerate(self.numbered(block + ".resnets")):
                x = self.resnet(resnet, x, config.norm_eps, now)
                if self.has(block + ".attentions"):
                    x = self.transformer(f"{block}.attentions.{i}", x, text, h)
                skips.append(x)
            if self.has(block + ".downsamplers"):
                x = self.conv(block + ".downsamplers.0.conv", x, stride=2)
                skips.append(x)
        x = self.resnet("mid_block.resnets.0", x, config.norm_eps, now)
        x = self.transformer("mid_block.attentions.0", x, text, heads[-1])
        x = self.resnet("mid_block.resnets.1", x, config.norm_eps, now)
        for block, h in zip(self.numbered("up_blocks"), heads[::-1]):
            for i, resnet in enumerate(self.numbered(block + ".resnets")):
                x = self.resnet(resnet, torch.cat([x, skips.pop()], 1), config.norm_eps, now)
                if self.has(block + ".attentions"):
                    x = self.transformer(f"{block}.attentions.{i}", x, text, h)
            if self.has(block + ".upsamplers"):
                x = self.conv(block + ".upsamplers.0.conv", F.interpolate(x, scale_factor=2, mode="nearest"))
        return self.conv("conv_out", F.silu(self.group_norm("conv_norm_out", x, config.norm_eps)))

    def vae_mid(self, name, x):
        x = self.resnet(name + ".resnets.0", x, 1e-6)
        y = self.group_norm(name + ".attentions.0.group_norm", x, 1e-6).flatten(2).mT
        x = x + self.attention(name + ".attentions.0", y, y, 1).mT.reshape(x.shape)
        return self.resnet(name + ".resnets.1", x, 1e-6)

    def encode(self, x):
        import torch.nn.functional as F
        x = self.conv("encoder.conv_in", x)
        for block in self.numbered("encoder.down_blocks"):
            for resnet in self.numbered(block + ".resnets"):
                x = self.resnet(resnet, x, 1e-6)
            if self.has(block + ".downsamplers"):
                x = self.conv(block + ".downsamplers.0.conv", F.pad(x, (0, 1, 0, 1)), stride=2, padding=0)
        x = F.silu(self.group_norm("encoder.conv_norm_out", self.vae_mid("encoder.mid_block", x), 1e-6))
        return self.conv("quant_conv", self.conv("encoder.conv_out", x)).chunk(2, 1)[0]

    def decode(self, x):
        import torch.nn.functional as F
        x = self.vae_mid("decoder.mid_block", self.conv("decoder.conv_in", self.conv("post_quant_conv", x)))
        for block in self.numbered("decoder.up_blocks"):
            for resnet in self.numbered(block + ".resnets"):
                x = self.resnet(resnet, x, 1e-6)
            if self.has(block + ".upsamplers"):
                x = self.conv(block + ".upsamplers.0.conv", F.interpolate(x, scale_factor=2, mode="nearest"))
        return self.conv("decoder.conv_out", F.silu(self.group_norm("decoder.conv_norm_out", x, 1e-6)))
