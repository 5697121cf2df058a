#include "renzan/cluster/kubernetes/api/watch.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/kubernetes/api/wait.h"

namespace renzan::cluster::kubernetes {
namespace {

// A server that cannot continue from a version fails each time: after this many, list again.
constexpr int kMaxRefusedResumes = 3;

}  // namespace

class Watch::Impl {
 public:
  Impl(const ApiFactory& make_api, WatchOptions options, std::function<void(WatchChange)> deliver,
       std::function<void(const Error&)> report, const Clock& clock)
      : options_(std::move(options)),
        report_(std::move(report)),
        clock_(clock),
        known_(std::move(deliver)),
        api_(make_api(stop_.get_token())) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error& error) {
      Fail(ErrorCode::kOsError, "cannot start a thread to watch {}: {}", options_.kind.plural,
           error.what());
    }
  }

  ~Impl() {
    stop_.request_stop();
    thread_.join();
  }

  WatchCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  void Run() noexcept;
  void List();
  // One stream, until it ends.
  void Follow();
  void TakeEvent(std::string_view type, Json&& object);
  void Count(int64_t WatchCounts::*what);
  void CountContact(int64_t WatchCounts::*what);
  // `answer`: the same error, if the server sent it.
  void HandleFailure(const Error& error, const ApiError* answer);
  void BackOff();

  const WatchOptions options_;
  const std::function<void(const Error&)> report_;
  const Clock& clock_;
  std::stop_source stop_;
  KnownObjects known_;  // used by the thread only, like what follows
  const std::unique_ptr<Api> api_;
  bool resumes_ = false;  // the next stream is not the first after a list
  int64_t events_ = 0;    // as in counts_
  int in_a_row_ = 0;      // failures, and streams that ended at once, since things worked
  uint64_t waits_ = 0;
  std::string reported_ = {};  // the last failure since then

  mutable std::mutex mutex_;
  WatchCounts counts_;
  std::thread thread_;
};

Watch::Watch(const ApiFactory& make_api, WatchOptions options,
             std::function<void(WatchChange)> deliver, std::function<void(const Error&)> report,
             const Clock& clock)
    : impl_(std::make_unique<Impl>(make_api, std::move(options), std::move(deliver),
                                   std::move(report), clock)) {}

Watch::~Watch() = default;

WatchCounts Watch::counts() const { return impl_->counts(); }

void Watch::Impl::Run() noexcept {
  while (!stop_.stop_requested()) {
    try {
      known_.version().empty() ? List() : Follow();
    } catch (const ApiError& error) {
      HandleFailure(error, &error);
    } catch (const Error& error) {
      HandleFailure(error, nullptr);
    } catch (const std::exception& error) {  // an object unlike any of Kubernetes
      HandleFailure(Error(ErrorCode::kUnavailable,
                          fmt::format("watching {}: {}", options_.kind.plural, error.what())),
                    nullptr);
    }
  }
}

void Watch::Impl::List() {
  known_.TakeList(api_->List(options_.kind, options_.ns, options_.selector));
  CountContact(&WatchCounts::lists);
  resumes_ = false;
}

void Watch::Impl::Follow() {
  if (std::exchange(resumes_, true)) Count(&WatchCounts::reconnects);
  const double start = clock_.MonotonicSeconds();
  const int64_t events_before = events_;
  // Also called if the stream fails, before the failure is counted.
  const auto note_success = [&] {
    const double lasted = clock_.MonotonicSeconds() - start;
    if (events_ == events_before && lasted < options_.longest_backoff_seconds) return;
    in_a_row_ = 0;
    reported_.clear();
  };
  try {
    api_->Watch(
        options_.kind, options_.ns, options_.selector, known_.version(),
        [this](std::string_view type, Json&& object) { TakeEvent(type, std::move(object)); });
  } catch (...) {
    note_success();
    throw;
  }
  ++in_a_row_;
  note_success();
  // A server or proxy that ends every stream at once would be asked in a tight loop.
  if (in_a_row_ > 0) BackOff();
}

void Watch::Impl::TakeEvent(std::string_view type, Json&& object) {
  known_.TakeEvent(type, std::move(object));
  CountContact(&WatchCounts::events);
  ++events_;
}

void Watch::Impl::Count(int64_t WatchCounts::*what) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*what);
}

void Watch::Impl::CountContact(int64_t WatchCounts::*what) {
  Count(what);
  const double now = clock_.MonotonicSeconds();
  const std::lock_guard lock(mutex_);
  counts_.last_seconds = now;
}

void Watch::Impl::HandleFailure(const Error& error, const ApiError* answer) {
  if (stop_.stop_requested()) return;
  ++in_a_row_;
  if (answer != nullptr && answer->is_expired()) {
    known_.Expire();
    // Normal after a long interruption; not if the list does not help.
    if (in_a_row_ > 1) BackOff();
    return;
  }
  Count(&WatchCounts::failures);
  if (error.what() != reported_) {
    reported_ = error.what();
    report_(error);
  }
  const bool server_failed =
      answer != nullptr && (answer->http_status() >= 500 || answer->http_status() == 429);
  const bool resume = answer != nullptr &&
                      (answer->no_answer() || (server_failed && in_a_row_ <= kMaxRefusedResumes));
  if (!resume) known_.Expire();
  BackOff();
}

void Watch::Impl::BackOff() {
  const double longest = std::min(options_.first_backoff_seconds * std::exp2(in_a_row_ - 1),
                                  options_.longest_backoff_seconds);
  // Otherwise all clients of a restarted server would come back at the same moments.
  const Philox::Block random = Philox::Draw(options_.seed, ++waits_);
  const double seconds = longest * (0.5 + 0.5 * Philox::Uniform(random[0]));
  WaitFor(seconds, stop_.get_token());
}

}  // namespace renzan::cluster::kubernetes
