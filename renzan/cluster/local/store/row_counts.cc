#include "renzan/cluster/local/store/row_counts.h"

#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local::store {
namespace {

std::vector<SqlRow> CountsOf(Database& database, JobId job) {
  return RowCounts().Select(database, "WHERE job = ?", {job});
}

}  // namespace

void BeginCounting(Database& database, JobId job) {
  RowCounts().Put(database, {job, int64_t{0}, int64_t{0}, int64_t{0}, int64_t{0}});
}

void ExpectRows(Database& database, JobId job, Counted what, int64_t at_least) {
  const std::vector<SqlRow> rows = CountsOf(database, job);
  if (rows.empty()) throw CorruptDatabase(fmt::format("the row counts of job {} are missing", job));
  std::vector<SqlValue> counts = rows.front().values();
  SqlValue& count = counts[static_cast<size_t>(what)];
  if (std::get<int64_t>(count) >= at_least) return;
  count = at_least;
  RowCounts().Put(database, counts);
}

int64_t RowsOf(Database& database, JobId job, Counted what) {
  const std::vector<SqlRow> rows = CountsOf(database, job);
  if (!rows.empty()) return rows.front().Int(static_cast<size_t>(what));
  if (!database.Query("SELECT id FROM jobs WHERE id = ?", {job}).empty())
    throw CorruptDatabase(fmt::format("the row counts of job {} are missing", job));
  return 0;
}

void CheckRows(Database& database, JobId job, Counted what, size_t found) {
  if (RowsOf(database, job, what) == static_cast<int64_t>(found)) return;
  const char* const names[] = {"attempts", "events", "usage", "measured times"};
  throw CorruptDatabase(
      fmt::format("{} of job {} are missing", names[static_cast<size_t>(what) - 1], job));
}

void CheckNoJob(Database& database, JobId job) {
  if (!CountsOf(database, job).empty())
    throw CorruptDatabase(fmt::format("job {} is missing", job));
}

}  // namespace renzan::cluster::local::store
