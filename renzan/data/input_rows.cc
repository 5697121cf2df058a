#include "renzan/data/input_rows.h"

#include <algorithm>
#include <span>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/data/dataset/shard_files.h"
#include "renzan/data/skipped_rows.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr size_t kRunNumbers = 2;

// Whether the program that made it may have left rows out without recording which.
bool MayLackRows(const Dataset& dataset) {
  const DatasetManifest& manifest = dataset.manifest();
  if (!manifest.created_by.starts_with("import")) return false;
  const std::vector<std::string> names =
      Storage::Of(dataset.directory()).Names(dataset.directory());
  // The oldest ones did not list the rows that they skipped, nor how they parsed the others.
  return manifest.parsing.empty() || manifest.negatives_kept != 1 ||
         std::find(names.begin(), names.end(), NameInDataset(manifest, kSkippedRowsName)) !=
             names.end();
}

}  // namespace

NpyWriter& InputRowsWriter::File() {
  if (!file_) file_.emplace(path_, NpyType::kInt64, std::vector<int64_t>{kRunNumbers});
  return *file_;
}

void InputRowsWriter::Add(int64_t row, int64_t input_row) {
  if (input_row - row == left_out_) return;
  left_out_ = input_row - row;
  const int64_t run[kRunNumbers] = {row, input_row};
  File().Append(run, 1);
}

FileEntry InputRowsWriter::Close() {
  File().Close();
  return {NpyTypeName(file_->type()), file_->shape(), Sha256OfFile(path_)};
}

InputRows::InputRows(const Dataset& dataset) {
  const DatasetManifest& manifest = dataset.manifest();
  if (manifest.input_rows.dtype.empty()) {
    if (MayLackRows(dataset))
      Fail(ErrorCode::kConfig,
           "{}: the version that imported it did not record which rows of the input it left out: "
           "import the data again",
           dataset.directory());
    return;
  }
  const std::string path =
      fmt::format("{}/{}", dataset.directory(), NameInDataset(manifest, kInputRowsName));
  runs_ = OpenWholeArray(path, manifest.input_rows);
  if (runs_->shape().size() != 2 || runs_->shape()[1] != kRunNumbers)
    Fail(ErrorCode::kData, "{}: must have two numbers for each run, but its shape is {}", path,
         FormatShape(runs_->shape()));
  // Each run begins after the one before, and after more rows that were left out.
  int64_t first = -1, left_out = 0;
  const std::span<const int64_t> numbers = runs_->values<int64_t>();
  for (size_t i = 0; i < numbers.size(); i += kRunNumbers) {
    const int64_t row = numbers[i], input_row = numbers[i + 1];
    if (row <= first || row >= manifest.rows || input_row < row || input_row - row <= left_out)
      Fail(ErrorCode::kData, "{} is corrupt: row {} is said to be row {} of the input", path, row,
           input_row);
    first = row;
    left_out = input_row - row;
  }
}

int64_t InputRows::Of(int64_t row) const {
  if (!runs_) return row;
  // The last run that does not begin after the row.
  const std::span<const int64_t> numbers = runs_->values<int64_t>();
  size_t begin = 0, end = numbers.size() / kRunNumbers;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (numbers[middle * kRunNumbers] <= row)
      begin = middle + 1;
    else
      end = middle;
  }
  if (begin == 0) return row;
  const size_t run = (begin - 1) * kRunNumbers;
  return numbers[run + 1] + (row - numbers[run]);
}

}  // namespace renzan
