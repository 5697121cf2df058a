#pragma once

// What /proc says about processes of this machine. A process may be gone by the time that the
// answer is read. Thread-safe.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace renzan {

std::vector<pid_t> AllProcesses();

// Of /proc/PID/NAME. Empty when the process is gone, also when it ends between the opening and the
// reading.
std::string ProcessFile(pid_t pid, const char* name);

// The value of the line "NAME: VALUE" in such a text, but for its first line. Empty when there is
// none.
std::string_view StatusField(std::string_view text, std::string_view name);

// For each of these leaders of sessions: the living processes of its session, and their children
// and children's children in whatever session. Not found: who has left the session and lost a
// parent.
std::vector<std::vector<pid_t>> ProcessesOf(const std::vector<pid_t>& leaders);

// Processes that `pid` has started or adopted and that still live or wait to be reaped.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Whether the process does something of its own, or nothing at all, on this signal. False: the
// signal would end it.
bool IsPreparedFor(pid_t pid, int signal);

// The processes of user `uid` that were started with `variable` ("NAME=value") in their
// environment. Only root sees those of others.
std::vector<pid_t> ProcessesWith(const std::string& variable, uid_t uid);

// The same for one process.
bool IsProcessWith(pid_t pid, const std::string& variable, uid_t uid);

}  // namespace renzan
