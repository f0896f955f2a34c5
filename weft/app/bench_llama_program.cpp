// The Python program in which llama.cpp computes, through the package llama-cpp-python.
#include "weft/app/bench_peer.h"

namespace weft {

// As kPeerProgram: one line asks (JSON), one line answers. A prompt is computed in chunks of 512,
// the cache is f16: llama.cpp's own defaults.
const char* const kLlamaProgram = R"python(
import json, os, statistics, sys, time
threads = int(sys.argv[2])
answers = os.fdopen(os.dup(0), "w")
def answer(text):
    print(" ".join(str(text).split())[:300], file=answers, flush=True)
try:
    import ctypes
    import llama_cpp
    from llama_cpp import llama_cpp as l
    silent = l.llama_log_callback(lambda level, text, data: None)
    l.llama_log_set(silent, ctypes.c_void_p(0))
    l.llama_backend_init()
    answer("yes " + llama_cpp.__version__ + ", llama-cpp-python")
except Exception as error:
    answer("no " + str(error))
    sys.exit()

CHUNK = 512

class Model:
    def __init__(self, path, context, slots):
        start = time.perf_counter()
        self.model = l.llama_model_load_from_file(path.encode(), l.llama_model_default_params())
        if not self.model:
            raise ValueError("llama.cpp cannot load " + path)
        p = l.llama_context_default_params()
        p.n_ctx, p.n_seq_max = context * slots, slots
        p.n_batch = p.n_ubatch = CHUNK
        p.n_threads = p.n_threads_batch = threads
        self.context = l.llama_init_from_model(self.model, p)
        if not self.context:
            raise ValueError("llama.cpp has no context for " + path)
        self.batch = l.llama_batch_init(CHUNK, 0, 1)
        self.vocabulary = l.llama_vocab_n_tokens(l.llama_model_get_vocab(self.model))
        self.load = time.perf_counter() - start
    def decode(self, rows):
        """Rows of (token, position, slot); logits of the last of each slot."""
        b, last = self.batch, {slot: i for i, (_, _, slot) in enumerate(rows)}
        b.n_tokens = len(rows)
        for i, (token, position, slot) in enumerate(rows):
            b.token[i], b.pos[i] = token % self.vocabulary, position
            b.n_seq_id[i], b.seq_id[i][0] = 1, slot
            b.logits[i] = last[slot] == i
        if l.llama_decode(self.context, b) != 0:
            raise ValueError("llama_decode failed")
        l.llama_synchronize(self.context)
    def measure(self, prompt, slots, tokens):
        """Seconds until all prompts are computed, and of a step after that."""
        l.llama_memory_clear(l.llama_get_memory(self.context), True)
        start = time.perf_counter()
        for slot in range(slots):
            for at in range(0, prompt, CHUNK):
                self.decode([(7919 * i + slot, i, slot)
                             for i in range(at, min(prompt, at + CHUNK))])
        first, steps = time.perf_counter() - start, []
        for i in range(tokens):
            before = time.perf_counter()
            self.decode([(104729 * i + slot, prompt + i, slot) for slot in range(slots)])
            steps.append(time.perf_counter() - before)
        return first, statistics.median(steps[1:] or steps or [0])

model = None
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "model" in request:
            model = Model(request["model"], request["context"], request["slots"])
            start = time.perf_counter()
            model.measure(1, 1, 0)
            answer("yes %r %r" % (model.load, model.load + time.perf_counter() - start))
        else:
            answer("yes %r %r" % model.measure(*request["measure"]))
    except Exception as error:
        answer("no " + str(error))
)python";

}  // namespace weft
