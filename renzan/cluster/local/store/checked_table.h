#pragma once

// Tables whose rows have a checksum of their values: SQLite detects corruption of its own
// structure, but not of the values. For the thread of its Database.

#include <string>
#include <vector>

#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local {

class CheckedTable {
 public:
  // Columns are names and types: "job INTEGER NOT NULL, text TEXT". The first `keys` columns are
  // the primary key. `more` is appended to the table's definition.
  CheckedTable(std::string name, const std::string& columns, size_t keys,
               const std::string& more = "");

  const std::string& name() const { return name_; }
  // As in sqlite_schema.
  const std::string& definition() const { return definition_; }

  // Adds the row or replaces the one with the same key.
  void Put(Database& database, const std::vector<SqlValue>& values) const;
  // Rows in the order of the key, or as `rest` ("WHERE ... ORDER BY ...") says. Throws
  // CorruptDatabase for a row whose checksum does not match.
  std::vector<SqlRow> Select(Database& database, const std::string& rest = "",
                             const std::vector<SqlValue>& arguments = {}) const;
  // Deletes the rows whose `column` is `value`.
  void Delete(Database& database, const std::string& column, const SqlValue& value) const;

 private:
  std::string name_, definition_, put_, select_, order_;
  size_t num_columns_;
};

}  // namespace renzan::cluster::local
