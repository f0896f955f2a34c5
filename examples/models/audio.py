"""Sound for models: WAV files, other rates of sampling and log-mel spectrograms, computed on the device."""
import math
import struct
from pathlib import Path

from weft import Tensor, dtypes, fft

# By (format tag, bits): what makes numbers in [-1, 1] of a file's bytes. WAVE_FORMAT_PCM is 1, WAVE_FORMAT_IEEE_FLOAT 3
# (Microsoft, "Multimedia Programming Interface and Data Specifications 1.0"). 24 bits get a byte of zeros below.
_DECODED = {
    (1, 8): lambda x: (x.float() - 128) / 2 ** 7,
    (1, 16): lambda x: x.bitcast(dtypes.int16).float() / 2 ** 15,
    (1, 24): lambda x: x.reshape(-1, 3).pad(((0, 0), (1, 0))).flatten().bitcast(dtypes.int32).float() / 2 ** 31,
    (1, 32): lambda x: x.bitcast(dtypes.int32).float() / 2 ** 31,
    (3, 32): lambda x: x.bitcast(dtypes.float32),
    (3, 64): lambda x: x.bitcast(dtypes.float64).float(),
}
_EXTENSIBLE = 0xFFFE  # the tag is the first two bytes of the sub-format


def _chunks(data: bytes, path: str | Path) -> dict[bytes, bytes]:
    """The first chunk of each name. One that says it is longer than the file, as of a stream, ends with it."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError(f"{path} is no WAV file: it begins with {data[:12]!r}, not with RIFF....WAVE")
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        found.setdefault(name, data[at + 8:at + 8 + size])
        at += 8 + size + size % 2
    return found


def read_wav(path: str | Path) -> tuple[Tensor, int]:
    """(float32 samples in [-1, 1], the mean of all channels; samples per second) of a WAV file: PCM of 8, 16, 24 and
    32 bits, floats of 32 and 64."""
    chunks = _chunks(Path(path).read_bytes(), path)
    form, data = chunks.get(b"fmt ", b""), chunks.get(b"data", b"")
    if len(form) < 16 or not data:
        raise ValueError(f"{path} has {len(form)} bytes of format and {len(data)} of samples: it is no whole WAV file")
    tag, channels, rate, _, frame, bits = struct.unpack_from("<HHIIHH", form)
    if tag == _EXTENSIBLE and len(form) >= 26:
        tag, = struct.unpack_from("<H", form, 24)
    if (tag, bits) not in _DECODED or channels < 1 or rate < 1 or frame != channels * bits // 8:
        raise ValueError(f"{path} has format {tag}, {bits} bits, {channels} channels, {rate} Hz: PCM of 8, 16, 24 or 32 "
                         "bits and floats of 32 or 64 are read; convert others with ffmpeg -i FILE -c:a pcm_s16le OUT.wav")
    whole = Tensor(data[:len(data) // frame * frame])
    return _DECODED[tag, bits](whole).reshape(-1, channels).mean(1), rate


def resample(x: Tensor, rate: int, wanted: int, zeros: int = 16) -> Tensor:
    """(samples) at another rate: band-limited interpolation (Smith 2002, "Digital Audio Resampling") by a sinc of
    `zeros` crossings on either side under a Hann window. Positions are whole numbers and fractions: exact for any length."""
    if rate == wanted:
        return x
    common = math.gcd(rate, wanted)
    step, parts = rate // common, wanted // common
    cutoff = min(1.0, wanted / rate)
    reach = math.ceil(zeros / cutoff)
    place = Tensor.arange(-(-int(x.shape[0]) * parts // step), dtype=dtypes.int64).unsqueeze(1) * step
    taps = Tensor.arange(1 - reach, reach + 1).unsqueeze(0)
    distance = taps - (place % parts).float() / parts
    window = ((distance * (math.pi / reach)).cos() + 1) / 2
    weight = (distance * cutoff).sinc() * window * cutoff
    return (x.pad(((reach, reach),))[place // parts + taps + reach] * weight).sum(1)


def mel_filters(count: int, bins: int, rate: int) -> Tensor:
    """(count, bins): triangles that are even in mels as Slaney's Auditory Toolbox (1998) has them, straight below
    1000 Hz and logarithmic above, each of area 1."""
    straight, per_mel, growth = 1000.0, 200 / 3, math.log(6.4) / 27
    highest = rate / 2
    top = straight / per_mel + math.log(highest / straight) / growth if highest > straight else highest / per_mel
    mels = [top * i / (count + 1) for i in range(count + 2)]
    edges = Tensor([m * per_mel if m * per_mel < straight else straight * math.exp((m - straight / per_mel) * growth)
                    for m in mels], dtype=dtypes.float64).unsqueeze(1)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    at = Tensor.linspace(0, highest, bins, dtype=dtypes.float64)
    triangles = ((at - low) / (middle - low)).minimum((high - at) / (high - middle)).clamp(0)
    return (triangles * 2 / (high - low)).float()


def log_mel(x: Tensor, filters: Tensor, frame: int = 400, hop: int = 160) -> Tensor:
    """(samples) to (filters, samples / hop), as Whisper sees sound: the logarithm of the energy in each filter, at
    most 8 orders of magnitude below the loudest (https://github.com/openai/whisper, audio.py)."""
    spectrum = fft.stft(x, frame, hop, fft.hann_window(frame))[:, :-1]
    energy = (filters @ spectrum.square().sum(-1)).clamp(1e-10).log10()
    return (energy.maximum(energy.max() - 8) + 4) / 4
