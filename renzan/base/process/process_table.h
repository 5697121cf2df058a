#pragma once

// What /proc says about processes of this machine. A process may have ended by the time the answer
// is used. Thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

std::vector<pid_t> AllProcesses();

// The content of /proc/PID/NAME. Empty if the process does not exist or ends while it is read.
std::string ProcessFile(pid_t pid, const char* name);

// The value of the line "NAME: VALUE" in such a text (never its first line). Empty if there is
// none.
std::string_view StatusField(std::string_view text, std::string_view name);

// For each session leader: the live processes of its session, and their descendants in any session.
// Orphans that have left the session are not found.
std::vector<std::vector<pid_t>> ProcessesOf(const std::vector<pid_t>& leaders);

// Whether the process exists and has not ended. A zombie has.
bool IsAlive(pid_t pid);

// When the process started, in clock ticks since the machine did: no other process of the same pid
// has that. Nothing if it does not exist or has ended.
std::optional<uint64_t> StartTicksOf(pid_t pid);

// The children of `pid`, started or adopted, including zombies.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Whether the process handles or ignores this signal. False: the signal would end it.
bool HandlesOrIgnores(pid_t pid, int signal);

// Whether it is a process of user `uid` that was started with `variable` ("NAME=value") in its
// environment. Only root can read the environments of other users' processes.
bool IsProcessWith(pid_t pid, const std::string& variable, uid_t uid);

}  // namespace renzan
