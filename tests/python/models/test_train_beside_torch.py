"""tools/train_beside_torch: both sides see the same texts, weights and rates, together and apart."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
TOOL = Path(__file__).resolve().parents[3] / "tools/train_beside_torch"
OPTIONS = ["--config", "tiny", "--vocabulary", "300", "--batch", "4", "--steps", "12", "--warmup", "3", "--every", "5"]


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"The {color} {animal} sees {n} {color} birds.\n" for n in range(80)
                                            for color in ("red", "green", "blue") for animal in ("cat", "dog", "fox")))
    return tmp_path / "a.txt"


def run(*arguments, fails=None):
    done = subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True)
    if fails:
        assert done.returncode != 0 and fails in done.stderr
        return None
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_losses_are_equal_from_equal_weights(texts, tmp_path):
    result = json.loads(run(tmp_path / "out", "--data", texts, *OPTIONS, "--turn", "2", "--json"))
    for side in ("weft", "torch"):
        assert result[side]["steps"] == 12 and result[side]["validated_at"] == [5, 10, 12]
        assert result[side]["validation_loss"][-1] < result[side]["validation_loss"][0]
        assert result[side]["seconds_per_step"] > 0
    assert result["both"]["largest_relative_difference_of_losses"] < 1e-4
    ours, theirs = result["both"]["validation_loss"]
    assert ours == pytest.approx(theirs, rel=1e-4) and result["both"]["step"] == 12


def test_sides_run_apart(texts, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    run(out, "--side", "torch", fails="weft's side comes first")
    run(out, "--side", "weft", fails="--data: texts to learn from")
    assert "weft" in run(out, "--data", texts, *OPTIONS, "--side", "weft")
    assert "both" not in json.loads(run(out, "--compare", "--json"))
    run(out, "--side", "torch")
    shown = run(out, "--compare")
    assert "PyTorch's step takes" in shown and "validation loss after 12 steps" in shown
    assert json.loads(run(out, "--compare", "--json"))["both"]["largest_relative_difference_of_losses"] < 1e-4


def test_rounding_to_bf16_is_all_that_differs(texts, tmp_path):
    result = json.loads(run(tmp_path / "out", "--data", texts, *OPTIONS, "--dtype", "bf16", "--json"))
    assert 0 < result["both"]["largest_relative_difference_of_losses"] < 0.02
