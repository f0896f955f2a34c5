"""Writes tests/nn/pytorch_values.h and pytorch_names.h: what PyTorch computes for the cases of tests/nn, and calls it.

    pip install torch==2.13.0
    python3 tests/nn/reference.py

Weights, inputs and gradients are some_floats() of tests/nn/close.h, in f64.
"""
import math
import pathlib
import torch
from torch import nn, optim

torch.set_default_dtype(torch.float64)
values = {}
names = {}


def some(shape, seed=1):
    state, out = (seed * 2654435761 + 12345) & 0xffffffff, []
    for _ in range(math.prod(shape)):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        out.append((state >> 8) / 8388608 - 1)
    return torch.tensor(out).reshape(shape)


def fill(module):
    """Parameters and buffers, from seed 10 on; the names in order are a value, too."""
    for i, (name, t) in enumerate(module.state_dict().items()):
        if not t.is_floating_point():
            continue
        value = some(t.shape, 10 + i)
        t.copy_(value.abs() + 0.5 if name.endswith("running_var") else value)
    return module


def layer(case, module, *inputs, train=False, call=None, shape_of=lambda y: y):
    """The output, and the gradient of (output * some).sum() by the first input and parameter."""
    fill(module).train(train)
    names[case] = " ".join(module.state_dict())
    xs = [some(s, 1 + i).requires_grad_() for i, s in enumerate(inputs)]
    y = shape_of(call(module, *xs) if call else module(*xs))
    (y * some(y.shape, 99)).sum().backward()
    values[case] = y
    values[case + ".x"] = xs[0].grad
    first = next(iter(module.parameters()), None)
    if first is not None:
        values[case + ".w"] = first.grad.sum(0)


def layers():
    layer("conv1d", nn.Conv1d(2, 3, 3, padding=1), (2, 2, 5))
    layer("conv2d", nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), (1, 2, 5, 4))
    layer("conv2d_same", nn.Conv2d(1, 1, (2, 3), padding="same", dilation=(1, 2)), (1, 1, 4, 5))
    layer("conv3d", nn.Conv3d(1, 2, 2, stride=2), (1, 1, 4, 2, 3))
    layer("conv_transpose1d", nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), (1, 2, 3))
    layer("conv_transpose2d", nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1, groups=2, dilation=2),
          (1, 2, 2, 3))
    layer("conv_transpose3d", nn.ConvTranspose3d(1, 1, 2), (1, 1, 2, 1, 2))
    layer("batch_norm_train", nn.BatchNorm2d(2), (3, 2, 2, 1), train=True)
    layer("batch_norm", nn.BatchNorm1d(3), (2, 3))
    layer("batch_norm_untracked", nn.BatchNorm1d(2, affine=False, track_running_stats=False), (4, 2))
    layer("instance_norm", nn.InstanceNorm2d(2, affine=True), (2, 2, 2, 3))
    layer("instance_norm_plain", nn.InstanceNorm1d(2), (2, 2, 3))
    layer("layer_norm", nn.LayerNorm((2, 3)), (2, 2, 3))
    layer("group_norm", nn.GroupNorm(2, 4), (2, 4, 2))
    layer("rms_norm", nn.RMSNorm(4, eps=1e-6), (2, 4))
    layer("max_pool2d", nn.MaxPool2d(3, stride=2, padding=1), (1, 1, 5, 4))
    layer("avg_pool1d", nn.AvgPool1d(2, stride=1), (1, 2, 4))
    layer("avg_pool2d", nn.AvgPool2d((2, 3), stride=(2, 1), padding=(0, 1)), (1, 1, 4, 4))
    layer("adaptive_avg", nn.AdaptiveAvgPool2d((2, 3)), (1, 2, 4, 5))
    layer("adaptive_max", nn.AdaptiveMaxPool1d(3), (1, 2, 7))

    layer("rnn_cell", nn.RNNCell(3, 2), (2, 3), (2, 2))
    layer("gru_cell", nn.GRUCell(3, 2), (2, 3), (2, 2))
    state = lambda pair: torch.cat(pair, -1)
    layer("lstm_cell", nn.LSTMCell(3, 2), (2, 3), (2, 2), (2, 2),
          call=lambda m, x, h, c: m(x, (h, c)), shape_of=state)
    both = lambda pair: torch.cat([pair[0].flatten(), pair[1].flatten()])
    layer("rnn", nn.RNN(3, 2), (4, 2, 3), shape_of=both)
    layer("rnn_relu", nn.RNN(3, 2, nonlinearity="relu", bias=False), (3, 2, 3), shape_of=both)
    layer("gru", nn.GRU(3, 2, num_layers=2, batch_first=True), (2, 3, 3), (2, 2, 2), shape_of=both)
    layer("lstm", nn.LSTM(3, 2, num_layers=2, bidirectional=True), (3, 2, 3),
          shape_of=lambda r: torch.cat([r[0].flatten(), r[1][0].flatten(), r[1][1].flatten()]))

    first = lambda pair: pair[0]
    layer("attention", nn.MultiheadAttention(4, 2), (3, 2, 4), (2, 2, 4), (2, 2, 4), shape_of=first)
    layer("attention_sizes", nn.MultiheadAttention(4, 2, kdim=3, vdim=2, batch_first=True, bias=False),
          (1, 2, 4), (1, 3, 3), (1, 3, 2), shape_of=first)
    causal = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    layer("attention_causal", nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4),
          call=lambda m, x: m(x, x, x, attn_mask=causal), shape_of=first)
    padding = torch.tensor([[False, False, True], [False, True, False]])
    layer("attention_padded", nn.MultiheadAttention(4, 1, batch_first=True), (2, 3, 4),
          call=lambda m, x: m(x, x, x, key_padding_mask=padding), shape_of=first)
    future = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    layer("attention_both", nn.MultiheadAttention(4, 1, batch_first=True), (2, 3, 4),
          call=lambda m, x: m(x, x, x, key_padding_mask=padding, attn_mask=future), shape_of=first)
    layer("encoder_layer", nn.TransformerEncoderLayer(4, 2, 6, dropout=0), (3, 2, 4), train=True)
    layer("encoder_layer_first", nn.TransformerEncoderLayer(
        4, 2, 6, dropout=0, activation="gelu", batch_first=True, norm_first=True), (2, 3, 4),
        train=True)
    layer("decoder_layer", nn.TransformerDecoderLayer(4, 2, 6, dropout=0), (3, 2, 4), (2, 2, 4),
          train=True)
    one = nn.TransformerEncoderLayer(4, 2, 6, dropout=0)
    layer("encoder", nn.TransformerEncoder(one, 2, nn.LayerNorm(4)), (3, 1, 4), train=True)
    one = nn.TransformerDecoderLayer(4, 2, 6, dropout=0)
    layer("decoder", nn.TransformerDecoder(one, 2, nn.LayerNorm(4)), (3, 1, 4), (2, 1, 4), train=True)


def optimizer(case, make, steps=5, shape=(6,)):
    """A parameter some(6) after steps along the slopes some(6, 3) * p."""
    p = some(shape).requires_grad_()
    o = make([p])
    for _ in range(steps):
        o.zero_grad()
        (p * p * some(shape, 3) * 0.5).sum().backward()
        o.step()
    values[case] = p


def optimizers():
    optimizer("sgd", lambda p: optim.SGD(p, 0.1))
    optimizer("sgd_momentum", lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01))
    optimizer("sgd_nesterov",
              lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True))
    optimizer("adam", lambda p: optim.Adam(p, 0.05))
    optimizer("adam_decay", lambda p: optim.Adam(p, 0.05, weight_decay=0.1))
    optimizer("adam_amsgrad", lambda p: optim.Adam(p, 0.5, betas=(0.5, 0.6), amsgrad=True))
    optimizer("adamw", lambda p: optim.AdamW(p, 0.05, weight_decay=0.1))
    optimizer("nadam", lambda p: optim.NAdam(p, 0.05, weight_decay=0.1))
    optimizer("nadam_decoupled",
              lambda p: optim.NAdam(p, 0.05, weight_decay=0.1, decoupled_weight_decay=True))
    optimizer("radam", lambda p: optim.RAdam(p, 0.05), steps=9)
    optimizer("radam_short", lambda p: optim.RAdam(p, 0.05, betas=(0.8, 0.9), weight_decay=0.1))
    optimizer("rmsprop", lambda p: optim.RMSprop(p, 0.05, weight_decay=0.1))
    optimizer("rmsprop_centered",
              lambda p: optim.RMSprop(p, 0.05, alpha=0.9, centered=True, momentum=0.9))
    optimizer("adagrad", lambda p: optim.Adagrad(
        p, 0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5))
    muons()


def muons():
    """optim.Muon iterates in bf16; this is its iteration in f64."""
    def exact(g, coefficients, steps, eps):
        a, b, c = coefficients
        x = g.T if g.size(0) > g.size(1) else g
        x = x / x.norm().clamp(min=eps)
        for _ in range(steps):
            s = x @ x.T
            x = a * x + (b * s + c * s @ s) @ x
        return x.T if g.size(0) > g.size(1) else x
    from torch.optim import _muon
    _muon._zeropower_via_newtonschulz = exact
    optimizer("muon", lambda p: optim.Muon(p, 0.1), shape=(2, 3))
    optimizer("muon_tall", lambda p: optim.Muon(p, 0.1, momentum=0.5, nesterov=False), shape=(6, 2))
    optimizer("muon_rms", lambda p: optim.Muon(p, 0.1, adjust_lr_fn="match_rms_adamw"), shape=(2, 3))


def rates(case, make, steps=12):
    o = optim.SGD([some((1,)).requires_grad_()], 0.5, momentum=0.9)
    schedule = make(o)
    out = []
    for _ in range(steps):
        out.append(o.param_groups[0]["lr"])
        o.step()
        schedule.step()
    values[case] = torch.tensor(out)


def schedules():
    s = optim.lr_scheduler
    rates("step_decay", lambda o: s.StepLR(o, 3, 0.5))
    rates("multi_step", lambda o: s.MultiStepLR(o, [2, 3, 7], 0.5))
    rates("exponential", lambda o: s.ExponentialLR(o, 0.9))
    rates("linear", lambda o: s.LinearLR(o, 0.25, 1, 6))
    rates("polynomial", lambda o: s.PolynomialLR(o, 8, 2))
    rates("cosine", lambda o: s.CosineAnnealingLR(o, 11, 0.1))
    rates("cosine_restarts", lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.1))
    rates("one_cycle", lambda o: s.OneCycleLR(o, 2.0, total_steps=12))
    rates("one_cycle_linear", lambda o: s.OneCycleLR(
        o, 2.0, total_steps=12, pct_start=0.5, anneal_strategy="linear", div_factor=10,
        final_div_factor=100))
    rates("in_sequence", lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1, 4), s.CosineAnnealingLR(o, 8)], [4]))
    plateau()


def plateau():
    o = optim.SGD([some((1,)).requires_grad_()], 0.5)
    p = optim.lr_scheduler.ReduceLROnPlateau(
        o, factor=0.5, patience=1, threshold=0.1, cooldown=1, min_lr=0.1)
    out = []
    for loss in [3, 2, 1.95, 1.9, 1.85, 1.84, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]:
        p.step(loss)
        out.append(o.param_groups[0]["lr"])
    values["plateau"] = torch.tensor(out)


def clipping():
    for case, p in [("clip_norm", 2.0), ("clip_norm_1", 1.0), ("clip_norm_max", math.inf)]:
        a, b = some((3,)).requires_grad_(), some((2, 2), 2).requires_grad_()
        a.grad, b.grad = some((3,), 5) * 3, some((2, 2), 6) * 3
        norm = nn.utils.clip_grad_norm_([a, b], 1.5, p)
        values[case] = torch.cat([norm.flatten(), a.grad, b.grad.flatten()])


def main():
    torch.manual_seed(0)
    layers()
    optimizers()
    schedules()
    clipping()
    write_map("pytorch_values.h", "std::vector<double>", "kPyTorchValues",
              {case: "{" + wrapped([f"{v:.7g}" for v in value.detach().flatten().tolist()], "      ") + "}"
               for case, value in values.items()})
    write_map("pytorch_names.h", "std::string", "kPyTorchNames",
              {case: "\n     ".join(f'"{word} "' for word in text.split()) or '""' for case, text in names.items()})


def write_map(file, kind, name, rows):
    """A header of a map from cases to values of a type of C++, which are given as its text."""
    lines = [
        "// Made by tests/nn/reference.py with PyTorch " + torch.__version__.split("+")[0] + ".",
        "// clang-format off\n#pragma once\n\n#include <map>\n#include <string>",
        *(["#include <vector>"] if "vector" in kind else []),
        f"\nnamespace weft {{\n\ninline const std::map<std::string, {kind}> {name} = {{",
        *(f'    {{"{case}",\n     {text}}},' for case, text in rows.items()),
        "};\n\n}  // namespace weft\n"]
    pathlib.Path(__file__).with_name(file).write_text("\n".join(lines), encoding="ascii")


def wrapped(numbers, indent):
    lines, line = [], ""
    for n in numbers:
        if len(line) + len(n) > 88:
            lines.append(line)
            line = ""
        line += n + ", "
    return ("\n" + indent).join(lines + [line.rstrip(", ")]).replace(", \n", ",\n")


main()
