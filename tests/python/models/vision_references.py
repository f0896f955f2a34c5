"""Vision models as functions of a state dict in PyTorch, written from the papers and from what public checkpoints name
their weights: what examples/models is compared with."""
import itertools
import math

import torch
import torch.nn.functional as F


class Weights(dict):
    """A state dict with layers by name. train: batch norms normalise by the batch."""
    train = False

    def conv(self, name, x, stride=1, padding=None, groups=1):
        weight = self[f"{name}.weight"]
        padding = weight.shape[-1] // 2 if padding is None else padding
        return F.conv2d(x, weight, self.get(f"{name}.bias"), stride, padding, 1, groups)

    def norm(self, name, x, eps=1e-5):
        return F.batch_norm(x, self[f"{name}.running_mean"], self[f"{name}.running_var"], self[f"{name}.weight"],
                            self[f"{name}.bias"], self.train, 0.1, eps)

    def layer_norm(self, name, x, eps=1e-6):
        return F.layer_norm(x, x.shape[-1:], self[f"{name}.weight"], self[f"{name}.bias"], eps)

    def linear(self, name, x):
        return F.linear(x, self[f"{name}.weight"], self[f"{name}.bias"])

    def has(self, prefix):
        return any(name.startswith(f"{prefix}.") for name in self)

    def count(self, prefix):
        """Members of a list."""
        return next(i for i in itertools.count() if not self.has(f"{prefix}.{i}"))


# ---- classifiers

def resnet_maps(w, x, prefix="", eps=1e-5):
    x = F.relu(w.norm(f"{prefix}bn1", w.conv(f"{prefix}conv1", x, 2), eps))
    x = F.max_pool2d(x, 3, 2, 1)
    maps = []
    for i in range(1, 5):
        for j in range(w.count(f"{prefix}layer{i}")):
            x = _residual(w, f"{prefix}layer{i}.{j}", x, 2 if i > 1 and j == 0 else 1, eps)
        maps.append(x)
    return maps


def _residual(w, name, x, stride, eps):
    deep = w.has(f"{name}.conv3")
    y = F.relu(w.norm(f"{name}.bn1", w.conv(f"{name}.conv1", x, 1 if deep else stride), eps))
    y = w.norm(f"{name}.bn2", w.conv(f"{name}.conv2", y, stride if deep else 1), eps)
    if deep:
        y = w.norm(f"{name}.bn3", w.conv(f"{name}.conv3", F.relu(y)), eps)
    if w.has(f"{name}.downsample"):
        x = w.norm(f"{name}.downsample.1", w.conv(f"{name}.downsample.0", x, stride), eps)
    return F.relu(x + y)


def resnet(w, x):
    return w.linear("fc", resnet_maps(w, x)[-1].mean((2, 3)))


def _block(w, name, x, stride, act, eps, gate=None):
    """Inverted residuals of EfficientNet and MobileNetV3; gate: (squeeze's activation, excite's)."""
    y, last = x, w.count(f"{name}.block") - 1
    for i in range(last + 1):
        part = f"{name}.block.{i}"
        if w.has(f"{part}.fc1"):
            s = gate[0](w.conv(f"{part}.fc1", F.adaptive_avg_pool2d(y, 1)))
            y = y * gate[1](w.conv(f"{part}.fc2", s))
            continue
        kernels = w[f"{part}.0.weight"]
        each = kernels.shape[1] == 1 and i < last
        y = w.norm(f"{part}.1", w.conv(f"{part}.0", y, stride if each else 1, groups=len(kernels) if each else 1), eps)
        y = act(y) if i < last else y
    return x + y if stride == 1 and x.shape == y.shape else y


def efficientnet(w, x, eps):
    x = F.silu(w.norm("features.0.1", w.conv("features.0.0", x, 2), eps))
    for i, stride in enumerate((1, 2, 2, 2, 1, 2, 1), 1):
        for j in range(w.count(f"features.{i}")):
            x = _block(w, f"features.{i}.{j}", x, stride if j == 0 else 1, F.silu, eps, (F.silu, torch.sigmoid))
    x = F.silu(w.norm("features.8.1", w.conv("features.8.0", x), eps))
    return w.linear("classifier.1", x.mean((2, 3)))


def mobilenet_v3(w, x, acts, strides):
    x = F.hardswish(w.norm("features.0.1", w.conv("features.0.0", x, 2), 1e-3))
    for i, (act, stride) in enumerate(zip(acts, strides), 1):
        x = _block(w, f"features.{i}", x, stride, act, 1e-3, (F.relu, F.hardsigmoid))
    last = len(strides) + 1
    x = F.hardswish(w.norm(f"features.{last}.1", w.conv(f"features.{last}.0", x), 1e-3))
    return w.linear("classifier.3", F.hardswish(w.linear("classifier.0", x.mean((2, 3)))))


def mobilenet_v2(w, x):
    x = F.relu6(w.norm("features.0.1", w.conv("features.0.0", x, 2)))
    strides = [1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1]
    for i, stride in enumerate(strides, 1):
        name, y = f"features.{i}.conv", x
        if i > 1:
            y = F.relu6(w.norm(f"{name}.0.1", w.conv(f"{name}.0.0", y)))
        each = int(i > 1)
        y = F.relu6(w.norm(f"{name}.{each}.1", w.conv(f"{name}.{each}.0", y, stride, groups=y.shape[1])))
        y = w.norm(f"{name}.{each + 2}", w.conv(f"{name}.{each + 1}", y))
        x = x + y if stride == 1 and x.shape == y.shape else y
    x = F.relu6(w.norm("features.18.1", w.conv("features.18.0", x)))
    return w.linear("classifier.1", x.mean((2, 3)))


def convnext(w, x):
    def over_channels(name, x):
        return w.layer_norm(name, x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    x = over_channels("features.0.1", w.conv("features.0.0", x, 4, 0))
    for i in range(1, 8):
        if i % 2 == 0:
            x = w.conv(f"features.{i}.1", over_channels(f"features.{i}.0", x), 2, 0)
            continue
        for j in range(w.count(f"features.{i}")):
            name = f"features.{i}.{j}"
            y = w.conv(f"{name}.block.0", x, groups=x.shape[1])
            y = F.gelu(w.linear(f"{name}.block.3", w.layer_norm(f"{name}.block.2", y.permute(0, 2, 3, 1))))
            x = x + w[f"{name}.layer_scale"] * w.linear(f"{name}.block.5", y).permute(0, 3, 1, 2)
    return w.linear("classifier.2", over_channels("classifier.0", x.mean((2, 3), True)).flatten(1))


def vit(w, x, heads):
    patch = w["conv_proj.weight"].shape[-1]
    x = w.conv("conv_proj", x, patch, 0).flatten(2).transpose(1, 2)
    x = torch.cat((w["class_token"].expand(len(x), -1, -1), x), 1) + w["encoder.pos_embedding"]
    for i in itertools.count():
        name = f"encoder.layers.encoder_layer_{i}"
        if not w.has(name):
            break
        y = w.layer_norm(f"{name}.ln_1", x)
        qkv = F.linear(y, w[f"{name}.self_attention.in_proj_weight"], w[f"{name}.self_attention.in_proj_bias"])
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
        y = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
        x = x + w.linear(f"{name}.self_attention.out_proj", y.transpose(1, 2).flatten(2))
        y = F.gelu(w.linear(f"{name}.mlp.0", w.layer_norm(f"{name}.ln_2", x)))
        x = x + w.linear(f"{name}.mlp.3", y)
    return w.linear("heads.head", w.layer_norm("encoder.ln", x)[:, 0])


# ---- pixels and boxes

def unet(w, x, depth):
    def double(name, x):
        x = F.relu(w.norm(f"{name}.double_conv.1", w.conv(f"{name}.double_conv.0", x)))
        return F.relu(w.norm(f"{name}.double_conv.4", w.conv(f"{name}.double_conv.3", x)))
    maps = [double("inc", x)]
    for i in range(1, depth + 1):
        maps.append(double(f"down{i}.maxpool_conv.1", F.max_pool2d(maps[-1], 2)))
    x = maps.pop()
    for i in range(1, depth + 1):
        y, skipped = F.conv_transpose2d(x, w[f"up{i}.up.weight"], w[f"up{i}.up.bias"], 2), maps.pop()
        dy, dx = skipped.shape[2] - y.shape[2], skipped.shape[3] - y.shape[3]
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        x = double(f"up{i}.conv", torch.cat((skipped, y), 1))
    return w.conv("outc.conv", x)


def yolov8(w, x):
    """Boxes (n, places, 4) in pixels, probabilities (n, places, classes)."""
    def conv(name, x, stride=1):
        return F.silu(w.norm(f"{name}.bn", w.conv(f"{name}.conv", x, stride), 1e-3))

    def c2f(i, x, shortcut):
        parts = list(conv(f"model.{i}.cv1", x).chunk(2, 1))
        for j in range(w.count(f"model.{i}.m")):
            y = conv(f"model.{i}.m.{j}.cv2", conv(f"model.{i}.m.{j}.cv1", parts[-1]))
            parts.append(parts[-1] + y if shortcut else y)
        return conv(f"model.{i}.cv2", torch.cat(parts, 1))

    def twice(x):
        return F.interpolate(x, scale_factor=2.0, mode="nearest")
    height = x.shape[2]
    x = c2f(2, conv("model.1", conv("model.0", x, 2), 2), True)
    p3 = c2f(4, conv("model.3", x, 2), True)
    p4 = c2f(6, conv("model.5", p3, 2), True)
    y = conv("model.9.cv1", c2f(8, conv("model.7", p4, 2), True))
    pools = [y] + [F.max_pool2d(y, k, 1, k // 2) for k in (5, 9, 13)]
    p5 = conv("model.9.cv2", torch.cat(pools, 1))
    p4 = c2f(12, torch.cat((twice(p5), p4), 1), False)
    p3 = c2f(15, torch.cat((twice(p4), p3), 1), False)
    p4 = c2f(18, torch.cat((conv("model.16", p3, 2), p4), 1), False)
    p5 = c2f(21, torch.cat((conv("model.19", p4, 2), p5), 1), False)
    boxes, probabilities = [], []
    for i, m in enumerate((p3, p4, p5)):
        def head(kind):
            name = f"model.22.{kind}.{i}"
            return w.conv(f"{name}.2", conv(f"{name}.1", conv(f"{name}.0", m))).permute(0, 2, 3, 1)
        sides = head("cv2").unflatten(-1, (4, 16)).softmax(-1) @ torch.arange(16.0)
        ys, xs = torch.meshgrid(torch.arange(m.shape[2]) + 0.5, torch.arange(m.shape[3]) + 0.5, indexing="ij")
        left, top, right, bottom = sides.unbind(-1)
        stride = height / m.shape[2]
        boxes.append((torch.stack((xs - left, ys - top, xs + right, ys + bottom), -1) * stride).flatten(1, 2))
        probabilities.append(head("cv3").sigmoid().flatten(1, 2))
    return torch.cat(boxes, 1), torch.cat(probabilities, 1)


def retinanet(w, x, classes):
    """Of each level logits (n, anchors, classes), boxes (n, anchors, 4) before they are cut at the picture's sides."""
    maps = resnet_maps(w, x, "backbone.body.", 0.0)[1:]
    inner = [w.conv(f"backbone.fpn.inner_blocks.{i}.0", m) for i, m in enumerate(maps)]
    for i in (1, 0):
        inner[i] = inner[i] + F.interpolate(inner[i + 1], inner[i].shape[2:], mode="nearest")
    levels = [w.conv(f"backbone.fpn.layer_blocks.{i}.0", m) for i, m in enumerate(inner)]
    levels.append(w.conv("backbone.fpn.extra_blocks.p6", levels[-1], 2))
    levels.append(w.conv("backbone.fpn.extra_blocks.p7", F.relu(levels[-1]), 2))

    def head(kind, last, m, outputs):
        for i in range(4):
            m = F.relu(w.conv(f"head.{kind}.conv.{i}.0", m))
        y = w.conv(f"head.{kind}.{last}", m)
        return y.unflatten(1, (9, outputs)).permute(0, 3, 4, 1, 2).flatten(1, 3)
    return [(head("classification_head", "cls_logits", m, classes),
             _moved(head("regression_head", "bbox_reg", m, 4), _anchors(32 << i, m.shape[2:], x.shape[2:])))
            for i, m in enumerate(levels)]


def _anchors(size, grid, picture):
    found = []
    strides = [whole // parts for whole, parts in zip(picture, grid)]
    for y, x, ratio, power in itertools.product(range(grid[0]), range(grid[1]), (0.5, 1.0, 2.0), range(3)):
        scale = int(size * 2 ** (power / 3))
        h, w = scale * math.sqrt(ratio), scale / math.sqrt(ratio)
        corners = (torch.tensor([-w, -h, w, h]) / 2).round()
        found.append(corners + torch.tensor([x * strides[1], y * strides[0]] * 2))
    return torch.stack(found)


def _moved(deltas, anchors):
    x1, y1, x2, y2 = anchors.unbind(-1)
    w, h = x2 - x1, y2 - y1
    dx, dy, dw, dh = deltas.unbind(-1)
    x, y = x1 + w / 2 + dx * w, y1 + h / 2 + dy * h
    most = math.log(1000 / 16)
    w, h = w * dw.clamp(max=most).exp(), h * dh.clamp(max=most).exp()
    return torch.stack((x - w / 2, y - h / 2, x + w / 2, y + h / 2), -1)
