#include "renzan/data/dataset/cache_options.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// $XDG_CACHE_HOME is where programs keep data that they can fetch again.
std::string DefaultDirectory() {
  if (const std::string given = Variable("RENZAN_DATA_CACHE"); !given.empty()) return given;
  if (const std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/renzan/data";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.cache/renzan/data";
  Fail(ErrorCode::kConfig,
       "the data is in a store and there is no place for its cache: set data.cache.directory (or "
       "RENZAN_DATA_CACHE) to a directory on a local disk");
}

}  // namespace

BlockCache::Options CacheOptionsOf(const DataCacheOptions& options, const std::string& id) {
  BlockCache::Options cache{
      .directory = options.directory, .max_bytes = options.max_bytes, .id = id};
  if (cache.directory.empty()) cache.directory = DefaultDirectory();
  if (cache.max_bytes > 0) return cache;
  CreateDirectories(cache.directory);
  std::error_code error;
  const fs::space_info space = fs::space(cache.directory, error);
  if (error) FailToRead(error.value(), cache.directory);
  // What the cache holds already counts as free.
  uint64_t held = 0;
  for (fs::recursive_directory_iterator i(cache.directory, error), end; !error && i != end;
       i.increment(error)) {
    struct stat info {};
    if (::stat(i->path().c_str(), &info) == 0) held += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  cache.max_bytes = (space.available + held) / 5 * 4;
  return cache;
}

}  // namespace renzan
