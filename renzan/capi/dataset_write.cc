#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/capi/guard.h"
#include "renzan/data/arrow/arrow_abi.h"
#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/import.h"

using namespace renzan;
using namespace renzan::capi;

namespace {

// Releases it at the end.
class StreamOwner {
 public:
  explicit StreamOwner(ArrowArrayStream* stream) : stream_(stream) {}
  ~StreamOwner() {
    if (stream_ != nullptr && stream_->release != nullptr) stream_->release(stream_);
  }
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;

 private:
  ArrowArrayStream* stream_;
};

std::vector<std::string> TextsOf(const char* const* texts, size_t count, const char* name) {
  if (count > 0) NeedsArgument(texts, name);
  std::vector<std::string> list;
  for (size_t i = 0; i < count; ++i) {
    NeedsArgument(texts[i], name);
    list.emplace_back(texts[i]);
  }
  return list;
}

// Rows have the schema of a CSV file, and make the dataset that it would.
ImportOptions OptionsOf(const char* directory, const renzan_import_options& given) {
  ImportOptions options;
  options.output = directory;
  options.format = "csv";
  options.vocabulary = TextsOf(given.vocabulary, given.num_vocabulary, "vocabulary");
  options.unseen = TextsOf(given.unseen, given.num_unseen, "unseen");
  if (given.vocabulary_from != nullptr) options.vocabulary_from = given.vocabulary_from;
  if (given.keep_negatives != nullptr) options.keep_negatives = *given.keep_negatives;
  if (given.seed != nullptr) options.seed = *given.seed;
  if (given.split != nullptr) options.split = given.split;
  options.grow = given.grow != 0;
  options.skip_bad_rows = given.skip_bad_rows != 0;
  if (given.shard_rows != 0) options.shard_rows = given.shard_rows;
  return options;
}

// Of streams that are still to be read.
void WriteRows(const std::vector<ArrowInput>& inputs, const std::string& made_of,
               const char* directory, const char* schema, const char* schema_name,
               const renzan_import_options* options, renzan_import_result* result) {
  NeedsArgument(directory, "directory");
  NeedsArgument(schema, "schema");
  NeedsArgument(schema_name, "schema_name");
  for (const ArrowInput& input : inputs)
    if (input.stream->release == nullptr)
      Fail(ErrorCode::kUsage, "the stream was read before: make a new one");
  const renzan_import_options given = options == nullptr ? renzan_import_options{} : *options;
  ImportOptions import_options = OptionsOf(directory, given);
  import_options.made_of = made_of;
  int64_t rows = 0;
  if (given.progress != nullptr) {
    import_options.progress = [&](const ImportProgress& progress) {
      rows = progress.rows + progress.test_rows;
    };
    import_options.stop = [&] { return given.progress(given.context, rows) != 0; };
  }
  const Labels labels =
      import_options.is_training_data() ? Labels::kRequired : Labels::kMayBeMissing;
  const std::unique_ptr<RowSource> source = MakeArrowSource(inputs, schema, schema_name, labels);
  const ImportSummary done = ImportRows(import_options, *source);
  if (result != nullptr)
    *result = {done.rows, done.label.positive_rows, done.bad_rows, done.dropped_rows,
               done.test_rows};
}

}  // namespace

renzan_status renzan_dataset_write(ArrowArrayStream* stream, const char* directory,
                                   const char* schema, const char* schema_name,
                                   const renzan_import_options* options,
                                   renzan_import_result* result) {
  const StreamOwner owner(stream);
  return Guard([&] {
    NeedsArgument(stream, "stream");
    WriteRows({{.stream = stream}}, "", directory, schema, schema_name, options, result);
  });
}

renzan_status renzan_dataset_write_files(ArrowArrayStream* const* streams, const char* const* files,
                                         size_t count, const char* directory, const char* schema,
                                         const char* schema_name,
                                         const renzan_import_options* options,
                                         renzan_import_result* result) {
  std::deque<StreamOwner> owners;
  if (streams != nullptr)
    for (size_t i = 0; i < count; ++i) owners.emplace_back(streams[i]);
  return Guard([&] {
    NeedsArgument(streams, "streams");
    const std::vector<std::string> names = TextsOf(files, count, "files");
    if (count == 0) Fail(ErrorCode::kUsage, "no files are given");
    std::vector<ArrowInput> inputs;
    for (size_t i = 0; i < count; ++i) {
      NeedsArgument(streams[i], "streams");
      inputs.push_back({streams[i], names[i]});
    }
    WriteRows(inputs, "parquet", directory, schema, schema_name, options, result);
  });
}
