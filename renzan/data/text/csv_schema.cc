#include "renzan/data/text/csv_schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

struct ColumnInFile {
  CsvColumn column;
  size_t position = 0;
};

}  // namespace

void CsvColumn::Describe(ConfigFields& fields) {
  fields.Choice("role", &role, {"label", "dense", "categorical", "multi_hot", "skip"});
  fields.Choice("transform", &transform, {"none", "log"});
  fields.Field("separator", &separator);

  fields.Require(!role.empty(), "role",
                 "is missing: one of label, dense, categorical, multi_hot, skip");
  fields.Require(role == "dense" || transform == "none", "transform", "belongs to role dense");
  fields.Require(role == "multi_hot" || separator == "|", "separator", "belongs to role multi_hot");
  fields.Require(separator.size() == 1, "separator", "must be one character");
  fields.Field("unseen", &unseen);
  fields.Require(role == "categorical" || role == "multi_hot" || std::isnan(unseen), "unseen",
                 "belongs to roles categorical and multi_hot");
  fields.Require(std::isnan(unseen) || (unseen >= 0 && unseen < 1), "unseen",
                 "must be a share of the lookups, from 0 to less than 1");
  label.Describe(role == "label", fields);
}

CsvSchema CsvSchema::ReadFile(const std::string& path) {
  CsvSchema schema;
  std::map<std::string, ColumnInFile> columns;
  ReadConfigFile(path, {}, [&](ConfigFields& fields) {
    fields.Field("delimiter", &schema.delimiter);
    fields.Field("header", &schema.header);
    fields.Field("quotes", &schema.quotes);
    fields.Field("trim", &schema.trim);
    fields.Field("missing", &schema.missing);
    // Columns are read in the order of the schema file, which is their order in files without a
    // header.
    size_t position = 0;
    fields.Map<ColumnInFile>("columns", &columns, [&](ConfigFields& inner, ColumnInFile& item) {
      item.position = position++;
      item.column.Describe(inner);
    });
    if (schema.delimiter == "tab") schema.delimiter = "\t";
    fields.Require(
        schema.delimiter.size() == 1 && schema.delimiter != "\"" && schema.delimiter != "\n",
        "delimiter", "must be one character, or the word tab");
    const auto labels = std::count_if(columns.begin(), columns.end(), [](const auto& entry) {
      return entry.second.column.role == "label";
    });
    fields.Require(labels == 1, "columns",
                   fmt::format("must have exactly one with role label, not {}", labels));
    for (const auto& [name, item] : columns)
      fields.Require(item.column.role != "multi_hot" || item.column.separator != schema.delimiter,
                     "columns",
                     fmt::format("has '{}' with a separator that is the delimiter", name));
  });
  schema.columns.resize(columns.size());
  for (auto& [name, item] : columns) {
    item.column.name = name;
    schema.columns[item.position] = std::move(item.column);
  }
  return schema;
}

}  // namespace renzan
