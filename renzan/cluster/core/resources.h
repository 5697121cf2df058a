#pragma once

// Amounts of countable resources, indexed by kind. Snapshot::resource_names gives the kinds: cpu,
// memory and gpu always come first. Value types.

#include <algorithm>
#include <array>
#include <cstdint>

namespace renzan::cluster {

inline constexpr int kMaxResources = 8;
inline constexpr int kCpu = 0;     // in thousandths of a core
inline constexpr int kMemory = 1;  // in MiB
inline constexpr int kGpu = 2;     // whole devices
inline constexpr int kFirstNamedResource = 3;

struct Resources {
  std::array<int64_t, kMaxResources> amount{};

  int64_t operator[](int kind) const { return amount[kind]; }
  int64_t& operator[](int kind) { return amount[kind]; }
  int64_t gpu() const { return amount[kGpu]; }

  Resources& operator+=(const Resources& other) {
    for (int kind = 0; kind < kMaxResources; ++kind) amount[kind] += other.amount[kind];
    return *this;
  }
  Resources& operator-=(const Resources& other) {
    for (int kind = 0; kind < kMaxResources; ++kind) amount[kind] -= other.amount[kind];
    return *this;
  }
  bool operator==(const Resources&) const = default;

  bool FitsIn(const Resources& room) const {
    bool fits = true;
    for (int kind = 0; kind < kMaxResources; ++kind) fits &= amount[kind] <= room.amount[kind];
    return fits;
  }
};

inline Resources operator+(Resources a, const Resources& b) { return a += b; }
inline Resources operator-(Resources a, const Resources& b) { return a -= b; }
inline Resources operator*(Resources a, int64_t times) {
  if (times == 1) return a;  // the usual case; multiplications are not vectorized
  for (int64_t& amount : a.amount) amount *= times;
  return a;
}

// How many workers of that size fit into `room`, at most `wanted`. Negative room holds none.
inline int WorkersThatFit(const Resources& room, const Resources& per_worker, int wanted) {
  int64_t workers = wanted;
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (per_worker[kind] > 0)
      workers = std::min(workers, std::max<int64_t>(0, room[kind]) / per_worker[kind]);
  return static_cast<int>(workers);
}

}  // namespace renzan::cluster
