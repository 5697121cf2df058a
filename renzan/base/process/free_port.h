#pragma once

namespace renzan {

// A TCP port of 127.0.0.1 that was just free. Throws Error kOsError. Thread-safe.
int FreePort();

}  // namespace renzan
