"""Training language models from text."""
import os
from collections.abc import Callable, Sequence
from typing import Any

from weft._core import LanguageTraining
from weft._core import export_checkpoint as _export_checkpoint

__all__ = ["Finetuner", "Trainer", "export_checkpoint", "finetune", "train"]


class Training:
    """What Trainer and Finetuner have in common: steps, and a folder."""

    def __init__(self, out: str, model: str, data: str | Sequence[str] | None, options: dict[str, Any]):
        paths = [] if data is None else [data] if isinstance(data, (str, os.PathLike)) else data
        self._trainer = LanguageTraining(str(out), model, {"data": [str(path) for path in paths], **options})

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
        """What was trained, as files: see the class."""
        self._trainer.export_made()

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


class Trainer(Training):
    """A language model that learns from texts, and the folder in which all of that lies.

    out: the folder. data: text files and folders of them (.txt .md .rst .text, gzipped ones too); None goes on from
    the folder's checkpoint, with options equal to those it was made with, to the same losses bit by bit. config: tiny,
    small, gpt2, tiny-llama, small-llama, or the path of a config.json. tokenizer: the path of a tokenizer.json;
    without, one of `vocabulary` tokens is learnt. validation: share of the tokens that is not trained on.

    steps: in all, the end of the learning rate's cosine. batch: texts of a step, in `accumulate` micro-batches.
    optimizer: "adamw", or "muon" for the layers' matrices. dtype: what products multiply, "f32" or "bf16".

    export() writes model.gguf, and model.safetensors with the files that transformers reads.

        trainer = Trainer("out", "texts", config="small", steps=1000)
        while not trainer.finished:
            loss = trainer.step()
        trainer.export()  # weft.llm.Model("out/model.gguf")
    """

    def __init__(self, out: str, data: str | Sequence[str] | None = None, *, config: str = "small", tokenizer: str = "",
                 vocabulary: int = 4096, validation: float = 0.05, steps: int = 2000, batch: int = 16,
                 accumulate: int = 1, lr: float = 1e-3, last_lr: float = 0.1, warmup: int = -1,
                 weight_decay: float = 0.1, beta2: float = 0.95, clip: float = 1.0, dropout: float = 0.0,
                 optimizer: str = "adamw", dtype: str = "f32", seed: int = 1):
        super().__init__(out, "", data, dict(
            config=str(config), tokenizer=str(tokenizer), vocabulary=vocabulary, validation=validation, steps=steps,
            batch=batch, accumulate=accumulate, lr=lr, last_lr=last_lr, warmup=warmup, weight_decay=weight_decay,
            beta2=beta2, clip=clip, dropout=dropout, optimizer=optimizer, dtype=dtype, seed=seed))


class Finetuner(Training):
    """An adapter (LoRA) that learns from texts beside the weights of a model, which stay as they are, packed or not.

    out: the folder. model: a GGUF file, or a folder of Hugging Face's. data: as of Trainer. rank: of the factors beside
    a weight; what they give is scaled by alpha / rank. targets: q, k, v, o, gate, up, down, output, or all. context:
    tokens of a text. The other options are Trainer's.

    export() writes adapter.gguf, and the folder adapter for PEFT.

        tuner = Finetuner("out", "model.gguf", "texts", rank=8, steps=200, lr=2e-4)
        while not tuner.finished:
            loss = tuner.step()
        tuner.export()  # weft.llm.Model("model.gguf", lora=["out/adapter.gguf"])
    """

    def __init__(self, out: str, model: str, data: str | Sequence[str] | None = None, *, validation: float = 0.05,
                 rank: int = 8, alpha: float = 16.0, targets: Sequence[str] = ("q", "k", "v", "o"), context: int = 512,
                 steps: int = 2000, batch: int = 16, accumulate: int = 1, lr: float = 1e-3, last_lr: float = 0.1,
                 warmup: int = -1, weight_decay: float = 0.1, beta2: float = 0.95, clip: float = 1.0,
                 dropout: float = 0.0, optimizer: str = "adamw", dtype: str = "f32", seed: int = 1):
        super().__init__(out, str(model), data, dict(
            validation=validation, rank=rank, alpha=alpha, targets=list(targets), context=context, steps=steps,
            batch=batch, accumulate=accumulate, lr=lr, last_lr=last_lr, warmup=warmup, weight_decay=weight_decay,
            beta2=beta2, clip=clip, dropout=dropout, optimizer=optimizer, dtype=dtype, seed=seed))


def _to_the_end(training: Training, every: int, progress: Callable[[Any], None] | None) -> None:
    while not training.finished:
        training.step()
        if training.steps % every == 0 or training.finished:
            training.validate()
            training.save()
            if progress is not None:
                progress(training)
    training.export()


def train(out: str, data: str | Sequence[str] | None = None, *, every: int = 250,
          progress: Callable[[Trainer], None] | None = None, **options) -> Trainer:
    """Trains to the end with the options of Trainer, and exports the model. After every so many steps it validates,
    saves a checkpoint and calls progress(trainer)."""
    trainer = Trainer(out, data, **options)
    _to_the_end(trainer, every, progress)
    return trainer


def finetune(out: str, model: str, data: str | Sequence[str] | None = None, *, every: int = 250,
             progress: Callable[[Finetuner], None] | None = None, **options) -> Finetuner:
    """train() with a Finetuner."""
    tuner = Finetuner(out, model, data, **options)
    _to_the_end(tuner, every, progress)
    return tuner


def export_checkpoint(out: str) -> None:
    """Writes the model of a folder's checkpoint as it is."""
    _export_checkpoint(str(out))
