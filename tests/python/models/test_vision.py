"""examples/models: architectures for pictures against PyTorch, published counts of parameters, and the programs."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from weft import Context, GlobalCounters, Tensor, TinyJit, nn
from weft.data import read_picture

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
from models import (  # noqa: E402
    blocks, boxes, coco, command, convnext, efficientnet, mobilenet, pictures, resnet, retinanet, unet, vit, yolov8)


# ---- shapes and counts; nothing is computed

# torchvision's documentation of its weights; ultralytics' of yolov8; milesial's for two classes
@pytest.mark.parametrize("kind, config, count", [
    (resnet.ResNet, resnet.CONFIGS["resnet18"], 11_689_512),
    (resnet.ResNet, resnet.CONFIGS["resnet34"], 21_797_672),
    (resnet.ResNet, resnet.CONFIGS["resnet50"], 25_557_032),
    (resnet.ResNet, resnet.CONFIGS["resnet101"], 44_549_160),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b0"], 5_288_548),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b1"], 7_794_184),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b2"], 9_109_994),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b3"], 12_233_232),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b4"], 19_341_616),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b5"], 30_389_784),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b6"], 43_040_704),
    (efficientnet.EfficientNet, efficientnet.CONFIGS["efficientnet_b7"], 66_347_960),
    (convnext.ConvNeXt, convnext.CONFIGS["convnext_tiny"], 28_589_128),
    (convnext.ConvNeXt, convnext.CONFIGS["convnext_small"], 50_223_688),
    (convnext.ConvNeXt, convnext.CONFIGS["convnext_base"], 88_591_464),
    (convnext.ConvNeXt, convnext.CONFIGS["convnext_large"], 197_767_336),
    (vit.ViT, vit.CONFIGS["vit_b_16"], 86_567_656),
    (vit.ViT, vit.CONFIGS["vit_b_32"], 88_224_232),
    (vit.ViT, vit.CONFIGS["vit_l_16"], 304_326_632),
    (mobilenet.MobileNetV2, mobilenet.CONFIGS["mobilenet_v2"], 3_504_872),
    (mobilenet.MobileNetV3, mobilenet.CONFIGS["mobilenet_v3_large"], 5_483_032),
    (mobilenet.MobileNetV3, mobilenet.CONFIGS["mobilenet_v3_small"], 2_542_856),
    (retinanet.RetinaNet, retinanet.CONFIGS["retinanet_resnet50_fpn"], 34_014_999),
    (unet.UNet, unet.CONFIGS["unet"], 31_037_698),
], ids=lambda value: getattr(value, "__name__", ""))
def test_published_counts(kind, config, count):
    kernels = GlobalCounters.kernel_count
    assert sum(t.numel() for t in blocks.parameters(kind(config))) == count
    assert GlobalCounters.kernel_count == kernels


@pytest.mark.parametrize("name, count", [
    ("yolov8n", 3_157_200), ("yolov8s", 11_166_560), ("yolov8m", 25_902_640)])
def test_yolo_counts(name, count):
    """Ultralytics count the 16 weights of the distances' mean, which never train."""
    assert sum(t.numel() for t in blocks.parameters(yolov8.YOLOv8(yolov8.CONFIGS[name]))) == count - 16


def test_shapes():
    x = Tensor.zeros(2, 3, 224, 224)
    assert resnet.ResNet(resnet.CONFIGS["resnet18"])(x).shape == (2, 1000)
    assert unet.UNet(unet.CONFIGS["unet_small"])(x).shape == (2, 2, 224, 224)
    model = yolov8.YOLOv8(yolov8.CONFIGS["yolov8n"])
    sides, logits = model(x)
    assert sides.shape == (2, 4, 1029) and logits.shape == (2, 80, 1029)
    assert model.detect(x).shape == (2, 300, 6)
    logits, deltas = retinanet.RetinaNet(retinanet.CONFIGS["retinanet_resnet50_fpn"])(x)
    assert logits.shape == (2, 9441, 91) and deltas.shape == (2, 9441, 4)


# ---- values against PyTorch

def randomised(model, spread=1.0, seed=1):
    """Random weights for a model, and the same as what the references take."""
    import torch
    from vision_references import Weights
    rng, given = np.random.default_rng(seed), Weights()
    for name, t in nn.state.get_state_dict(model).items():
        if "num_batches" in name or "dfl" in name:
            continue
        matrix = t.ndim > 1 and "layer_scale" not in name
        if matrix:
            value = rng.normal(size=t.shape) * spread * np.sqrt(2 / np.prod(t.shape[1:]))
        elif name.endswith(("weight", "var", "scale")):
            value = rng.uniform(0.5, 1.5, t.shape)
        else:
            value = rng.normal(size=t.shape) / 10
        t.assign(Tensor(value.astype(np.float32))).realize()
        given[name] = torch.tensor(value.astype(np.float32))
    return given


def assert_near(got, wanted, most=1e-4):
    """Within a part of the largest number."""
    wanted = wanted.detach().numpy()
    assert got.shape == wanted.shape
    assert np.abs(got.numpy() - wanted).max() <= most * np.abs(wanted).max()


def assert_near_as_a_whole(got, wanted, most=2e-3):
    """By length: where an input of relu is nearly 0, a gradient passes or not by the last bit of it."""
    wanted = wanted.numpy()
    assert got.shape == wanted.shape
    assert np.linalg.norm(got.numpy() - wanted) <= most * np.linalg.norm(wanted)


def reference(name):
    pytest.importorskip("torch")
    import vision_references
    return getattr(vision_references, name)


def picture(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


SMALL_V3 = mobilenet.ConfigV3(
    ((3, 16, 16, True, False, 2), (3, 24, 16, False, False, 1), (5, 32, 24, True, True, 1)), 32, classes=10)
SMALL = {
    "resnet": (resnet.ResNet(resnet.Config(True, (1, 2, 1, 1), 8, 10)), {}),
    "efficientnet": (efficientnet.EfficientNet(efficientnet.Config(0.25, 0.5, 0, 0, 0.2, 1e-3, 10)), {"eps": 1e-3}),
    "convnext": (convnext.ConvNeXt(convnext.Config((1, 1, 2, 1), (8, 16, 24, 32), 0.1, classes=10)), {}),
    "vit": (vit.ViT(vit.Config(16, 2, 2, 16, 32, crop=64, classes=10)), {"heads": 2}),
    "mobilenet_v2": (mobilenet.MobileNetV2(mobilenet.ConfigV2(0.25, classes=10)), {}),
    "mobilenet_v3": (mobilenet.MobileNetV3(SMALL_V3), {"acts": "relu relu hardswish".split(), "strides": (2, 1, 1)}),
    "unet": (unet.UNet(unet.Config(3, 4, 2)), {"depth": 2}),
}


@pytest.mark.parametrize("name", SMALL)
def test_forward(name):
    torch = pytest.importorskip("torch")
    model, options = SMALL[name]
    if "acts" in options:
        options = options | {"acts": [getattr(torch.nn.functional, act) for act in options["acts"]]}
    weights, x = randomised(model), picture(2, 3, 64, 64)
    assert_near(model(Tensor(x)), reference(name)(weights, torch.tensor(x), **options))


def test_forward_of_basic_blocks():
    torch = pytest.importorskip("torch")
    model = resnet.ResNet(resnet.Config(False, (1, 1, 1, 1), 8, 10))
    weights, x = randomised(model), picture(2, 3, 64, 64)
    assert_near(model(Tensor(x)), reference("resnet")(weights, torch.tensor(x)))


def test_unet_of_odd_sizes():
    torch = pytest.importorskip("torch")
    model, options = SMALL["unet"]
    weights, x = randomised(model), picture(1, 3, 30, 37)
    assert_near(model(Tensor(x)), reference("unet")(weights, torch.tensor(x), **options))


@pytest.mark.parametrize("name", ["resnet", "vit"])
def test_training_step(name):
    """Gradients of all weights, and what the step makes of them and of running statistics."""
    torch = pytest.importorskip("torch")
    model, options = SMALL[name]
    weights, x, labels = randomised(model), picture(4, 3, 64, 64), np.array([1, 0, 7, 3])
    weights.train = True
    trained = [key for key in weights if not key.endswith(("running_mean", "running_var"))]
    for key in trained:
        weights[key].requires_grad_()
    torch.nn.functional.cross_entropy(reference(name)(weights, torch.tensor(x), **options),
                                      torch.tensor(labels)).backward()

    optimizer = nn.optim.SGD(blocks.parameters(model), lr=0.1)
    own = nn.state.get_state_dict(model)
    with Tensor.train():
        optimizer.zero_grad()
        model(Tensor(x)).cross_entropy(Tensor(labels)).backward()
        for key in trained:
            assert_near_as_a_whole(own[key].grad, weights[key].grad)
        optimizer.step()
    for key, value in weights.items():
        assert_near(own[key], value - 0.1 * value.grad if key in trained else value)


def test_stochastic_depth_leaves_out_examples():
    x = Tensor.ones(64, 2, 3)
    assert (blocks.stochastic_depth(x, 0.25).numpy() == 1).all()
    Tensor.manual_seed(1)
    with Context(TRAINING=1):
        y = blocks.stochastic_depth(x, 0.25).numpy().reshape(64, 6)
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0, np.float32(1 / 0.75)} and 40 <= (y[:, 0] > 0).sum() <= 56


# ---- boxes

def plain_iou(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = np.prod(np.maximum(sides, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def plain_best(corners, scores, classes, count, score, overlap):
    """(box, score, class) that greedy suppression keeps."""
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        rivals = (j for j in kept if classes[j] == classes[i])
        if scores[i] > score and all(plain_iou(corners[i], corners[j]) <= overlap for j in rivals):
            kept.append(i)
    return np.array([[*corners[i], scores[i], classes[i]] for i in kept[:count]], np.float32).reshape(-1, 6)


def made_boxes(count, seed=0):
    rng = np.random.default_rng(seed)
    middles, sides = rng.uniform(0, 60, (count, 2)), rng.uniform(5, 40, (count, 2))
    corners = np.concatenate((middles - sides / 2, middles + sides / 2), 1).astype(np.float32)
    return corners, rng.permutation(count).astype(np.float32) / count, rng.integers(0, 3, count).astype(np.int32)


def assert_found(got, wanted):
    got = got.numpy()
    assert (got[len(wanted):, 4] == 0).all()
    np.testing.assert_allclose(got[:len(wanted)], wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("overlap", [0.1, 0.5, 0.9])
def test_suppression(overlap):
    made = made_boxes(120)
    best = boxes.best(*map(Tensor, made), candidates=120, count=100, score=0.1, overlap=overlap)
    assert_found(best, plain_best(*made, 100, 0.1, overlap))


def test_suppression_of_few_and_of_none():
    corners, scores, classes = map(Tensor, made_boxes(3))
    assert boxes.best(corners, scores, classes, 100, 100, 2.0, 0.5).shape == (3, 6)
    assert boxes.best(corners, scores, classes, 100, 100, 2.0, 0.5).numpy()[:, 4].max() == 0


def test_a_chain_of_boxes():
    """Each covers the next one: the first suppresses the second, which then does not suppress the third, ..."""
    corners = np.array([[i, 0, i + 10, 10] for i in range(0, 48, 4)], np.float32)
    alive = boxes.kept(Tensor(corners), Tensor.zeros(12, dtype="int32"), 0.3)
    assert alive.tolist() == [i % 2 == 0 for i in range(12)]


def test_yolo():
    torch = pytest.importorskip("torch")
    model = yolov8.YOLOv8(yolov8.Config(1 / 3, 0.125, 1024, classes=4))
    weights, x = randomised(model), picture(1, 3, 64, 96)
    corners, probabilities = reference("yolov8")(weights, torch.tensor(x))
    got = model.decode(Tensor(x))
    assert_near(got[0], corners)
    assert_near(got[1], probabilities)
    best, classes = probabilities[0].max(-1)
    wanted = plain_best(corners[0].numpy(), best.numpy(), classes.numpy(), 300, 0.25, 0.7)
    assert len(wanted) > 3
    assert_found(model.detect(Tensor(x))[0], wanted)


def test_retinanet():
    torch = pytest.importorskip("torch")
    model = retinanet.RetinaNet(retinanet.Config(resnet.Config(True, (1, 1, 1, 1), 4), 16, 5))
    weights, x = randomised(model, spread=0.6), picture(1, 3, 64, 96)
    levels = reference("retinanet")(weights, torch.tensor(x), 5)
    for (logits, deltas, around), (wanted, corners) in zip(model.levels(Tensor(x)), levels):
        assert_near(logits, wanted)
        assert_near(retinanet.decoded(deltas, around), corners)
    found = []
    for logits, corners in levels:  # pairs of a place and a class
        corners = corners[0].clamp(min=0).minimum(torch.tensor([90.0, 60, 90, 60]))
        scores, pairs = logits[0].sigmoid().flatten().sort(descending=True, stable=True)
        found += [(*corners[i // 5].numpy(), s, i % 5) for s, i in zip(scores[:50].tolist(), pairs[:50].tolist())]
    found = np.array(found, np.float32)
    wanted = plain_best(found[:, :4], found[:, 4], found[:, 5], 100, 0.05, 0.5)
    assert len(wanted) > 3
    assert_found(model.detect(Tensor(x), (60, 90), candidates=50, count=100)[0], wanted)


def test_a_captured_detector():
    """Suppression and all: the third call replays, and finds what is on its own picture."""
    model = yolov8.YOLOv8(yolov8.Config(1 / 3, 0.125, 1024, classes=4))
    Tensor.realize(*nn.state.get_parameters(model))
    captured = TinyJit(lambda x: model.detect(x, score=0.0, candidates=60, count=20))
    for seed in range(3):
        x = Tensor(picture(2, 3, 64, 64, seed=seed))
        got = captured(x).numpy()
    wanted = model.detect(x, score=0.0, candidates=60, count=20).numpy()
    assert captured.captured and (wanted[0] != wanted[1]).any()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


def test_names_of_older_files():
    layer = "encoder.layers.encoder_layer_3"
    assert vit.ViT.renamed(f"{layer}.mlp.linear_2.bias") == f"{layer}.mlp.3.bias"
    assert retinanet.RetinaNet.renamed("backbone.fpn.inner_blocks.1.weight") == "backbone.fpn.inner_blocks.1.0.weight"
    assert retinanet.RetinaNet.renamed("head.regression_head.conv.6.bias") == "head.regression_head.conv.3.0.bias"
    assert retinanet.RetinaNet.renamed("backbone.body.bn1.num_batches_tracked") is None
    for name in nn.state.get_state_dict(retinanet.RetinaNet(retinanet.CONFIGS["retinanet_resnet50_fpn"])):
        assert retinanet.RetinaNet.renamed(name) == name


# ---- pictures

@pytest.mark.parametrize("filter, mode", [("linear", "bilinear"), ("cubic", "bicubic")])
@pytest.mark.parametrize("size", [(20, 31), (90, 60)])
def test_resizing(filter, mode, size):
    torch = pytest.importorskip("torch")
    x = picture(3, 50, 70)
    wanted = torch.nn.functional.interpolate(torch.tensor(x)[None], size, mode=mode, antialias=True)[0]
    assert_near(pictures.resized(Tensor(x), *size, filter), wanted, 1e-5)


def test_preparations():
    x = Tensor.rand(3, 50, 70)
    assert pictures.for_classes(x, 40, 32).shape == (1, 3, 32, 32)
    boxed, scale, left, top = pictures.letterboxed(x, 64)
    assert boxed.shape == (1, 3, 64, 64) and (scale, left, top) == (64 / 70, 0, 9)
    assert np.allclose(boxed.numpy()[0, :, :9], 114 / 255)
    padded, scale, size = pictures.within(x, 100, 120)
    assert padded.shape == (1, 3, 96, 128) and scale == 120 / 70 and size == (85, 120)
    assert (padded.numpy()[0, :, 85:] == 0).all()


def test_drawing(tmp_path):
    canvas = pictures.Canvas(Tensor.zeros(3, 20, 30))
    canvas.frame(-5, 2, 40, 12, b"\xff\x00\x00")
    canvas.text(3, 10, "i-9", b"\0\0\xff", 1)
    canvas.save(tmp_path / "drawn.png")
    drawn = read_picture(tmp_path / "drawn.png").numpy()
    assert drawn.shape == (20, 30, 3) and drawn[2:4, :, 0].min() == 255 and drawn[0].max() == 0
    assert drawn[10, 3:16].tolist() == [[0, 0, 255]] * 13 and drawn[11, 4:7].tolist() == [[0, 0, 0]] * 3


def test_names_of_coco():
    assert len(coco.CLASSES) == 91 and len(coco.THINGS) == 80
    assert coco.CLASSES[90] == coco.THINGS[79] == "toothbrush" and coco.CLASSES[3] == coco.THINGS[2] == "car"


# ---- programs

@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "made.png"
    pictures.Canvas(Tensor(np.random.default_rng(0).uniform(size=(3, 40, 56)).astype(np.float32))).save(path)
    return path


def call(program, *arguments):
    return subprocess.run([sys.executable, EXAMPLES / program, *map(str, arguments)], capture_output=True, text=True)


def test_classify(file, tmp_path):
    model = mobilenet.MobileNetV3(mobilenet.CONFIGS["mobilenet_v3_small"])
    nn.state.torch_save(nn.state.get_state_dict(model), tmp_path / "weights.pth")
    (tmp_path / "labels.txt").write_text("".join(f"thing {i}\n" for i in range(1000)))
    ran = call("classify.py", "--model", "mobilenet_v3_small", "--weights", tmp_path / "weights.pth", "--labels",
               tmp_path / "labels.txt", "--json", "--bench", 1, "--threads", 1, "--device", "CPU", file, file)
    assert ran.returncode == 0 and ran.stderr == ""
    first, second = map(json.loads, ran.stdout.splitlines())
    x = pictures.for_classes(pictures.read(file), 256, 224)
    wanted = model(x).softmax(1)[0].numpy()
    assert first["classes"] == second["classes"] and first["ms"] > 0
    assert first["classes"][0]["label"] == f"thing {wanted.argmax()}" and len(first["classes"]) == 5
    assert abs(first["classes"][0]["probability"] - wanted.max()) < 1e-5


def test_detect(file, tmp_path):
    ran = call("detect.py", "--size", 64, "--score", 0.0, "--output", tmp_path / "boxes.png", file)
    assert ran.returncode == 0 and "random" in ran.stderr
    title, *rows = ran.stdout.splitlines()
    assert title == f"{file}: {len(rows)} boxes" and len(rows) > 0
    for row in rows:
        x1, y1, x2, y2 = map(float, row.split()[-4:])
        assert 0 <= x1 <= x2 <= 56 and 0 <= y1 <= y2 <= 40
    assert read_picture(tmp_path / "boxes.png").shape == (40, 56, 3)


def test_segment(file, tmp_path):
    ran = call("segment.py", "--model", "unet_small", "--json", "--scale", 1, "--output", tmp_path, file)
    assert ran.returncode == 0 and abs(sum(json.loads(ran.stdout)["shares"]) - 1) < 1e-5
    assert read_picture(tmp_path / "made.png").shape == (40, 56, 3)


@pytest.mark.parametrize("arguments, message", [
    (("classify.py", "no.png"), "no.png"),
    (("classify.py", "--weights", "weights.onnx", "no.png"), "files end in .safetensors, .pt, .pth, .npz"),
    (("classify.py", "--weights", "no.npz", "no.png"), "no.npz"),
    (("classify.py", "--device", "TOASTER", "no.png"), "TOASTER"),
    (("detect.py", "--size", "50", "no.png"), "multiple of 32"),
], ids=lambda value: "")
def test_errors_are_one_line(arguments, message):
    ran = call(*arguments)
    assert ran.returncode == 1 and ran.stdout == ""
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("no --weights")]
    assert len(lines) == 1 and lines[0].startswith(arguments[0]) and message in lines[0]


def test_weights_that_do_not_fit(tmp_path):
    nn.state.safe_save({"fc.weight": Tensor.zeros(2, 2)}, tmp_path / "other.safetensors")
    model = resnet.ResNet(resnet.Config(False, (1, 1, 1, 1), 8, 10))
    with pytest.raises(ValueError, match="missing: conv1.weight.*unexpected|fc.weight"):
        command.load(model, str(tmp_path / "other.safetensors"))


def test_weights_within_a_checkpoint(tmp_path):
    """As they are without counts of batches, which old files lack."""
    one, other = (resnet.ResNet(resnet.Config(False, (1, 1, 1, 1), 8, 10)) for _ in range(2))
    state = {name: x for name, x in nn.state.get_state_dict(one).items() if "num_batches" not in name}
    nn.state.npz_save(state, tmp_path / "weights.npz")
    command.load(other, str(tmp_path / "weights.npz"))
    assert (other.fc.weight == one.fc.weight).all().item()
