#include "renzan/cluster/local/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <type_traits>

#include "renzan/base/file/free_space.h"

namespace renzan::cluster::local {
namespace {

// How long to wait for another process, such as the sqlite3 shell, to unlock the database.
constexpr int kBusyMs = 5000;
// More than the index of a write-ahead log takes when the database is opened.
constexpr int64_t kRoomForIndex = 1 << 20;

SqlValue ColumnValue(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return {};
    default:
      return std::string(static_cast<const char*>(sqlite3_column_blob(statement, column)),
                         sqlite3_column_bytes(statement, column));
  }
}

int BindValue(sqlite3_stmt* statement, int index, const SqlValue& value) {
  return std::visit(
      [&](const auto& given) {
        using T = std::decay_t<decltype(given)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return sqlite3_bind_null(statement, index);
        else if constexpr (std::is_same_v<T, int64_t>)
          return sqlite3_bind_int64(statement, index, given);
        else if constexpr (std::is_same_v<T, double>)
          return sqlite3_bind_double(statement, index, given);
        else
          return sqlite3_bind_text(statement, index, given.data(), static_cast<int>(given.size()),
                                   SQLITE_STATIC);
      },
      value);
}

// SQLite would create a file that everybody can read. The write-ahead log inherits the mode.
void CreatePrivately(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) FailErrno(errno, "cannot open database " + path);
  ::close(fd);
}

}  // namespace

template <typename T>
const T& SqlRow::Get(size_t column, const char* kind) const {
  CHECK(column < values_.size());
  const T* value = std::get_if<T>(&values_[column]);
  if (!value) throw CorruptDatabase(fmt::format("column {} is not {}", column, kind));
  return *value;
}

bool SqlRow::IsNull(size_t column) const {
  CHECK(column < values_.size());
  return std::holds_alternative<std::monostate>(values_[column]);
}
int64_t SqlRow::Int(size_t column) const { return Get<int64_t>(column, "a whole number"); }
double SqlRow::Real(size_t column) const { return Get<double>(column, "a number"); }
const std::string& SqlRow::Text(size_t column) const { return Get<std::string>(column, "text"); }
std::optional<int64_t> SqlRow::OptionalInt(size_t column) const {
  return IsNull(column) ? std::nullopt : std::optional(Int(column));
}

void Database::CloseConnection::operator()(sqlite3* connection) const { sqlite3_close(connection); }
void Database::FinalizeStatement::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Database::Database(const std::string& path) : path_(path) {
  CreatePrivately(path);
  // SQLite makes the log's index anew, the file path-shm, and writes to it through a memory map,
  // which is a bus error where a full disk has no block for it. It keeps the index in its own
  // memory if no other process may read the database.
  const bool is_full = FreeBytes(path).value_or(kRoomForIndex) < kRoomForIndex;
  try {
    Open(/*exclusively=*/is_full);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo || is_full) throw;
    Open(/*exclusively=*/true);  // the disk was filled at this moment
  }
}

void Database::Open(bool exclusively) {
  statements_.clear();
  connection_.reset();
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &connection,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(connection);
  if (code != SQLITE_OK) FailWith(code, "open");
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, kBusyMs);
  if (exclusively) Run("PRAGMA locking_mode = EXCLUSIVE");
  Run("PRAGMA journal_mode = WAL");
  Run("PRAGMA synchronous = FULL");
  Run("PRAGMA foreign_keys = ON");
  // Never read beyond the end of a corrupt page.
  Run("PRAGMA cell_size_check = ON");
  Run("PRAGMA trusted_schema = OFF");
}

Database::~Database() = default;

sqlite3_stmt* Database::Prepared(const std::string& sql) {
  auto& statement = statements_[sql];
  if (!statement) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v3(connection_.get(), sql.c_str(), -1,
                                        SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    if (code != SQLITE_OK) FailWith(code, sql);
    statement.reset(made);
  }
  return statement.get();
}

std::vector<SqlRow> Database::Query(const std::string& sql,
                                    const std::vector<SqlValue>& arguments) {
  sqlite3_stmt* statement = Prepared(sql);
  int code = SQLITE_OK;
  for (size_t i = 0; i < arguments.size() && code == SQLITE_OK; ++i)
    code = BindValue(statement, static_cast<int>(i) + 1, arguments[i]);
  std::vector<SqlRow> rows;
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW) break;
    std::vector<SqlValue> values;
    for (int column = 0; column < sqlite3_column_count(statement); ++column)
      values.push_back(ColumnValue(statement, column));
    rows.emplace_back(std::move(values));
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (code != SQLITE_DONE) FailWith(code, sql);
  return rows;
}

void Database::Run(const std::string& sql, const std::vector<SqlValue>& arguments) {
  Query(sql, arguments);
}

SqlRow Database::QueryOne(const std::string& sql) {
  std::vector<SqlRow> rows = Query(sql);
  if (rows.empty()) throw CorruptDatabase(fmt::format("no result of {}", sql));
  return rows.front();
}

void Database::Transact(const std::function<void()>& change) {
  CHECK_MSG(sqlite3_get_autocommit(connection_.get()), "transactions must not be nested");
  Run("BEGIN IMMEDIATE");
  try {
    change();
    Run("COMMIT");
  } catch (...) {
    // A full disk may have rolled back already.
    if (!sqlite3_get_autocommit(connection_.get()))
      sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

void Database::FailWith(int code, const std::string& doing) {
  const std::string text = connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw CorruptDatabase(text);
    case SQLITE_FULL:
      Fail(ErrorCode::kIo, "cannot write {}: the disk is full: free some space and try again",
           path_);
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      Fail(ErrorCode::kIo, "cannot read or write {}: {}", path_, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      Fail(ErrorCode::kUnavailable,
           "{} is locked by another process: end that process and try again", path_);
    default:
      Fail(ErrorCode::kSoftware, "{}: {} (while running: {})", path_, text, doing);
  }
}

}  // namespace renzan::cluster::local
