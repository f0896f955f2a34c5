"""Samplers of diffusion models. Each is a table: a row for each step, of numbers that its paper's formula gives.

Latents are x = sqrt(a) x0 + sqrt(1 - a) e of a picture x0 and noise e, where a, the share of the picture, depends on the
time. With the noise e that a model finds, what is left of x is the picture d = (x - sqrt(1 - a) e) / sqrt(a); and every
sampler here makes the next x of x, e, the d before and new noise by four numbers. So one captured step is enough for
all of them, and for all of their steps.
"""
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass

from weft import Tensor

TIMES = 1000  # of the training


@dataclass
class Step:
    """next = x * x_ + e * noise_ + previous d * before_ + new noise * fresh_; d = x * kept_ + e * removed_."""
    time: float
    x_: float
    noise_: float
    before_: float
    fresh_: float
    kept_: float
    removed_: float


def apply(row: Tensor, x: Tensor, noise: Tensor, before: Tensor, fresh: Tensor) -> tuple[Tensor, Tensor]:
    """The next x, and d. row: the numbers of a Step."""
    after = x * row[1] + noise * row[2] + before * row[3] + fresh * row[4]
    return after, x * row[5] + noise * row[6]


def pictures(start: float = 0.00085, end: float = 0.012) -> list[float]:
    """a at each time of the training: betas are the squares of even steps between two roots ("scaled_linear" in
    scheduler_config.json of Stable Diffusion 1 and XL)."""
    shares, share = [], 1.0
    for i in range(TIMES):
        share *= 1 - (math.sqrt(start) + (math.sqrt(end) - math.sqrt(start)) * i / (TIMES - 1)) ** 2
        shares.append(share)
    return shares


def even_times(steps: int) -> list[int]:
    """From noisy to clean, each the first of its share of the training and one later, as Stable Diffusion is used:
    "leading" with a steps_offset of 1."""
    if not 1 <= steps < TIMES:
        raise ValueError(f"{steps} steps: give a number from 1 to {TIMES - 1}")
    return [i * (TIMES // steps) + 1 for i in reversed(range(steps))]


def karras_times(steps: int, shares: list[float], rho: float = 7.0) -> list[float]:
    """Times whose noise to picture ratios s have even steps of s^(1/rho) (Karras et al. 2022, equation 5)."""
    ratios = [math.log(ratio(a)) for a in shares]
    low, high = math.exp(ratios[0] / rho), math.exp(ratios[-1] / rho)
    return [_time_of(rho * math.log(high + (low - high) * i / max(steps - 1, 1)), ratios) for i in range(steps)]


def _time_of(wanted: float, ratios: list[float]) -> float:
    """Where between the times of training the logarithm of s is this."""
    above = next((i for i, r in enumerate(ratios) if r >= wanted), TIMES - 1)
    if above == 0:
        return 0.0
    return above - (ratios[above] - wanted) / (ratios[above] - ratios[above - 1])


def ratio(a: float) -> float:
    """s: how much noise there is to a picture of size 1."""
    return math.sqrt((1 - a) / a)


def share_at(time: float, shares: list[float]) -> float:
    """a at a time, between those of the training by the logarithm of s."""
    low = min(int(time), TIMES - 2)
    s0, s1 = (math.log(ratio(shares[i])) for i in (low, low + 1))
    return 1 / (1 + math.exp(2 * (s0 + (s1 - s0) * (time - low))))


def _step(time: float, a: float, picture: float, noise: float, before: float = 0.0, fresh: float = 0.0) -> Step:
    """The step whose next x is d * picture + e * noise + previous d * before + new noise * fresh."""
    kept, removed = 1 / math.sqrt(a), -ratio(a)
    return Step(time, picture * kept, picture * removed + noise, before, fresh, kept, removed)


# A formula gives the step from a to b, the share at the next time. h and last are the steps of log(1 / s): this one and
# the one before, 0 where there is none.
Formula = Callable[[float, float, float, float, float], Step]


def _ddim(eta: float) -> Formula:
    """Song, Meng and Ermon 2020, "Denoising Diffusion Implicit Models", equations 12 and 16."""
    def formula(time: float, a: float, b: float, h: float, last: float) -> Step:
        fresh = eta * math.sqrt((1 - b) / (1 - a) * (1 - a / b))
        return _step(time, a, math.sqrt(b), math.sqrt(1 - b - fresh ** 2), fresh=fresh)
    return formula


def _euler(time: float, a: float, b: float, h: float, last: float) -> Step:
    """Karras et al. 2022, "Elucidating the Design Space of Diffusion-Based Generative Models", algorithm 1 without its
    correction: x / sqrt(a) moves along e by the change of s."""
    root = math.sqrt(b)
    return _step(time, a, root, root * ratio(b))


def _euler_ancestral(time: float, a: float, b: float, h: float, last: float) -> Step:
    """The same down to less noise than wanted, and new noise up to it (https://github.com/crowsonkb/k-diffusion)."""
    root, s, wanted = math.sqrt(b), ratio(a), ratio(b)
    up = min(wanted, wanted * math.sqrt(s * s - wanted * wanted) / s)
    down = math.sqrt(wanted * wanted - up * up)
    return _step(time, a, root, root * down, fresh=root * up)


def _dpmpp_2m(time: float, a: float, b: float, h: float, last: float) -> Step:
    """Lu et al. 2022, "DPM-Solver++", algorithm 2; the first step and the one to no noise at all are of first order."""
    noise = math.sqrt((1 - b) / (1 - a))  # of x, which is sqrt(a) d + sqrt(1 - a) e
    picture = math.sqrt(b) * -math.expm1(-h)
    half = h / (2 * last) if last and b < 1 else 0.0
    return _step(time, a, noise * math.sqrt(a) + picture * (1 + half), noise * math.sqrt(1 - a), -picture * half)


SAMPLERS: dict[str, Formula] = {"ddim": _ddim(0.0), "ddpm": _ddim(1.0), "euler": _euler,
                                "euler-ancestral": _euler_ancestral, "dpmpp-2m": _dpmpp_2m}


def table(sampler: str, steps: int, karras: bool = False) -> list[tuple[float, ...]]:
    """The rows of a sampler. DDIM ends with the noise of the first time of the training, as Stable Diffusion's
    configuration says ("set_alpha_to_one": false), the others with none."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler {sampler!r} is not known: one of {', '.join(SAMPLERS)}")
    shares = pictures()
    times = karras_times(steps, shares) if karras else even_times(steps)
    found = [share_at(time, shares) for time in times]
    ends = [*found[1:], shares[0] if sampler == "ddim" and not karras else 1.0]
    rows, last = [], 0.0
    for time, a, b in zip(times, found, ends):
        h = math.log(ratio(a) / ratio(b)) if b < 1 else math.inf
        rows.append(astuple(SAMPLERS[sampler](time, a, b, h, last)))
        last = h
    return rows
