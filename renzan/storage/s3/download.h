#pragma once

// Reads a large object into a file, several ranges at once.

#include "renzan/storage/s3/client.h"

namespace renzan::s3 {

// Two for each CPU, within these limits: with more, threads wait for each other, and one connection
// to a store on the network carries about 90 MB/s.
constexpr int kFewestRangesInFlight = 4, kMostRangesInFlight = 8;
// Large ranges cost a store less; the last ones are small, so that all connections stay busy to the
// end.
constexpr uint64_t kMinRangeBytes = 16 << 20, kMaxRangeBytes = 64 << 20;

// Fills the file `fd`, which is empty. `object`: as Head() describes it. Throws Error kIo, which
// names `where`, if the disk is full.
void Download(Client& client, const Location& location, const Object& object, int fd,
              const std::string& where);

}  // namespace renzan::s3
