#include "renzan/cli/train/train_signals.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "renzan/base/log.h"
#include "renzan/base/process/signals.h"

namespace renzan {
namespace {

RunRequests g_requests;

std::vector<int> TrainSignals() {
  std::vector<int> signals = NotIgnored({SIGINT, SIGHUP, SIGUSR1});
  signals.push_back(SIGTERM);
  return signals;
}

// Lives as long as the process.
const SignalQueue& Signals() {
  static const SignalQueue* const signals = new SignalQueue(TrainSignals());
  return *signals;
}

[[noreturn]] void DieBy(int signal) {
  const sigset_t signals = SignalSet({signal});
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(signal);
  std::abort();
}

void ServeSignals() {
  constexpr double kSeconds = 3600;
  for (bool interrupted = false;;) {
    const int signal = Signals().Next(kSeconds, /*other_fd=*/-1);
    if (signal == SIGUSR1) g_requests.checkpoint = true;
    if (!IsStopSignal(signal)) continue;
    if (signal == SIGINT && interrupted) {
      LogWarning("interrupted again: this ends now, without the checkpoint that was asked for");
      DieBy(SIGINT);
    }
    interrupted = interrupted || signal == SIGINT;
    ++g_requests.stops;
  }
}

}  // namespace

RunRequests& BlockTrainSignals() {
  Signals();
  return g_requests;
}

void StartServingTrainSignals() { std::thread(ServeSignals).detach(); }

}  // namespace renzan
