#pragma once

namespace renzan {

// [begin, end)
struct IndexRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool contains(int index) const { return index >= begin && index < end; }
  bool operator==(const IndexRange&) const = default;
};

}  // namespace renzan
