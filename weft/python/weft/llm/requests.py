"""Requests of many threads and tasks to one model.

Its steps compute for all of them, one step at a time: whoever waits for text takes a turn, unless another has it. For
tasks of asyncio, which must not wait, a thread takes turns while they have requests.
"""
import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager

from weft._core import LanguageModel


class Answer:
    """What a request got and nobody has taken, and whether that is all."""

    def __init__(self, prompt: Sequence[int], options: dict[str, object]):
        self.prompt, self.options = prompt, options
        self.request: int | None = None  # None: not submitted yet
        self.parts: deque[str | Exception] = deque()
        self.finished = self.closed = False

    def add(self, text: str, finish: str, error: str) -> None:
        if text:
            self.parts.append(text)
        if finish:
            self.end(RuntimeError(error) if error else None)

    def end(self, error: Exception | None = None) -> None:
        if error:
            self.parts.append(error)
        self.finished = True  # after the last part: others look at this first

    def more(self) -> bool:
        return not self.finished or len(self.parts) != 0

    def take(self) -> str:
        part = self.parts.popleft()
        if isinstance(part, Exception):
            raise part
        return part

    def wake(self) -> bool:
        return True


class TaskAnswer(Answer):
    """For a task of asyncio, which is woken in its loop."""

    def __init__(self, prompt: Sequence[int], options: dict[str, object]):
        super().__init__(prompt, options)
        self.arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def wake(self) -> bool:
        """False where the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self.arrived.set)
            return True
        except RuntimeError:
            return False


class Requests:
    def __init__(self, model: LanguageModel):
        self._model = model
        self._changed = threading.Condition()  # guards what follows
        self._computing = self._serving = False  # somebody has the turn; the thread for tasks runs
        self._line: deque[object] = deque()  # who waits for a turn
        self._new: deque[TaskAnswer] = deque()
        self._cancelled: deque[int] = deque()
        self._open: dict[int, Answer] = {}

    @contextmanager
    def turn(self, unless: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """The model for oneself, first come first served. False where `unless` becomes true while others have it."""
        place = object()
        with self._changed:
            self._line.append(place)
            try:
                self._changed.wait_for(lambda: unless() or not self._computing and self._line[0] is place)
                mine = not unless()
                self._computing |= mine
            finally:
                self._line.remove(place)
                self._changed.notify_all()
        try:
            yield mine
        finally:
            if mine:
                with self._changed:
                    self._computing = False
                    self._changed.notify_all()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """A turn in which slots of what was cancelled are free."""
        with self.turn():
            if self._cancelled:
                self.step()
            yield

    def submit(self, answer: Answer) -> None:
        with self._changed:
            request = answer.request = self._model.submit(answer.prompt, answer.options)
            self._open[request] = answer

    def step(self) -> None:
        """In a turn: a step, with what others wanted before it."""
        with self._changed:
            while self._new:
                self._submit_for_task(self._new.popleft())
            while self._cancelled:
                self._model.cancel(self._cancelled.popleft())
        changed = set()
        for request, _, text, finish, error in self._model.step():
            if answer := self._open.get(request):
                answer.add(text, finish, error)
                changed.add(answer)
        for answer in changed:
            if not answer.wake():
                self.close(answer)

    def _submit_for_task(self, answer: TaskAnswer) -> None:
        try:
            if not answer.closed:
                self.submit(answer)
        except Exception as error:
            answer.end(error)
            answer.wake()

    def close(self, answer: Answer) -> None:
        """Cancels what is left of it."""
        with self._changed:
            answer.closed = True
            request = answer.request
            if request is None or request not in self._open:
                return
            del self._open[request]
            if not answer.finished:
                self._cancelled.append(request)

    async def for_task(self, prompt: Sequence[int], options: dict[str, object]) -> AsyncGenerator[str, None]:
        """The text as it comes; cancelling the task that waits for it cancels the request."""
        answer = TaskAnswer(prompt, options)
        with self._changed:
            self._new.append(answer)
            if not self._serving:
                self._serving = True
                threading.Thread(target=self._serve, name="weft.llm").start()
        try:
            while answer.more():
                answer.arrived.clear()
                if not answer.parts and not answer.finished:
                    await answer.arrived.wait()
                while answer.parts:
                    yield answer.take()
        finally:
            self.close(answer)

    def _serve(self) -> None:
        """The thread for tasks: steps until none of them waits and what they cancelled is gone."""
        error = None
        while not error:
            try:
                with self.turn():
                    self.step()
            except Exception as caught:
                error = caught
            with self._changed:
                waiting = [a for a in [*self._open.values(), *self._new] if isinstance(a, TaskAnswer) and not a.finished]
                if error:
                    self._new.clear()
                    for answer in waiting:
                        answer.end(error)
                        answer.wake()
                if error or not waiting and not self._cancelled:
                    self._serving = False
                    return


class Stream:
    """The text of an answer as it comes, in one thread; for model.stream()."""

    def __init__(self, requests: Requests, prompt: Sequence[int], options: dict[str, object]):
        self._requests, self._answer = requests, Answer(prompt, options)
        with requests.turn():
            requests.submit(self._answer)

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> str:
        answer = self._answer
        while answer.more() and not answer.closed:
            if answer.parts:
                return answer.take()
            with self._requests.turn(unless=lambda: answer.finished or len(answer.parts) != 0) as mine:
                if mine:
                    self._requests.step()
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Cancels what is left."""
        self._requests.close(self._answer)

    __del__ = close
