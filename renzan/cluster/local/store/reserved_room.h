#pragma once

// Room on the disk that belongs to the database, so that the daemon goes on recording what happens
// when jobs have filled the disk. Internal to the store.
//
// The write-ahead log has blocks beyond its end (fallocate with FALLOC_FL_KEEP_SIZE). SQLite writes
// it again from its beginning after each checkpoint, and would only truncate it, which frees them,
// if it had a journal_size_limit or were checkpointed with TRUNCATE. A log that is as large as its
// room is checkpointed into free pages of the database file, which are written to again in place.
// Blocks beyond the end of that file would not last: every checkpoint truncates it.
//
// SQLite removes the log when the database is closed, so it gets a second name then
// (state.db-reserve), and is the log again when the database is opened.
//
// This holds where writing to an allocated block needs no other one: on ext4 and tmpfs (tested) and
// XFS. On file systems that copy on write (Btrfs, ZFS) it may not, and where there is no fallocate
// (NFS before 4.2) only the free pages are reserved.

#include <cstdint>
#include <string>

#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local::store {

// Enough for some thousand transitions of jobs. The log's index of so many pages fits into the part
// of state.db-shm that exists while the database is open.
inline constexpr int64_t kLogRoomBytes = 8 << 20;
inline constexpr int64_t kFreePages = 512;  // of 4 KiB

// The name of a table that exists for a moment while free pages are made.
inline constexpr const char* kRoomTable = "reserved_room";

// Makes sure of this room; almost free if it is there. Throws Error kIo if it cannot be had, as on
// a full disk.
void ReserveRoom(Database& database);

// Before the database at `path` is closed, and before it is opened again. Without effect if they
// fail.
void KeepLogRoom(const std::string& path);
void TakeUpLogRoom(const std::string& path);

// Whether there is a log that SQLite would read: one that was reserved begins with zeros.
bool HasLog(const std::string& path);

}  // namespace renzan::cluster::local::store
