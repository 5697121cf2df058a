#pragma once

// A wrapper of SQLite: cached prepared statements, typed values, errors as Error. A Database is for
// one thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "renzan/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace renzan::cluster::local {

// The file's content is not what was written.
class CorruptDatabase : public Error {
 public:
  explicit CorruptDatabase(const std::string& message) : Error(ErrorCode::kData, message) {}
};

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;  // first: NULL

template <typename T>
SqlValue ToSql(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue();
}

// One row of a result. Getters throw CorruptDatabase for a value of another type.
class SqlRow {
 public:
  explicit SqlRow(std::vector<SqlValue> values) : values_(std::move(values)) {}

  const std::vector<SqlValue>& values() const { return values_; }
  bool IsNull(size_t column) const;
  int64_t Int(size_t column) const;
  double Real(size_t column) const;
  const std::string& Text(size_t column) const;
  std::optional<int64_t> OptionalInt(size_t column) const;

 private:
  template <typename T>
  const T& Get(size_t column, const char* kind) const;
  std::vector<SqlValue> values_;
};

class Database {
 public:
  // Opens or creates `path` (mode 0600) with a write-ahead log that is synced at every commit. If
  // the disk is full, no other process can read it meanwhile.
  // Throws CorruptDatabase, Error kIo, kCantCreate or kNoInput.
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Throw CorruptDatabase; Error kIo when the disk is full or fails; kUnavailable when another
  // process has locked the database.
  void Run(const std::string& sql, const std::vector<SqlValue>& arguments = {});
  std::vector<SqlRow> Query(const std::string& sql, const std::vector<SqlValue>& arguments = {});

  // The first row. Throws CorruptDatabase if there is none.
  SqlRow QueryOne(const std::string& sql);

  // Runs `change` in a transaction, which is rolled back when it throws.
  void Transact(const std::function<void()>& change);

  const std::string& path() const { return path_; }

 private:
  struct CloseConnection {
    void operator()(sqlite3* connection) const;
  };
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const;
  };

  void Open(bool exclusively);
  sqlite3_stmt* Prepared(const std::string& sql);
  [[noreturn]] void FailWith(int code, const std::string& doing);

  std::string path_;
  std::unique_ptr<sqlite3, CloseConnection> connection_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, FinalizeStatement>> statements_;
};

}  // namespace renzan::cluster::local
