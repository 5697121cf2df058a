#pragma once

// A process that goes on when the command that started it has ended.

#include <functional>
#include <string>

namespace renzan {

// Runs `body` in a process of its own session, in the directory /, with stdin from /dev/null and
// stdout and stderr appended to `log`. Returns when it has written something to the descriptor that
// it was given. Throws the Error that ends it before; kUnavailable when it ends in another way. For
// a process without other threads.
void StartDetached(const std::string& log, const std::function<void(int ready_fd)>& body);

}  // namespace renzan
