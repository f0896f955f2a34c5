"""Random layers, functions and small networks have PyTorch's values and gradients."""
import numpy as np
import pytest
from conftest import needs_torch, torch

if torch is not None:
    import random_layers
    from random_layers import FAMILIES, random_case
else:
    FAMILIES = {}

from weft import Tensor

pytestmark = needs_torch
CASES = 6  # of each family


def close(ours, theirs):
    x, y = ours.numpy().astype(np.float64), theirs.detach().numpy().astype(np.float64)
    assert x.shape == y.shape
    if y.size:
        assert np.abs(x - y).max() <= 2e-4 * max(1e-3, np.abs(y).max())


@pytest.mark.parametrize("family", list(FAMILIES))
def test_values_and_gradients(family, monkeypatch):
    monkeypatch.setattr(random_layers, "LARGEST", 2e4)
    monkeypatch.setattr(random_layers, "WORK", 2e6)
    for i in range(CASES):
        torch.manual_seed(i)
        rng = np.random.default_rng([i, len(family)])
        case = random_case(rng, family)
        n = int(case.differentiable)
        ours_in = [Tensor(x) for x in case.inputs]
        theirs_in = case.doubled()
        for x in theirs_in[:n]:
            x.requires_grad_()
        ours, theirs = case.weft(*ours_in), case.torch(*theirs_in)
        close(ours, theirs)
        if n == 0:
            continue
        weights = rng.standard_normal(tuple(theirs.shape), dtype=np.float32)
        loss = (theirs * torch.from_numpy(np.asarray(weights))).sum()
        wanted = torch.autograd.grad(loss, [*theirs_in[:n], *case.torch_parameters])
        loss = (ours * Tensor(weights)).sum()
        for got, want in zip(loss.gradient(*ours_in[:n], *case.weft_parameters), wanted, strict=True):
            close(got, want)
