#pragma once

// Tables whose rows have a checksum of their values: SQLite detects corruption of its own
// structure, but not of the values. For the thread of its Database.

#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local {

struct CheckedRow {
  SqlRow row;
  bool intact = true;  // false: the checksum does not match, so any value may be wrong
};

class CheckedTable {
 public:
  // Columns are names and types: "job INTEGER NOT NULL, text TEXT". The first `keys` columns are
  // the primary key. `more` is appended to the table's definition.
  CheckedTable(std::string name, const std::string& columns, size_t keys,
               const std::string& more = "");

  const std::string& name() const { return name_; }
  // As in sqlite_schema.
  const std::string& definition() const { return definition_; }
  const std::vector<std::string>& columns() const { return columns_; }  // without the checksum

  // Adds the row or replaces the one with the same key.
  void Put(Database& database, const std::vector<SqlValue>& values) const;
  // Rows in the order of the key, or as `rest` ("WHERE ... ORDER BY ...") says. Throws
  // CorruptDatabase for a row whose checksum does not match.
  std::vector<SqlRow> Select(Database& database, const std::string& rest = "",
                             const std::vector<SqlValue>& arguments = {}) const;
  // The row whose first column is `key`, also if it is damaged: then with the checksum that was
  // found as its last value.
  std::optional<CheckedRow> Find(Database& database, const SqlValue& key) const;
  // As a row of this table, whose last value is the checksum.
  CheckedRow Check(const SqlRow& row) const;
  // Deletes the rows whose `column` is `value`.
  void Delete(Database& database, const std::string& column, const SqlValue& value) const;

 private:
  std::string name_, definition_, put_, select_, order_;
  std::vector<std::string> columns_;
};

}  // namespace renzan::cluster::local
