#pragma once

namespace renzan {

// A TCP port of 127.0.0.1 that was free a moment ago. Throws Error kOsError. Thread-safe.
int FreePort();

}  // namespace renzan
