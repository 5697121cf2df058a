#include "renzan/cluster/local/store/checked_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "renzan/base/xxhash.h"

namespace renzan::cluster::local {
namespace {

// Includes the table's name, so that a page that ended up in another table is found corrupt.
std::string ChecksumOf(const std::string& table, const std::vector<SqlValue>& values) {
  Xxh128 hash;
  hash.Update(table);
  for (const SqlValue& value : values) {
    const char kind = static_cast<char>(value.index());
    hash.Update(&kind, 1);
    std::visit(
        [&](const auto& given) {
          using T = std::decay_t<decltype(given)>;
          if constexpr (std::is_same_v<T, std::string>) {
            const uint64_t size = given.size();
            hash.Update(&size, sizeof size);
            hash.Update(given);
          } else if constexpr (!std::is_same_v<T, std::monostate>) {
            hash.Update(&given, sizeof given);
          }
        },
        value);
  }
  return hash.HexDigest();
}

}  // namespace

CheckedTable::CheckedTable(std::string name, const std::string& columns, size_t keys,
                           const std::string& more)
    : name_(std::move(name)) {
  std::vector<std::string> names, updates;
  for (size_t at = 0; at < columns.size();
       at = std::min(columns.find(", ", at), columns.size() - 2) + 2)
    names.push_back(columns.substr(at, columns.find(' ', at) - at));
  columns_ = names;
  names.push_back("checksum");
  const std::vector<std::string> key(names.begin(), names.begin() + static_cast<long>(keys));
  for (size_t i = keys; i < names.size(); ++i)
    updates.push_back(fmt::format("{0} = excluded.{0}", names[i]));

  const std::string key_names = fmt::format("{}", fmt::join(key, ", "));
  const std::string all_names = fmt::format("{}", fmt::join(names, ", "));
  definition_ = fmt::format(
      "CREATE TABLE {} ({}, checksum TEXT NOT NULL, PRIMARY KEY ({}){}{}) STRICT, WITHOUT ROWID",
      name_, columns, key_names, more.empty() ? "" : ", ", more);
  std::string marks = "?";
  for (size_t i = 1; i < names.size(); ++i) marks += ", ?";
  put_ = fmt::format("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}", name_,
                     all_names, marks, key_names, fmt::join(updates, ", "));
  select_ = fmt::format("SELECT {} FROM {} ", all_names, name_);
  order_ = "ORDER BY " + key_names;
}

void CheckedTable::Put(Database& database, const std::vector<SqlValue>& values) const {
  CHECK_MSG(values.size() == columns_.size(), "{} has {} columns, not {}", name_, columns_.size(),
            values.size());
  std::vector<SqlValue> all = values;
  all.emplace_back(ChecksumOf(name_, values));
  database.Run(put_, all);
}

std::vector<SqlRow> CheckedTable::Select(Database& database, const std::string& rest,
                                         const std::vector<SqlValue>& arguments) const {
  std::vector<SqlRow> rows;
  for (const SqlRow& row : database.Query(select_ + (rest.empty() ? order_ : rest), arguments)) {
    CheckedRow checked = Check(row);
    if (!checked.intact)
      throw CorruptDatabase(fmt::format("a row of table {} has a wrong checksum", name_));
    rows.push_back(std::move(checked.row));
  }
  return rows;
}

std::optional<CheckedRow> CheckedTable::Find(Database& database, const SqlValue& key) const {
  const std::vector<SqlRow> rows =
      database.Query(fmt::format("{}WHERE {} = ?", select_, columns_[0]), {key});
  if (rows.empty()) return std::nullopt;
  return Check(rows.front());
}

CheckedRow CheckedTable::Check(const SqlRow& row) const {
  std::vector<SqlValue> values = row.values();
  const SqlValue found = values.back();
  values.pop_back();
  if (found == SqlValue(ChecksumOf(name_, values))) return {.row = SqlRow(std::move(values))};
  return {.row = row, .intact = false};
}

void CheckedTable::Delete(Database& database, const std::string& column,
                          const SqlValue& value) const {
  database.Run(fmt::format("DELETE FROM {} WHERE {} = ?", name_, column), {value});
}

}  // namespace renzan::cluster::local
