#include "renzan/cli/train/train_signals.h"

#include <csignal>
#include <thread>

namespace renzan {
namespace {

RunRequests g_requests;

// Without those that whoever started us wants ignored: nohup, a shell's background jobs.
sigset_t TrainSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN || signal == SIGTERM) sigaddset(&signals, signal);
  }
  return signals;
}

void EndBy(int signal) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(signal);
}

void TakeSignals(sigset_t signals) {
  bool interrupted = false;
  for (int signal = 0; sigwait(&signals, &signal) == 0;) {
    if (signal == SIGUSR1) {
      g_requests.checkpoint = true;
      continue;
    }
    if (signal == SIGINT && interrupted) EndBy(SIGINT);
    interrupted = interrupted || signal == SIGINT;
    g_requests.stop = true;
  }
}

}  // namespace

RunRequests& HoldTrainSignals() {
  const sigset_t signals = TrainSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return g_requests;
}

void AnswerTrainSignals() {
  // It lives as long as the process.
  std::thread(TakeSignals, TrainSignals()).detach();
}

}  // namespace renzan
