#include "renzan/cluster/local/store/reserved_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "renzan/base/file/file.h"
#include "renzan/base/file/free_space.h"

namespace renzan::cluster::local::store {
namespace {

// SQLite ignores a log whose header is not valid.
constexpr size_t kLogHeaderBytes = 32;
// In the log and in the file, and some more.
constexpr int64_t kRoomForPages = 8 << 20;

std::string LogOf(const std::string& path) { return path + "-wal"; }
std::string ReserveOf(const std::string& path) { return path + "-reserve"; }

struct File {
  File(const std::string& path, int flags)
      : fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW)) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const int fd;  // negative: it cannot be opened
};

// No locks are on the log, so closing another descriptor of it loses none.
void ReserveLog(const std::string& path) {
  const std::string log = LogOf(path);
  const File file(log, O_WRONLY);
  if (file.fd < 0) FailErrno(errno, "cannot open " + log);
  if (::fallocate(file.fd, FALLOC_FL_KEEP_SIZE, 0, kLogRoomBytes) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return;
  FailErrno(errno, fmt::format("cannot reserve {} MiB for {}", kLogRoomBytes >> 20, log));
}

// Two transactions: pages that were never written would be holes of the file.
void ReservePages(Database& database) {
  if (database.QueryOne("PRAGMA freelist_count").Int(0) >= kFreePages / 2) return;
  // Not with the last of the room that is there.
  if (FreeBytes(database.path()).value_or(kRoomForPages) < kRoomForPages)
    Fail(ErrorCode::kIo, "cannot reserve room for {}: fewer than {} MiB are free", database.path(),
         kRoomForPages >> 20);
  const auto drop = [&] {
    database.Transact([&] { database.Run(fmt::format("DROP TABLE IF EXISTS {}", kRoomTable)); });
  };
  drop();
  database.Transact([&] {
    database.Run(fmt::format("CREATE TABLE {} (zeros BLOB)", kRoomTable));
    database.Run(fmt::format("INSERT INTO {} VALUES (zeroblob({}))", kRoomTable,
                             kFreePages * database.QueryOne("PRAGMA page_size").Int(0)));
  });
  // Into the file, while there is room.
  database.Query("PRAGMA wal_checkpoint(PASSIVE)");
  drop();
}

}  // namespace

void ReserveRoom(Database& database) {
  ReserveLog(database.path());
  ReservePages(database);
}

void KeepLogRoom(const std::string& path) {
  ::unlink(ReserveOf(path).c_str());
  // Fails if there is no log, or on a file system without links.
  if (::link(LogOf(path).c_str(), ReserveOf(path).c_str()) != 0) return;
}

void TakeUpLogRoom(const std::string& path) {
  const std::string reserve = ReserveOf(path), log = LogOf(path);
  if (!FileExists(reserve)) return;
  // The daemon was killed, and its log still has the room.
  if (FileExists(log)) {
    ::unlink(reserve.c_str());
    return;
  }
  // What it held is in the database file.
  bool usable = false;
  {
    const File file(reserve, O_WRONLY);
    const std::array<char, kLogHeaderBytes> zeros{};
    usable = file.fd >= 0 &&
             ::pwrite(file.fd, zeros.data(), zeros.size(), 0) == ssize_t{zeros.size()} &&
             ::fdatasync(file.fd) == 0;
  }
  if (!usable || ::rename(reserve.c_str(), log.c_str()) != 0) ::unlink(reserve.c_str());
}

bool HasLog(const std::string& path) {
  const File file(LogOf(path), O_RDONLY);
  std::array<char, kLogHeaderBytes> header{};
  return file.fd >= 0 && ::pread(file.fd, header.data(), header.size(), 0) > 0 &&
         std::any_of(header.begin(), header.end(), [](char byte) { return byte != 0; });
}

}  // namespace renzan::cluster::local::store
