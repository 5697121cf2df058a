#include "renzan/config/data_config.h"

#include "renzan/base/mebibytes.h"

namespace renzan {

void SplitConfig::Describe(ConfigFields& fields, Decides rows_decide) {
  // The data itself is compared by its fingerprint.
  fields.Tag(Decides::kRun);
  fields.Field("path", &path, "dataset directory, made by `renzan data import` or `data synth`");
  fields.Tag(rows_decide);
  fields.Field("rows", &rows, "[begin, end) of its rows; all when empty");
  fields.Require(rows.empty() || (rows.size() == 2 && rows[0] >= 0 && rows[0] < rows[1]), "rows",
                 "must be [begin, end] with 0 <= begin < end");
}

DataCacheOptions DataCacheConfig::options() const {
  return {.directory = directory, .max_bytes = static_cast<uint64_t>(ParseMebibytes(size)) << 20};
}

void DataCacheConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kPlacement);
  fields.Field("directory", &directory,
               "on a local disk; empty: RENZAN_DATA_CACHE, else ~/.cache/renzan/data");
  fields.Field("size", &size, "largest size, such as 500GiB; 0: four fifths of the free space");
  fields.Require(TryParseMebibytes(size).has_value(), "size", kMemoryRule);
}

void DataConfig::Describe(ConfigFields& fields) {
  const auto describe = [&](const char* key, SplitConfig* split, Decides rows, const char* doc) {
    fields.Section(
        key, [=](ConfigFields& inner) { split->Describe(inner, rows); }, doc);
  };
  describe("train", &train, Decides::kModel, "what to learn from");
  describe("eval", &eval, Decides::kRun, "held-out samples; none when the path is empty");
  fields.Section("cache", &cache, "of data in a store (s3://bucket/prefix)");
  fields.Tag(Decides::kModel);
  fields.Field("shuffle", &shuffle, "a new sample order each epoch, derived from the seed");
  fields.Tag(Decides::kRun);
  fields.Field("verify", &verify, "verify the SHA-256 of the files before training");
  fields.Field("verify_blocks", &verify_blocks,
               "verify the checksum of each block when it is first read");
}

}  // namespace renzan
