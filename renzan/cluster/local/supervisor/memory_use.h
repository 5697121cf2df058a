#pragma once

// Memory use of processes: anonymous memory and mapped shared memory (tmpfs, System V segments).
// Not the page cache, even if mapped, because the kernel can reclaim it; nor swapped memory, nor
// hugetlbfs pages. A process that has ended uses none. Thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace renzan::cluster::local {

// An upper bound of MemoryKib(): shared memory is counted for every process. Takes a few
// microseconds per process.
int64_t MaxMemoryKib(const std::vector<pid_t>& processes);

// A page that n processes share (not only these) counts 1/n for each. Takes some milliseconds per
// GiB, because the kernel visits all pages. If processes cannot be inspected, which happens only
// without CAP_SYS_PTRACE, the result is at least the memory of the largest of them.
int64_t MemoryKib(const std::vector<pid_t>& processes);

}  // namespace renzan::cluster::local
