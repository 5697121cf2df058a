#include "renzan/model/blocks/match_inputs.h"

#include <fmt/format.h>

#include "renzan/base/counted.h"

namespace renzan {

void CheckMatchInputs(const BlockPlace& place, size_t inputs, std::string_view takes) {
  if (place.inputs.size() != inputs)
    place.Reject(fmt::format("{}, but has {}", takes, Counted(std::ssize(place.inputs), "input")));
}

int64_t WidthOfMatch(const BlockPlace& place, FunctionRef<std::string()> refusal) {
  const int64_t width = ColumnsOf(place.inputs[kQueryInput]);
  if (ColumnsOf(place.inputs[kItemInput]) != width) place.Reject(refusal());
  return width;
}

}  // namespace renzan
