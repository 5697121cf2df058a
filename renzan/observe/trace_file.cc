#include "renzan/observe/trace_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

// Perfetto's name for a process or a thread.
nlohmann::json NameOf(const char* kind, int rank, int thread, const std::string& name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string TraceEventsJson(const Trace& trace, int rank, const std::string& host,
                            int64_t zero_ns) {
  nlohmann::json events = nlohmann::json::array();
  events.push_back(NameOf("process_name", rank, 0, fmt::format("worker {} on {}", rank, host)));
  for (size_t thread = 0; thread < trace.threads.size(); ++thread)
    events.push_back(NameOf("thread_name", rank, static_cast<int>(thread), trace.threads[thread]));
  for (const TraceEvent& event : trace.events)
    events.push_back({{"name", event.name},
                      {"ph", "X"},
                      {"pid", rank},
                      {"tid", event.thread},
                      {"ts", static_cast<double>(event.begin_ns - zero_ns) / 1e3},
                      {"dur", static_cast<double>(event.end_ns - event.begin_ns) / 1e3}});
  return events.dump();
}

void WriteTraceFile(const std::string& path, const std::vector<std::string>& arrays) {
  std::string events;
  for (const std::string& array : arrays) {
    const std::string inner = array.substr(1, array.size() - 2);
    if (!events.empty() && !inner.empty()) events += ",";
    events += inner;
  }
  WriteFileAtomically(path, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + events + "]}\n");
}

}  // namespace renzan
