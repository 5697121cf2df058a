#pragma once

// Traces in Chrome's trace event format, which https://ui.perfetto.dev and chrome://tracing open:
// one process per worker.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/base/trace.h"

namespace renzan {

// The events of one worker as a JSON array, with times in microseconds since `zero_ns` on the
// worker's clock.
std::string TraceEventsJson(const Trace& trace, int rank, const std::string& host, int64_t zero_ns);

// Atomically replaces `path` with a trace of these arrays. Throws Error kIo.
void WriteTraceFile(const std::string& path, const std::vector<std::string>& arrays);

}  // namespace renzan
