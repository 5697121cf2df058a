#pragma once

// The test set of an import that splits its input: the rows that are held out, with the
// vocabularies and the constants of the training set, which are known only at the end. The dataset
// is that of an import of these rows with --vocabulary-from. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/import.h"
#include "renzan/data/input_rows.h"
#include "renzan/data/text/row_parser.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

class HeldOutRows {
 public:
  // `schema`, `options` and `training` are those of the training set. `schema.negatives_kept`: of
  // these rows.
  HeldOutRows(const std::string& directory, const DatasetSchema& schema,
              DatasetWriterOptions options, const std::vector<Vocabulary>& training);

  void Append(const TextRow& row, int64_t input_row);
  int64_t rows() const { return rows_; }

  // Completes the files. `training` has final ids, and `manifest` is the training set's, whose
  // constants of transforms these are; `scale` as for DatasetWriter.
  ImportSummary Complete(const std::vector<Vocabulary>& training, const DatasetManifest& manifest,
                         const DatasetWriter::Scale& scale, size_t num_label_texts);
  void Commit() { writer_->Commit(); }

 private:
  int64_t LookUp(size_t feature, std::string_view value);

  const DatasetSchema schema_;
  const bool map_ids_at_end_;
  const bool dense_at_end_;  // constants of transforms are not known before
  std::vector<Vocabulary> vocabularies_;
  std::vector<UnseenLookups> lookups_;
  std::vector<size_t> one_hot_, multi_hot_;  // features
  std::optional<DatasetWriter> writer_;
  std::optional<InputRowsWriter> input_rows_;
  std::vector<int64_t> ids_;
  std::vector<std::vector<int64_t>> bags_;
  LabelCounter labels_;
  int64_t rows_ = 0;
};

}  // namespace renzan
