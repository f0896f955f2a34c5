// run_with_gil: work for the interpreter from threads that must not wait for it.
#pragma once

namespace weft::python {

/// Calls f(argument) with the GIL held: now where this thread has it, else when the interpreter
/// next looks. Any thread may call. Dropped when the interpreter has ended.
void run_with_gil(void (*f)(void*), void* argument);

}  // namespace weft::python
