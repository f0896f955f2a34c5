"""Training language models from text."""
import os
from collections.abc import Callable, Sequence

from weft._core import LanguageTrainer, prepare_training
from weft._core import export_checkpoint as _export_checkpoint

__all__ = ["Trainer", "export_checkpoint", "train"]


class Trainer:
    """A language model that learns from texts, and the folder in which all of that lies.

    out: the folder. data: text files and folders of them (.txt .md .rst .text, gzipped ones too); None goes on from
    the folder's checkpoint, with options equal to those it was made with, to the same losses bit by bit. config: tiny,
    small, gpt2, tiny-llama, small-llama, or the path of a config.json. tokenizer: the path of a tokenizer.json;
    without, one of `vocabulary` tokens is learnt. validation: share of the tokens that is not trained on.

    steps: in all, the end of the learning rate's cosine. batch: texts of a step, in `accumulate` micro-batches.
    optimizer: "adamw", or "muon" for the layers' matrices. dtype: what products multiply, "f32" or "bf16".

        trainer = Trainer("out", "texts", config="small", steps=1000)
        while not trainer.finished:
            loss = trainer.step()
        trainer.export()  # weft.llm.Model("out/model.gguf")
    """

    def __init__(self, out: str, data: str | Sequence[str] | None = None, *, config: str = "small", tokenizer: str = "",
                 vocabulary: int = 4096, validation: float = 0.05, steps: int = 2000, batch: int = 16,
                 accumulate: int = 1, lr: float = 1e-3, last_lr: float = 0.1, warmup: int = 100,
                 weight_decay: float = 0.1, beta2: float = 0.95, clip: float = 1.0, dropout: float = 0.0,
                 optimizer: str = "adamw", dtype: str = "f32", seed: int = 1):
        if data is not None:
            paths = [data] if isinstance(data, (str, os.PathLike)) else data
            prepare_training(str(out), [str(path) for path in paths], str(config), str(tokenizer), vocabulary, validation)
        self._trainer = LanguageTrainer(str(out), data is None, steps, batch, accumulate, lr, last_lr, warmup,
                                        weight_decay, beta2, clip, dropout, optimizer, dtype, seed)

    def step(self) -> float:
        """The loss of the next batch, in nats of a token."""
        return self._trainer.step()

    def validate(self) -> float:
        """The mean loss of texts that are not trained on, the same every time; noted in the history."""
        return self._trainer.validate()

    def sample(self, prompt: str = "", tokens: int = 48, *, seed: int = 0) -> str:
        """A text by the weights as they are now."""
        return self._trainer.sample(prompt, tokens, seed)

    def save(self) -> None:
        """A checkpoint and log.jsonl, each replaced atomically."""
        self._trainer.save()

    def export(self) -> None:
        """model.gguf, and model.safetensors with the files that transformers reads."""
        self._trainer.export_model()

    @property
    def finished(self) -> bool:
        return self._trainer.finished

    @property
    def steps(self) -> int:
        """Taken."""
        return self._trainer.steps

    @property
    def parameters(self) -> int:
        return self._trainer.parameters

    @property
    def tokens_per_step(self) -> int:
        return self._trainer.tokens_per_step

    @property
    def history(self) -> dict[str, list[float]]:
        """loss and gradient_norm of every step; validation_loss, and validated_at: how many steps were taken."""
        return self._trainer.history


def train(out: str, data: str | Sequence[str] | None = None, *, every: int = 250,
          progress: Callable[[Trainer], None] | None = None, **options) -> Trainer:
    """Trains to the end with the options of Trainer, and exports the model. After every so many steps it validates,
    saves a checkpoint and calls progress(trainer)."""
    trainer = Trainer(out, data, **options)
    while not trainer.finished:
        trainer.step()
        if trainer.steps % every == 0 or trainer.finished:
            trainer.validate()
            trainer.save()
            if progress is not None:
                progress(trainer)
    trainer.export()
    return trainer


def export_checkpoint(out: str) -> None:
    """Writes the model of a folder's checkpoint as it is."""
    _export_checkpoint(str(out))
