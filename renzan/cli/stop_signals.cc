#include "renzan/cli/stop_signals.h"

#include <signal.h>

#include <atomic>

#include "renzan/base/process/signals.h"

namespace renzan {
namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler writes it

}  // namespace

std::function<bool()> StopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = true; };
  for (const int signal : NotIgnored({SIGINT, SIGTERM, SIGHUP}))
    ::sigaction(signal, &action, nullptr);
  return [] { return stop_requested.load(); };
}

}  // namespace renzan
