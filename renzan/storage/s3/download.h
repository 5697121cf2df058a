#pragma once

// Reads a large object into a file: ranges of it at a time, several at once.

#include "renzan/storage/s3/client.h"

namespace renzan::s3 {

constexpr int kRangesInFlight = 8;
// A large object is read in large ranges, which cost a store less; a smaller one in so many that
// all connections are busy to the end.
constexpr uint64_t kMinRangeBytes = 16 << 20, kMaxRangeBytes = 64 << 20;

// Fills the file `fd`, which is empty. `object`: as Head() describes it. Throws Error kIo, which
// names `where`, if the disk is full.
void Download(Client& client, const Location& location, const Object& object, int fd,
              const std::string& where);

}  // namespace renzan::s3
