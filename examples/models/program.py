"""What the programs for texts, sounds and generated pictures share: options, and models with random weights."""
import argparse
import sys
from typing import Any

from weft import Tensor, nn

from models.command import options, run

__all__ = ["notice", "parser", "realized", "run"]


def parser(description: str, configurations: list[str]) -> argparse.ArgumentParser:
    """For a checkpoint's folder, or random weights."""
    made = options(description)
    made.add_argument("--model", metavar="FOLDER", help="a checkpoint as it is published; without it weights are random")
    made.add_argument("--config", default=configurations[0], choices=configurations,
                      help="of a model with random weights")
    return made


def notice(text: str) -> None:
    """Said to whoever runs a program; its results go to the standard output."""
    print(text, file=sys.stderr, flush=True)


def realized(model: Any) -> Any:
    """A model whose random weights are computed, with a word about them."""
    notice("no --model: the weights are random, and so is what follows")
    Tensor.realize(*nn.state.get_parameters(model))
    return model
