#pragma once

// The inputs of blocks that match a query with an item: these two come first.

#include <cstddef>
#include <string>
#include <string_view>

#include "renzan/base/function_ref.h"
#include "renzan/model/blocks/block.h"

namespace renzan {

inline constexpr size_t kQueryInput = 0, kItemInput = 1;

// Throws kConfig unless the block has so many inputs: "`takes`, but has 3 inputs".
void CheckMatchInputs(const BlockPlace& place, size_t inputs, std::string_view takes);

// The width of the query. Throws kConfig, with what `refusal` says, unless the item has the same.
int64_t WidthOfMatch(const BlockPlace& place, FunctionRef<std::string()> refusal);

}  // namespace renzan
