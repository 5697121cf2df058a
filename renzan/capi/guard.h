#pragma once

// What every function of the C interface does around its work: C++ exceptions become statuses, and
// the host program gets no SIGPIPE.

#include <exception>
#include <string>

#include "renzan/base/function_ref.h"
#include "renzan/capi/renzan.h"

namespace renzan::capi {

// While it lives, a write to a peer that has died does not raise SIGPIPE in this thread, nor in
// threads that it starts meanwhile.
class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  bool was_pending_, was_blocked_;
};

// Runs `body`. An Error becomes its status, and its text renzan_last_error(). Running out of memory
// is RENZAN_OS_ERROR, any other exception RENZAN_SOFTWARE.
renzan_status Guard(FunctionRef<void()> body) noexcept;

// Throws an Error (kUsage) that names the argument.
void NeedsArgument(const void* pointer, const char* name);

}  // namespace renzan::capi
