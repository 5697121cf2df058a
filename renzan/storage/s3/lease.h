#pragma once

// A lock in a store, which has no locks: an object that its owner rewrites every few seconds, each
// time only if it is still what the owner wrote last. A process that finds it unchanged for long
// takes it over in the same way; the former owner notices at its next write. No two clocks are
// compared.
//
// So only one process at a time may write to a directory, and one that was presumed dead cannot
// continue unnoticed. Thread-safe.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/storage/s3/client.h"
#include "renzan/storage/storage.h"

namespace renzan::s3 {

class Lease : public DirectoryLock {
 public:
  struct Times {
    double renew_seconds = 8;
    // If the lease does not change for this long (three renewals), its owner is presumed dead.
    double expire_seconds = 25;
    double poll_seconds = 1;
  };

  // Waits for another owner's lease to expire; throws Error kCantCreate if that owner is still
  // alive when patience runs out. Also checks that the store honours conditional writes; throws
  // kConfig if it does not.
  Lease(Client& client, const Location& location, std::string owner, const Clock& clock,
        Times times, const Patience& patience = {});
  // Releases it, so that the next owner need not wait.
  ~Lease() override;

  void Check() override;

  // The owner of the lease at `location`, or its last one; empty if there is none.
  static std::string OwnerOf(Client& client, const Location& location);

  // Whether it was taken over from an owner that was only presumed dead.
  bool took_over() const { return took_over_; }

 private:
  void Acquire(const Patience& patience);
  bool TryToTake(const std::optional<Client::Content>& there);
  void CheckThatConditionsHold();
  void Renew(const std::stop_token& stop);
  // Writes the object again. False if another owner has it now; `there` is then its content.
  bool Rewrite(bool released, std::optional<Client::Content>* there, const std::stop_token& stop);
  std::string Text(bool released) const;
  [[noreturn]] void FailTaken(const Client::Content& there) const;

  Client& client_;
  const Location location_;
  const std::string owner_, id_;
  const Clock& clock_;
  const Times times_;
  std::mutex mutex_;
  bool took_over_ = false;
  uint64_t renewals_ = 0;
  std::string etag_;  // of what this owner wrote last
  std::optional<Error> lost_;
  std::jthread renewer_;  // last, so that it ends first
};

}  // namespace renzan::s3
