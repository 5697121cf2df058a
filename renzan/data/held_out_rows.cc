#include "renzan/data/held_out_rows.h"

#include <algorithm>
#include <span>

#include "renzan/data/dataset/manifest.h"

namespace renzan {

HeldOutRows::HeldOutRows(const std::string& directory, const DatasetSchema& schema,
                         DatasetWriterOptions options, const std::vector<Vocabulary>& training)
    : schema_(schema),
      map_ids_at_end_(options.map_ids_at_end),
      dense_at_end_(!options.dense_at_end.empty()) {
  for (size_t f = 0; f < training.size(); ++f) {
    const Vocabulary& shared = training[FirstOfTable(schema, f)];
    vocabularies_.push_back(shared.provisional() ? shared.Collecting() : shared);
    (schema.categorical[f].multi_hot ? multi_hot_ : one_hot_).push_back(f);
    lookups_.push_back({.feature = schema.categorical[f].name});
  }
  writer_.emplace(directory, schema, std::move(options));
  input_rows_.emplace(writer_->PathOfFile(kInputRowsName));
}

int64_t HeldOutRows::LookUp(size_t feature, std::string_view value) {
  const int64_t id = vocabularies_[feature].Id(value, rows_);
  lookups_[feature].lookups += id != Vocabulary::kMissing;
  return id;
}

void HeldOutRows::Append(const TextRow& row, int64_t input_row) {
  ids_.resize(one_hot_.size());
  for (size_t i = 0; i < one_hot_.size(); ++i) ids_[i] = LookUp(one_hot_[i], row.one_hot[i]);
  bags_.resize(multi_hot_.size());
  for (size_t i = 0; i < multi_hot_.size(); ++i) {
    bags_[i].clear();
    for (std::string_view value : row.multi_hot[i])
      bags_[i].push_back(LookUp(multi_hot_[i], value));
  }
  writer_->Append(row.label, row.dense, ids_, bags_,
                  dense_at_end_ ? row.unscaled : std::span<const double>(),
                  schema_.weight.empty() ? std::nullopt : std::optional(row.weight), row.keys,
                  row.further_labels, row.bag_weights);
  input_rows_->Add(rows_++, input_row);
  labels_.Add(row.label, row.other_label);
}

ImportSummary HeldOutRows::Complete(const std::vector<Vocabulary>& training,
                                    const DatasetManifest& of_training,
                                    const DatasetWriter::Scale& scale, size_t num_label_texts) {
  DatasetManifest& manifest = writer_->manifest();
  std::vector<std::vector<int32_t>> id_maps(training.size());
  ImportSummary summary;
  for (size_t f = 0; f < training.size(); ++f) {
    // Features of one table have one vocabulary, that of the first of them.
    const size_t owner = FirstOfTable(schema_, f);
    const Vocabulary& shared = training[owner];
    if (vocabularies_[f].provisional())
      id_maps[f] = vocabularies_[f].FinishBy(shared, &lookups_[f].unseen);
    const std::string& name = manifest.categorical[f];
    FeatureEntry& entry = manifest.features.at(name);
    entry.num_embeddings = shared.num_embeddings();
    entry.vocabulary = shared.spec();
    entry.unseen = shared.unseen_share();
    if (owner == f) shared.Save(writer_->vocabulary_folder(), name, &manifest);
    if (shared.knows_unseen()) summary.unseen.push_back(lookups_[f]);
  }
  manifest.vocabularies_reused = true;
  manifest.dense_transforms = of_training.dense_transforms;
  manifest.input_rows = input_rows_->Close();
  manifest.format_version = std::max(manifest.format_version, kKeysFormatVersion);
  summary.rows = rows_;
  summary.label_name = schema_.label;
  summary.label = labels_.Summary(num_label_texts, manifest);
  summary.further_labels = FurtherLabelsOf(manifest);
  summary.weight = manifest.weight;
  summary.negatives_kept = manifest.negatives_kept;
  writer_->Complete(map_ids_at_end_ ? &id_maps : nullptr, scale);
  return summary;
}

}  // namespace renzan
