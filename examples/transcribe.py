"""What is said in a WAV file, with Whisper.

    python examples/transcribe.py --model whisper-tiny speech.wav
"""
import json
import time
from typing import Any

from models import audio, checkpoint, program, transcriber, whisper
from weft import Tensor

CONFIGS = {"tiny": (whisper.TINY, transcriber.TINY_TOKENS), "whisper-tiny": (whisper.WhisperConfig(), transcriber.Tokens())}


def read_model(args: Any) -> tuple[whisper.Whisper, transcriber.Tokens, Any]:
    """The model of a folder, its tokens and its tokenizer, or what stands in for them."""
    if args.model:
        return (whisper.Whisper.from_folder(args.model), transcriber.Tokens.from_folder(args.model),
                checkpoint.read_tokenizer(args.model))
    config, tokens = CONFIGS[args.config]
    return program.realized(whisper.Whisper(config)), tokens, checkpoint.ByteTokenizer([], [], tokens.eos_token_id)


def clock(seconds: float) -> str:
    return f"{int(seconds // 3600):02}:{int(seconds // 60 % 60):02}:{seconds % 60:06.3f}"


def main(args: Any) -> None:
    model, tokens, tokenizer = read_model(args)
    sound, rate = audio.read_wav(args.file)
    samples: Tensor = audio.resample(sound, rate, whisper.RATE).contiguous().realize()
    listener = transcriber.Transcriber(model, tokens, tokenizer, args.beams)
    started, segments = time.perf_counter(), []
    for segment in listener.transcribe(samples, args.language, args.task, not args.no_timestamps):
        segments.append(segment)
        if not args.json:
            print(f"[{clock(segment.start)} --> {clock(segment.end)}]  {segment.text}", flush=True)
    seconds, took = samples.shape[0] / whisper.RATE, time.perf_counter() - started
    if args.json:
        print(json.dumps({"text": " ".join(s.text for s in segments), "segments": [vars(s) for s in segments],
                          "language": listener.language, "seconds": seconds, "took": round(took, 3)}))
    else:
        program.notice(f"{seconds:.1f} s of sound in {took:.1f} s")


if __name__ == "__main__":
    options = program.parser(__doc__, list(CONFIGS))
    options.add_argument("file", metavar="FILE.wav", help="PCM or floats, at any rate, any number of channels")
    options.add_argument("--language", default="", help="as \"en\"; without it the first window tells")
    options.add_argument("--task", default="transcribe", choices=("transcribe", "translate"), help="translate: to English")
    options.add_argument("--beams", type=int, default=1, help="texts that are followed at a time")
    options.add_argument("--no-timestamps", action="store_true", help="one segment for each window of 30 seconds")
    program.run(main, options)
