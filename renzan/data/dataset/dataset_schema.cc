#include <fmt/format.h>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

std::vector<DatasetLabel> DatasetSchema::labels() const {
  if (!has_labels()) return {};
  std::vector<DatasetLabel> all = {first_label()};
  all.insert(all.end(), further_labels.begin(), further_labels.end());
  return all;
}

std::vector<std::string> DatasetSchema::label_names() const {
  std::vector<std::string> names;
  for (const DatasetLabel& each : labels()) names.push_back(each.name);
  return names;
}

std::vector<std::string> DatasetSchema::number_labels() const {
  std::vector<std::string> names;
  for (const DatasetLabel& each : labels())
    if (each.is_number()) names.push_back(each.name);
  return names;
}

std::string DenseVector::NameOf(int64_t i) const { return fmt::format("{}.{}", name, i); }

size_t FirstOfTable(const DatasetSchema& schema, size_t feature) {
  size_t first = 0;
  while (schema.categorical[first].table_name() != schema.categorical[feature].table_name())
    ++first;
  return first;
}

std::string DifferentlyParsed(const std::map<std::string, std::string>& a,
                              const std::map<std::string, std::string>& b) {
  for (const auto& [column, parsing] : a)
    if (const auto other = b.find(column); other != b.end() && other->second != parsing)
      return column;
  return "";
}

}  // namespace renzan
