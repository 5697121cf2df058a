#include "renzan/storage/s3/lease.h"

#include <condition_variable>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/storage/s3/process_identity.h"

namespace renzan::s3 {
namespace {

constexpr double kReleaseSeconds = 5;

struct Owner {
  std::string id, owner, process;
  bool released = false;
};

// An object that is not a lease counts as one of an unknown owner, so that nothing is overwritten
// until it has gone unchanged for long.
Owner ParseOwner(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {.owner = "unknown"};
  const auto get = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const auto released = json.find("released");
  return {.id = get("id"),
          .owner = get("owner"),
          .process = get("process"),
          .released = released != json.end() && released->is_boolean() && released->get<bool>()};
}

// Returns early when a stop is requested.
void WaitFor(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

}  // namespace

Lease::Lease(Client& client, const Location& location, std::string owner, const Clock& clock,
             Times times, const Patience& patience)
    : client_(client),
      location_(location),
      owner_(std::move(owner)),
      id_(RandomName()),
      clock_(clock),
      times_(times) {
  Acquire(patience);
  CheckThatConditionsHold();
  renewer_ = std::jthread([this](const std::stop_token& stop) {
    while (true) {
      WaitFor(times_.renew_seconds, stop);
      if (stop.stop_requested()) return;
      try {
        Renew(stop);
      } catch (const Error& error) {
        if (stop.stop_requested()) return;
        LogWarning("cannot renew the lock {}: {}", location_.Path(), error.what());
      }
    }
  });
}

Lease::~Lease() {
  renewer_.request_stop();
  renewer_.join();
  if (lost_) return;
  try {
    // A store that does not answer must not keep a process from ending: the next owner waits
    // instead.
    std::stop_source too_long;
    const std::jthread timer([&](const std::stop_token& done) {
      WaitFor(kReleaseSeconds, done);
      if (!done.stop_requested()) too_long.request_stop();
    });
    std::optional<Client::Content> there;
    Rewrite(/*released=*/true, &there, too_long.get_token());
  } catch (const Error& error) {
    LogWarning("cannot release the lock {}: {}", location_.Path(), error.what());
  }
}

std::string Lease::Text(bool released) const {
  return nlohmann::json({{"owner", owner_},
                         {"id", id_},
                         {"process", ThisProcess()},
                         {"renewals", renewals_},
                         {"released", released}})
             .dump() +
         "\n";
}

std::string Lease::OwnerOf(Client& client, const Location& location) {
  const std::optional<Client::Content> there = client.Get(location);
  return there ? ParseOwner(there->text).owner : "";
}

void Lease::FailTaken(const Client::Content& there) const {
  Fail(ErrorCode::kCantCreate,
       "another run is writing to {}: {}; wait for it, or choose another checkpoint.dir",
       location_.Path().substr(0, location_.Path().rfind('/')), ParseOwner(there.text).owner);
}

bool Lease::TryToTake(const std::optional<Client::Content>& there) {
  const std::optional<std::string> etag = client_.Put(
      location_, Text(false), there ? Condition::Matches(there->etag) : Condition::Absent());
  if (etag) etag_ = *etag;
  return etag.has_value();
}

void Lease::Acquire(const Patience& patience) {
  std::optional<Client::Content> seen;
  const double begin = clock_.MonotonicSeconds();
  double seen_at = begin;
  for (bool waiting = false;;) {
    std::optional<Client::Content> there = client_.Get(location_);
    const double now = clock_.MonotonicSeconds();
    const Owner owner = there ? ParseOwner(there->text) : Owner{.released = true};
    const bool is_left = owner.released || IsGone(owner.process);
    const bool has_expired =
        seen && there && there->etag == seen->etag && now - seen_at >= times_.expire_seconds;
    if (is_left || has_expired) {
      took_over_ = !is_left;
      if (TryToTake(there)) return;
      continue;  // somebody else was faster, or the owner has renewed it after all
    }
    // Renewed while this process was watching: its owner is alive.
    const bool is_alive = seen && there->etag != seen->etag;
    if ((is_alive && now - begin >= patience.seconds) || (patience.ends && patience.ends()))
      FailTaken(*there);
    if (!waiting)
      LogInfo("waiting up to {:.0f} s to see whether another run still writes here: {}",
              times_.expire_seconds, owner.owner);
    waiting = true;
    if (!seen || is_alive) {
      seen = std::move(there);
      seen_at = now;
    }
    WaitFor(times_.poll_seconds, {});
  }
}

// A store that ignores conditions would let two runs write to one directory. The lock exists now,
// so neither write may succeed. They write other text than the lock's: after a lost answer, finding
// the lock's own text would look like a successful write.
void Lease::CheckThatConditionsHold() {
  const std::string text = "a test of conditions by " + id_;
  const bool absent = client_.Put(location_, text, Condition::Absent()).has_value();
  const bool matches =
      !absent &&
      client_.Put(location_, text, Condition::Matches("\"00000000000000000000000000000000\""))
          .has_value();
  if (!absent && !matches) return;
  client_.Delete(location_);
  Fail(ErrorCode::kConfig,
       "the store at {} ignores conditional writes ({}), so two runs could write to one directory "
       "without noticing: use a store that has them",
       client_.settings().endpoint, absent ? "If-None-Match" : "If-Match");
}

bool Lease::Rewrite(bool released, std::optional<Client::Content>* there,
                    const std::stop_token& stop) {
  while (true) {
    const std::optional<std::string> etag =
        client_.Put(location_, Text(released), Condition::Matches(etag_), stop);
    if (etag) {
      etag_ = *etag;
      return true;
    }
    *there = client_.Get(location_);
    if (!*there || ParseOwner((*there)->text).id != id_) return false;
    // An earlier renewal that seemed to fail has succeeded after all.
    etag_ = (*there)->etag;
  }
}

void Lease::Renew(const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  if (lost_) return;
  ++renewals_;
  std::optional<Client::Content> there;
  if (Rewrite(/*released=*/false, &there, stop)) return;
  lost_ = Error(ErrorCode::kCantCreate,
                fmt::format("{} was taken over by another run ({}), because this one did not renew "
                            "its lock in time: it no longer writes here",
                            location_.Path().substr(0, location_.Path().rfind('/')),
                            there ? ParseOwner(there->text).owner : "it is gone"));
  LogWarning("{}", lost_->what());
}

void Lease::Check() {
  Renew({});
  const std::lock_guard lock(mutex_);
  if (lost_) throw *lost_;
}

}  // namespace renzan::s3
