#include "renzan/cluster/pod/master_name.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/process/pipe.h"

namespace renzan::cluster::pod {
namespace {

constexpr double kLongestSleep = 60;

// One look-up on a thread of its own: name servers that do not answer block it for a long time, and
// a stop request must not wait for it. The thread owns what it uses, since nobody may be waiting
// for it any more.
class Lookup {
 public:
  Lookup(const ResolveName& resolve, const std::string& name) {
    Pipe pipe = MakePipe();
    answered_ = std::move(pipe.read_end);
    std::promise<std::string> promise;
    answer_ = promise.get_future();
    std::thread([resolve, name, promise = std::move(promise),
                 end = std::move(pipe.write_end)]() mutable {
      promise.set_value(resolve(name));
      end.Close();
    }).detach();
  }

  // Readable once there is an answer.
  int fd() const { return answered_.get(); }
  bool IsAnswered() const {
    return answer_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  std::string Answer() { return answer_.get(); }

 private:
  Descriptor answered_;
  std::future<std::string> answer_;
};

}  // namespace

std::string SystemResolve(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &addresses);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(addresses);
  return "";
}

int WaitForMaster(const std::string& name, const MasterWait& wait, const ResolveName& resolve,
                  const SignalQueue& signals) {
  const auto now = [] { return SystemClock().MonotonicSeconds(); };
  const double end = now() + wait.limit_seconds;
  std::string why = "no name server has answered yet";
  bool told = false;
  for (;;) {
    Lookup lookup(resolve, name);
    const double next = now() + wait.seconds_between_lookups;
    bool answered = false;
    do {
      if (!answered && lookup.IsAnswered()) {
        why = lookup.Answer();
        answered = true;
        if (why.empty()) return 0;
      }
      if (now() >= end)
        Fail(ErrorCode::kUnavailable,
             "MASTER_ADDR '{}' does not resolve after {:.6g} s ({}): is there a headless service "
             "that publishes the pods' names, and has worker 0 been started?",
             name, wait.limit_seconds, why);
      if (!told && (answered || now() >= next)) {
        told = true;
        LogInfo("waiting until MASTER_ADDR '{}' resolves ({}), at most {:.6g} s", name, why,
                wait.limit_seconds);
      }
      // Wait for the answer or, once there is one, until the next look-up.
      const double until = std::min(end, answered || now() < next ? next : now() + kLongestSleep);
      const int signal = signals.Next(std::max(0.0, until - now()), answered ? -1 : lookup.fd());
      if (IsStopSignal(signal)) return signal;
    } while (!answered || now() < next);
  }
}

}  // namespace renzan::cluster::pod
