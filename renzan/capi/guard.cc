#include "renzan/capi/guard.h"

#include <pthread.h>
#include <signal.h>

#include <ctime>
#include <new>

#include "renzan/base/error.h"

namespace renzan::capi {
namespace {

thread_local std::string last_error;

sigset_t Sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

renzan_status Report(renzan_status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

// Before any call, so that no failed invariant of ours can end the host program.
const bool checks_throw = [] {
  ThrowFailedChecks();
  return true;
}();

}  // namespace

NoSigpipe::NoSigpipe() {
  const sigset_t sigpipe = Sigpipe();
  sigset_t pending, before;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

NoSigpipe::~NoSigpipe() {
  if (was_blocked_) return;
  const sigset_t sigpipe = Sigpipe();
  if (!was_pending_) {
    const timespec at_once = {};
    while (sigtimedwait(&sigpipe, nullptr, &at_once) == -1 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_UNBLOCK, &sigpipe, nullptr);
}

renzan_status Guard(FunctionRef<void()> body) noexcept {
  try {
    const NoSigpipe no_sigpipe;
    body();
    return RENZAN_OK;
  } catch (const Error& error) {
    return Report(static_cast<renzan_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return Report(RENZAN_OS_ERROR, "out of memory");
  } catch (const std::exception& error) {
    return Report(RENZAN_SOFTWARE, error.what());
  } catch (...) {
    return Report(RENZAN_SOFTWARE, "unknown exception");
  }
}

void NeedsArgument(const void* pointer, const char* name) {
  if (pointer == nullptr) Fail(ErrorCode::kUsage, "argument '{}' is NULL", name);
}

}  // namespace renzan::capi

const char* renzan_last_error(void) { return renzan::capi::last_error.c_str(); }

const char* renzan_version(void) { return RENZAN_VERSION; }
