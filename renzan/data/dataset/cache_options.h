#pragma once

// Where the cache of datasets in a store is, and how large it may become.

#include <string>

#include "renzan/data/dataset/dataset.h"
#include "renzan/storage/cache/block_cache.h"

namespace renzan {

// Fills in what `options` leaves open. Throws Error kConfig if there is no place for the cache.
BlockCache::Options CacheOptionsOf(const DataCacheOptions& options, const std::string& id);

}  // namespace renzan
