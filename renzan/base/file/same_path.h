#pragma once

// Paths that are recorded and later compared.

#include <string>

namespace renzan {

// Whether both texts lead to the same place: relative ones from the current directory, whatever
// slashes and "." they have. Does not look at the disk, so ".." and symbolic links are what they
// are. In a store (s3://...), "." is part of a name.
bool IsSamePath(const std::string& a, const std::string& b);

}  // namespace renzan
