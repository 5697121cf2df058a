#include "renzan/comm/testing.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr std::chrono::seconds kDeadline(60);

// The data that a rank provides to the others during an operation. A broadcast has a single part.
struct Offer {
  const char* operation = "";
  std::span<const std::span<const std::byte>> parts;
};

class Group {
 public:
  explicit Group(int world_size) : offers(static_cast<size_t>(world_size)) {}

  // Returns when all ranks have called it.
  void Meet(const char* operation) {
    std::unique_lock lock(mutex_);
    FailIfSomeoneLeft(operation);
    const uint64_t meeting = meeting_;
    if (++arrived_ == offers.size()) {
      arrived_ = 0;
      ++meeting_;
      all_here_.notify_all();
      return;
    }
    const bool woken =
        all_here_.wait_for(lock, kDeadline, [&] { return meeting_ != meeting || left_ >= 0; });
    if (!woken) Fail(ErrorCode::kUnavailable, "{}: not all workers called it", operation);
    if (meeting_ == meeting) FailIfSomeoneLeft(operation);
  }

  void Leave(int rank) {
    std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    all_here_.notify_all();
  }

  void Failed(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!first_error) first_error = error;
  }

  std::vector<Offer> offers;
  std::exception_ptr first_error;

 private:
  void FailIfSomeoneLeft(const char* operation) const {
    if (left_ >= 0) Fail(ErrorCode::kUnavailable, "{}: worker {} has left", operation, left_);
  }

  std::mutex mutex_;
  std::condition_variable all_here_;
  size_t arrived_ = 0;
  uint64_t meeting_ = 0;
  int left_ = -1;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Group& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(group_.offers.size()); }
  const char* backend() const override { return "threads"; }

  // The exchange itself happens in Wait(): a test that uses a part too early reads the old content.
  Ticket Post(const char* operation, std::span<const std::span<const std::byte>> send,
              std::span<const std::span<std::byte>> recv) override {
    CHECK(send.size() == group_.offers.size() && recv.size() == group_.offers.size());
    const auto free = std::find_if(posted_.begin(), posted_.end(),
                                   [](const Posted& p) { return p.operation == nullptr; });
    const Ticket ticket = static_cast<Ticket>(free - posted_.begin());
    if (free == posted_.end()) posted_.emplace_back();
    posted_[ticket].operation = operation;
    posted_[ticket].send.assign(send.begin(), send.end());
    posted_[ticket].recv.assign(recv.begin(), recv.end());
    return ticket;
  }

  void Wait(Ticket ticket) override {
    Posted& posted = posted_[ticket];
    Run(posted.operation, posted.send, [&] {
      for (size_t p = 0; p < posted.recv.size(); ++p)
        Copy(group_.offers[p].parts[static_cast<size_t>(rank_)], posted.recv[p]);
    });
    posted.operation = nullptr;
  }

  void Abandon() noexcept override {}

  void Broadcast(std::span<std::byte> data, int root) override {
    const std::span<const std::byte> part = data;
    Run("Broadcast", {&part, 1}, [&] {
      if (root != rank_) Copy(group_.offers[static_cast<size_t>(root)].parts[0], data);
    });
  }

 private:
  struct Posted {
    const char* operation = nullptr;  // null: free
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };

  template <class Take>
  void Run(const char* operation, std::span<const std::span<const std::byte>> parts,
           const Take& take) {
    group_.offers[static_cast<size_t>(rank_)] = {operation, parts};
    group_.Meet(operation);
    for (const Offer& offer : group_.offers)
      CHECK_MSG(std::strcmp(offer.operation, operation) == 0, "one worker calls {}, another {}",
                operation, offer.operation);
    take();
    group_.Meet(operation);
  }

  static void Copy(std::span<const std::byte> from, std::span<std::byte> to) {
    CHECK_MSG(from.size() == to.size(), "{} bytes were sent, {} expected", from.size(), to.size());
    if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
  }

  Group& group_;
  int rank_;
  std::vector<Posted> posted_;  // by ticket
};

}  // namespace

void RunRanksAsThreads(int world_size, const std::function<void(Communicator&)>& body) {
  Group group(world_size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadCommunicator communicator(group, rank);
      try {
        body(communicator);
      } catch (...) {
        group.Failed(std::current_exception());
      }
      group.Leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (group.first_error) std::rethrow_exception(group.first_error);
}

}  // namespace renzan
