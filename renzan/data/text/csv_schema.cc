#include "renzan/data/text/csv_schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/data/dataset/dataset.h"

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
  fields.Field("brackets", &brackets);

  fields.Require(!role.empty(), "role",
                 "is missing: one of label, dense, categorical, multi_hot, skip");
  fields.Require(role == "dense" || transform == "none", "transform", "belongs to role dense");
  fields.Require(role == "multi_hot" || separator.empty(), "separator",
                 "belongs to role multi_hot");
  fields.Require(role == "multi_hot" || !brackets, "brackets", "belongs to role multi_hot");
  fields.Require(separator.size() <= 1, "separator", "must be one character");
  fields.Require(!brackets || separator.empty() ||
                     std::string_view("[]'\"").find(separator) == std::string_view::npos,
                 "separator", "cannot be a bracket or a quote");
  fields.Field("unseen", &unseen);
  fields.Require(role == "categorical" || role == "multi_hot" || std::isnan(unseen), "unseen",
                 "belongs to roles categorical and multi_hot");
  fields.Require(std::isnan(unseen) || (unseen >= 0 && unseen < 1), "unseen",
                 "must be a share of the lookups, from 0 to less than 1");
  label.Describe(role == "label", fields);
}

char CsvColumn::bag_separator() const {
  if (!separator.empty()) return separator[0];
  return brackets ? ',' : '|';
}

std::string CsvSchema::ParsingOf(const CsvColumn& column) const {
  std::vector<std::string> parts;
  if (trim) parts.push_back("trim");
  std::set<std::string> texts(missing.begin(), missing.end());
  texts.erase("");
  for (const std::string& text : texts) parts.push_back(fmt::format("missing '{}'", text));
  if (column.role == "multi_hot") {
    if (column.brackets) parts.push_back("brackets");
    if (column.brackets || column.bag_separator() != '|')
      parts.push_back(fmt::format("separator '{}'", column.bag_separator()));
  }
  return parts.empty() ? kPlainParsing : fmt::format("{}", fmt::join(parts, ", "));
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
      // In brackets the whole field can be quoted.
      fields.Require(item.column.role != "multi_hot" ||
                         schema.delimiter != std::string(1, item.column.bag_separator()) ||
                         (item.column.brackets && schema.quotes),
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
