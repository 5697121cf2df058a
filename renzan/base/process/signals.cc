#include "renzan/base/process/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {

bool IsStopSignal(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

bool IsIgnored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

std::vector<int> NotIgnored(std::initializer_list<int> signals) {
  std::vector<int> kept;
  for (const int signal : signals)
    if (!IsIgnored(signal)) kept.push_back(signal);
  return kept;
}

sigset_t SignalSet(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

sigset_t AllSignals() {
  sigset_t set;
  sigfillset(&set);
  return set;
}

SignalQueue::SignalQueue(const std::vector<int>& signals) {
  sigset_t mask = SignalSet({});
  for (const int signal : signals) sigaddset(&mask, signal);
  fd_ = Descriptor(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) Fail(ErrorCode::kOsError, "cannot wait for signals: {}", std::strerror(errno));
  pthread_sigmask(SIG_BLOCK, &mask, &before_);
}

SignalQueue::~SignalQueue() {
  // Discards pending signals: once unblocked, they would kill the program.
  while (Take() != 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::Take() const {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

int SignalQueue::Next(double seconds, int other_fd) const {
  pollfd fds[] = {{fd_.get(), POLLIN, 0}, {other_fd, POLLIN, 0}};
  poll(fds, 2, static_cast<int>(std::ceil(seconds * 1000)));
  return Take();
}

}  // namespace renzan
