"""Boxes (..., 4) as x1, y1, x2, y2, and which of them are kept: all on the device, in arrays of fixed sizes, so that a
captured function holds a detector as a whole."""
import weft
from weft import Tensor


def area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def iou(a: Tensor, b: Tensor) -> Tensor:
    """(n, 4) and (m, 4) to (n, m): the area that two boxes share over the area that they cover."""
    a, b = a.unsqueeze(1), b.unsqueeze(0)
    sides = (a[..., 2:].minimum(b[..., 2:]) - a[..., :2].maximum(b[..., :2])).clamp(0)
    shared = sides[..., 0] * sides[..., 1]
    return shared / (area(a) + area(b) - shared)


def kept(boxes: Tensor, classes: Tensor, threshold: float) -> Tensor:
    """Non-maximum suppression: of boxes (n, 4) in order of falling scores, and classes (n), bool (n): whether no box
    before it that is kept is of its class and covers it by more than the threshold."""
    count = boxes.shape[0]
    before = Tensor.arange(count).unsqueeze(1) < Tensor.arange(count)
    rivals = (iou(boxes, boxes) > threshold) & (classes.unsqueeze(1) == classes) & before

    def step(alive, rows):
        itself, suppressed = rows
        return alive & ~(suppressed & (alive & itself).any()), None
    itself = Tensor.arange(count).unsqueeze(1) == Tensor.arange(count)
    return weft.scan(step, Tensor.ones(count, dtype="bool"), (itself, rivals))[0]


def best(boxes: Tensor, scores: Tensor, classes: Tensor, candidates: int, count: int, score: float,
         overlap: float) -> Tensor:
    """The best `count` detections (count, 6) of one picture: x1, y1, x2, y2, score, class, by falling scores; rows of
    score 0 are none. boxes (n, 4), scores and classes (n). Only the `candidates` best scores, of at least `score`,
    are looked at; of boxes of a class that overlap by more than `overlap` the best stays."""
    scores, places = scores.topk(min(candidates, scores.shape[0]))
    boxes, classes = boxes[places], classes[places]
    scores = (kept(boxes, classes, overlap) & (scores > score)).where(scores, 0)
    scores, places = scores.topk(min(count, scores.shape[0]))
    return boxes[places].cat(scores.unsqueeze(1), classes[places].unsqueeze(1).float(), dim=1)
