#include "renzan/data/dataset/fingerprint.h"

#include <fmt/format.h>

#include "renzan/base/sha256.h"

namespace renzan {

std::string Fingerprint(const DatasetManifest& manifest) {
  Sha256 hash;
  const auto add = [&](const auto&... parts) { (hash.Update(fmt::format("{}\n", parts)), ...); };
  add("label", manifest.label, "dense");
  for (const std::string& name : manifest.dense) add(name);
  add("categorical");
  for (const CategoricalFeature& feature : manifest.schema().categorical)
    add(feature.name, feature.num_embeddings, feature.multi_hot);
  for (const auto& [folder, shard] : manifest.shards) {
    add("shard", shard.rows);
    for (const auto& [name, file] : shard.files) add(name, file.sha256);
  }
  if (manifest.format_version > 1) {
    add("dense_transforms");
    for (const std::string& transform : manifest.dense_transforms) add(transform);
    add("vocabularies");
    for (const std::string& name : manifest.categorical) add(manifest.VocabularyIdentity(name));
  }
  // Datasets without a rule keep the fingerprint that they had before rules were recorded.
  if (!manifest.label_rule.empty()) add("label_rule", manifest.label_rule);
  if (manifest.label_optional) add("label_optional");
  // Likewise for those with one label, ...
  for (const std::string& name : manifest.further_labels) {
    const LabelEntry& entry = manifest.further_label_entries.at(name);
    add("further_label", name, entry.rule, entry.optional);
  }
  // ... and for columns that are read plainly.
  for (const auto& [column, parsing] : manifest.parsing)
    if (parsing != kPlainParsing) add("parsing", column, parsing);
  // The same for those without weights, or with all negatives.
  if (!manifest.weight.name.empty()) add("weight", manifest.weight.name);
  if (manifest.negatives_kept != 1) add("negatives_kept", manifest.negatives_kept);
  // And for those whose features have tables of their own, no order and no weights.
  for (const auto& [name, feature] : manifest.features) {
    if (!feature.table.empty()) add("table", name, feature.table);
    if (feature.max_length > 0) add("max_length", name, feature.max_length);
    if (!feature.weights.name.empty()) add("weights", name, feature.weights.name);
  }
  return hash.HexDigest();
}

}  // namespace renzan
