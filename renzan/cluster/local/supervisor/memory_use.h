#pragma once

// How much memory processes of this machine take from others: what they have written to memory of
// their own, and memory that they share as tmpfs or System V segments and have mapped. Not the page
// cache, also where it is mapped: the kernel takes that back; nor what has been swapped out, nor
// pages of hugetlbfs. A process that is gone has none. Thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace renzan::cluster::local {

// At least what MemoryKib() says: memory that several of them share counts for each. Takes a few
// microseconds a process.
int64_t MostMemoryKib(const std::vector<pid_t>& processes);

// A page that n processes share (any, not only these) counts 1/n for each. The kernel walks through
// all pages for it: some milliseconds for each GiB. Of processes whose pages we may not look at,
// which only happens without CAP_SYS_PTRACE, at least the largest counts.
int64_t MemoryKib(const std::vector<pid_t>& processes);

}  // namespace renzan::cluster::local
