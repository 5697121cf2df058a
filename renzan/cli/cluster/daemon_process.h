#pragma once

// Starts a background process.

#include <functional>
#include <string>

namespace renzan {

// Runs `body` in a child process with a new session, in the directory /, with stdin from /dev/null
// and stdout and stderr appended to `log`. Returns once the child has written to `ready_fd` and
// closed it. Throws the Error that ended the child before that, or kUnavailable if it ended
// otherwise. For a single-threaded process.
void StartDetached(const std::string& log, const std::function<void(int ready_fd)>& body);

}  // namespace renzan
