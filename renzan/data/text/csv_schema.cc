#include "renzan/data/text/csv_schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dense_transform.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

struct ColumnInFile {
  CsvColumn column;
  size_t position = 0;
};

bool MayBePartOfNumber(std::string_view separator) {
  return !separator.empty() &&
         std::string_view("0123456789eE+-.").find(separator) != std::string_view::npos;
}

bool IsDelimiter(std::string_view text) {
  if (text.empty() || text.find_first_of("\"\n\r") != std::string_view::npos) return false;
  return text.size() == 1 || std::none_of(text.begin(), text.end(),
                                          [](unsigned char c) { return std::isalnum(c) != 0; });
}

// Whether `name` matches `pattern`, in which each * stands for any text.
bool Matches(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= name.size(); ++at)
    if (Matches(name.substr(at), pattern.substr(star + 1))) return true;
  return false;
}

// Orders C2 before C10. The order of columns decides the order of a dataset's features, and must
// not depend on a file's.
bool NaturallyLess(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto take_number = [&](std::string_view* text) {
    size_t end = 0;
    while (end < text->size() && is_digit((*text)[end])) ++end;
    std::string_view number = text->substr(0, end);
    text->remove_prefix(end);
    number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
    return number;
  };
  std::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (is_digit(x.front()) && is_digit(y.front())) {
      const std::string_view m = take_number(&x), n = take_number(&y);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else {
      if (x.front() != y.front()) return x.front() < y.front();
      x.remove_prefix(1);
      y.remove_prefix(1);
    }
  }
  return x.empty() != y.empty() ? x.empty() : a < b;
}

// Returns false if there is a list without numbers, which would silently make plain categories.
bool ReadBounds(ConfigFields& fields, std::vector<double>* bounds) {
  // No file has these.
  const std::vector<double> absent(3, std::numeric_limits<double>::lowest());
  *bounds = absent;
  fields.Field("buckets", bounds);
  if (*bounds != absent) return !bounds->empty();
  bounds->clear();
  return true;
}

void ReadNumberOfBuckets(const std::string& role, ConfigFields& fields, int64_t* buckets) {
  try {
    fields.Range("buckets", buckets, kMinBuckets, kMaxBuckets);
  } catch (const Error& error) {
    const std::string problem = error.what();
    if (!problem.ends_with("found a list")) throw;
    Fail(ErrorCode::kConfig, "{}: bounds of buckets belong to role categorical{}", problem,
         role == "dense" ? ", whose values are the buckets; transform: buckets takes their number, "
                           "and finds the bounds itself"
                         : "");
  }
}

}  // namespace

void CsvColumn::DescribeTransform(ConfigFields& fields) {
  fields.Choice("transform", &transform, {"none", "log", "standardize", "minmax", "buckets"});
  // Of a category, the bounds; of a dense feature, how many.
  bool no_bounds = false;
  if (role == "categorical")
    no_bounds = !ReadBounds(fields, &bounds);
  else
    ReadNumberOfBuckets(role, fields, &buckets);
  fields.Require(!no_bounds, "buckets",
                 "is empty: give at least one number that divides the others, or remove it");
  const bool bounds_are_right =
      std::all_of(bounds.begin(), bounds.end(), [](double x) { return std::isfinite(x); }) &&
      std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) == bounds.end();
  fields.Require(
      bounds_are_right && std::ssize(bounds) < kMaxBuckets, "buckets",
      fmt::format("must be at most {}, each greater than the one before: the least values "
                  "of the buckets after the first",
                  Counted(kMaxBuckets - 1, "number")));
  fields.Field("clip", &clip);
  fields.Field("fill", &fill);
  fields.Require(role == "dense" || transform == "none", "transform", "belongs to role dense");
  fields.Require(transform == "buckets" || buckets == CsvColumn().buckets, "buckets",
                 "belongs to transform buckets");
  fields.Require(role == "dense" || clip.empty(), "clip", "belongs to role dense");
  fields.Require(clip.empty() || (clip.size() == 2 && clip[0] < clip[1]), "clip",
                 "must be [lowest, highest], where .inf is no limit");
  fields.Require(role == "dense" || fill.empty(), "fill", "belongs to role dense");
  const std::optional<double> number = ParseNumber(fill);
  fields.Require(
      fill.empty() || fill == "mean" || (number && std::isfinite(static_cast<float>(*number))),
      "fill", "must be mean, or the number that a missing value stands for");
}

void CsvColumn::DescribeParts(ConfigFields& fields) {
  std::map<std::string, CsvColumn> given;
  fields.Map<CsvColumn>("parts", &given, [](ConfigFields& inner, CsvColumn& part) {
    inner.Choice("role", &part.role, {"dense", "categorical"});
    inner.Require(!part.role.empty(), "role", "is missing: dense or categorical");
    part.DescribeTransform(inner);
  });
  const bool is_date = role == "date";
  fields.Require(is_date || date.empty(), "date", "belongs to role date");
  fields.Require(is_date || given.empty(), "parts", "belongs to role date");
  const DateFormat format(date);
  const std::string problem = format.Problem();
  fields.Require(!is_date || !date.empty(), "date", "is missing: the format, such as \"%Y-%m-%d\"");
  fields.Require(!is_date || problem.empty(), "date", problem);
  fields.Require(!is_date || !given.empty(), "parts",
                 "must name at least one of day, weekday and hour");
  for (const std::string name : {"day", "weekday", "hour"}) {
    const auto found = given.find(name);
    if (found == given.end()) continue;
    fields.Require(name == "hour" ? format.has_hour() : format.has_day(), "parts",
                   fmt::format("has '{}', which the format does not give", name));
    parts.push_back(std::move(found->second));
    parts.back().name = name;
    given.erase(found);
  }
  for (const CsvColumn& part : parts)
    fields.Require(part.bounds.empty(), "parts",
                   fmt::format("has 'buckets' of '{}', which only columns have", part.name));
  fields.Require(given.empty(), "parts",
                 fmt::format("has '{}': the parts of a date are day, weekday and hour",
                             given.empty() ? "" : given.begin()->first));
}

void CsvColumn::DescribeTable(ConfigFields& fields) {
  fields.Field("table", &table);
  fields.Require(role == "categorical" || role == "multi_hot" || table.empty(), "table",
                 "belongs to roles categorical and multi_hot");
  fields.Range("max_length", &max_length, 0, kMaxSequenceLength);
  fields.Require(role == "multi_hot" || max_length == 0, "max_length", "belongs to role multi_hot");
  fields.Choice("keep", &keep, {"", "newest", "oldest"});
  fields.Require(max_length > 0 || keep.empty(), "keep", "needs max_length");
}

void CsvColumn::DescribeList(ConfigFields& fields) {
  fields.Range("dimension", &dimension, 0, kMaxVectorDimension);
  fields.Require(role == "dense" || dimension == 0, "dimension", "belongs to role dense");
  fields.Require(dimension == 0 || transform != "buckets", "transform",
                 "must be none, log, standardize or minmax for the numbers of a vector");
  fields.Field("separator", &separator);
  fields.Field("brackets", &brackets);
  constexpr char kLists[] = "belongs to role multi_hot, and to role dense with a dimension";
  const bool has_format = is_list() && !is_bag_weights();
  const char* const whose =
      is_bag_weights() ? "belongs to the bag, whose weights are written alike" : kLists;
  fields.Require(has_format || separator.empty(), "separator", whose);
  fields.Require(has_format || !brackets, "brackets", whose);
  fields.Require(separator.size() <= 1, "separator", "must be one character");
  fields.Require(!is_vector() || !MayBePartOfNumber(separator), "separator",
                 "can be a part of a number: name another character");
  fields.Require(!brackets || separator.empty() ||
                     std::string_view("[]'\"").find(separator) == std::string_view::npos,
                 "separator", "cannot be a bracket or a quote");
}

void CsvColumn::Describe(ConfigFields& fields) {
  fields.Choice("role", &role,
                {"label", "weight", "dense", "categorical", "multi_hot", "bag_weights", "date",
                 "key", "skip"});
  fields.Field("missing", &missing);
  fields.Field("date", &date);

  fields.Require(
      !role.empty(), "role",
      "is missing: one of label, weight, dense, categorical, multi_hot, bag_weights, date, key, "
      "skip");
  fields.Field("key", &key);
  fields.Require(!key || (role != "key" && role != "skip"), "key",
                 "is for columns with a role of their own; a column that is nothing else has role: "
                 "key");
  DescribeTransform(fields);
  DescribeParts(fields);
  DescribeList(fields);
  fields.Field("unseen", &unseen);
  fields.Require(role == "categorical" || role == "multi_hot" || std::isnan(unseen), "unseen",
                 "belongs to roles categorical and multi_hot");
  fields.Require(std::isnan(unseen) || (unseen >= 0 && unseen < 1), "unseen",
                 "must be a share of the lookups, from 0 to less than 1");
  DescribeTable(fields);
  fields.Field("bag", &bag);
  fields.Require(is_bag_weights() || bag.empty(), "bag", "belongs to role bag_weights");
  fields.Require(!is_bag_weights() || !bag.empty(), "bag",
                 "is missing: the column of role multi_hot whose values these are the weights of");
  label.Describe(role == "label", fields);
  fields.Field("optional", &optional);
  fields.Require(role == "label" || !optional, "optional", "belongs to role label");
}

std::string CsvColumn::dense_transform() const {
  std::string text;
  if (!fill.empty())
    text = fmt::format("fill:{},", fill == "mean" ? fill : fmt::format("{}", *ParseNumber(fill)));
  if (!clip.empty()) text += fmt::format("clip:{}:{},", clip[0], clip[1]);
  text += transform;
  return transform == "buckets" ? fmt::format("{}:{}", text, buckets) : text;
}

char CsvColumn::bag_separator() const {
  if (!separator.empty()) return separator[0];
  return brackets ? ',' : '|';
}

std::string CsvSchema::ParsingOf(const CsvColumn& column) const {
  std::vector<std::string> parts;
  if (trim) parts.push_back("trim");
  std::set<std::string> texts(column.missing.begin(), column.missing.end());
  texts.erase("");
  for (const std::string& text : texts) parts.push_back(fmt::format("missing '{}'", text));
  if (column.is_list()) {
    if (column.brackets) parts.push_back("brackets");
    if (column.brackets || column.bag_separator() != '|')
      parts.push_back(fmt::format("separator '{}'", column.bag_separator()));
    if (!column.keep.empty()) parts.push_back("keep " + column.keep);
  }
  if (!column.bounds.empty())
    parts.push_back(fmt::format("buckets {}", fmt::join(column.bounds, " ")));
  if (!column.date.empty()) parts.push_back(fmt::format("date '{}'", column.date));
  return parts.empty() ? kPlainParsing : fmt::format("{}", fmt::join(parts, ", "));
}

const CsvColumn* CsvSchema::WeightsOf(const CsvColumn& bag) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const CsvColumn& column) {
    return column.is_bag_weights() && column.bag == bag.name;
  });
  return found == columns.end() ? nullptr : &*found;
}

const CsvColumn* CsvSchema::label() const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [](const CsvColumn& column) { return column.role == "label"; });
  return found == columns.end() ? nullptr : &*found;
}

void CsvSchema::ExpandPatterns(const std::vector<std::string>& header, const std::string& path) {
  std::set<std::string> taken;
  for (const CsvColumn& column : columns) taken.insert(column.name);
  std::vector<CsvColumn> expanded;
  for (const CsvColumn& column : columns) {
    if (!column.is_pattern()) {
      expanded.push_back(column);
      continue;
    }
    std::vector<std::string> names;
    for (const std::string& name : header)
      if (!name.empty() && Matches(name, column.name) && taken.insert(name).second)
        names.push_back(name);
    if (names.empty())
      Fail(ErrorCode::kConfig,
           "{}: no column matches '{}', not counting columns that are listed or that an earlier "
           "pattern matches: remove it",
           path, Escape(column.name));
    std::sort(names.begin(), names.end(), NaturallyLess);
    for (std::string& name : names) {
      expanded.push_back(column);
      expanded.back().name = std::move(name);
    }
  }
  columns = std::move(expanded);
}

namespace {

// Weights are written as the values of their bags.
void SetFormatsOfWeights(ConfigFields& fields, const std::vector<std::string>& missing,
                         std::map<std::string, ColumnInFile>* columns) {
  std::set<std::string> weighted;
  for (auto& [name, item] : *columns) {
    CsvColumn& column = item.column;
    if (!column.is_bag_weights()) continue;
    const auto bag = columns->find(column.bag);
    const auto require = [&](bool holds, std::string_view problem) {
      fields.Require(holds, "columns",
                     fmt::format("has '{}', the weights of '{}', {}", name, column.bag, problem));
    };
    const bool is_bag = bag != columns->end() && bag->second.column.role == "multi_hot";
    require(is_bag, "which is no column of role multi_hot: name one, as it is listed");
    if (!is_bag) continue;
    require(bag->second.column.max_length == 0,
            "which is a sequence (max_length): only bags have weights; remove max_length or the "
            "weights");
    require(weighted.insert(column.bag).second, "which has others: multiply them into one column");
    require(!MayBePartOfNumber(bag->second.column.separator),
            "whose separator can be a part of a number: name another character");
    require(column.missing == missing, "which are never missing: remove 'missing'");
    column.missing.clear();
    column.separator = bag->second.column.separator;
    column.brackets = bag->second.column.brackets;
  }
}

// `read` calls what it is given with the fields of a schema.
CsvSchema ReadSchema(const std::function<void(const ConfigFields::Describer&)>& read) {
  CsvSchema schema;
  std::map<std::string, ColumnInFile> columns;
  read([&](ConfigFields& fields) {
    fields.Field("delimiter", &schema.delimiter);
    fields.Field("header", &schema.header);
    fields.Field("quotes", &schema.quotes);
    fields.Field("trim", &schema.trim);
    fields.Field("missing", &schema.missing);
    fields.Range("negatives_kept", &schema.negatives_kept, 0, 1);
    fields.Require(schema.negatives_kept > 0, "negatives_kept",
                   "must be the share of the negatives that the input has, greater than 0");
    if (schema.delimiter == "tab") schema.delimiter = "\t";
    fields.Require(IsDelimiter(schema.delimiter), "delimiter",
                   "must be one character, several that are not letters or digits (such as ::), or "
                   "the word tab");
    // Columns are read in the order of the schema file, which is their order in files without a
    // header.
    size_t position = 0;
    fields.Map<ColumnInFile>("columns", &columns, [&](ConfigFields& inner, ColumnInFile& item) {
      item.position = position++;
      item.column.missing = schema.missing;
      item.column.Describe(inner);
      // In brackets the whole field can be quoted.
      inner.Require(!item.column.is_list() || item.column.is_bag_weights() ||
                        schema.delimiter != std::string(1, item.column.bag_separator()) ||
                        (item.column.brackets && schema.quotes),
                    "separator",
                    "is the delimiter: write another character between the values in the file, and "
                    "name that");
    });
    SetFormatsOfWeights(fields, schema.missing, &columns);
    const auto count = [&](std::string_view role) {
      return std::count_if(columns.begin(), columns.end(),
                           [&](const auto& entry) { return entry.second.column.role == role; });
    };
    const auto weights = count("weight");
    const auto labels = count("label");
    for (const auto& [name, item] : columns)
      fields.Require(!item.column.optional || labels > 1, "columns",
                     fmt::format("has '{}' with optional: true, but it is the only label, and "
                                 "nothing learns from a row without it: remove 'optional', and "
                                 "skip bad rows to leave such rows out",
                                 name));
    fields.Require(weights <= 1, "columns",
                   fmt::format("must have at most one with role weight, not {}: multiply them into "
                               "one column",
                               weights));
    for (const auto& [name, item] : columns) {
      const bool is_pattern = name.find('*') != std::string::npos;
      fields.Require(!is_pattern || schema.header, "columns",
                     fmt::format("has the pattern '{}', but without a header columns have no names "
                                 "that it could match",
                                 name));
      fields.Require(!is_pattern || (item.column.role != "label" && item.column.role != "weight" &&
                                     !item.column.is_bag_weights()),
                     "columns",
                     fmt::format("has the pattern '{}' with role {}: name that column", name,
                                 item.column.role));
    }
  });
  schema.columns.resize(columns.size());
  for (auto& [name, item] : columns) {
    item.column.name = name;
    schema.columns[item.position] = std::move(item.column);
  }
  return schema;
}

}  // namespace

CsvSchema CsvSchema::ReadFile(const std::string& path) {
  return ReadSchema(
      [&](const ConfigFields::Describer& describe) { ReadConfigFile(path, {}, describe); });
}

CsvSchema CsvSchema::ReadText(const std::string& yaml, const std::string& name) {
  return ReadSchema(
      [&](const ConfigFields::Describer& describe) { ReadConfigText(yaml, name, {}, describe); });
}

}  // namespace renzan
