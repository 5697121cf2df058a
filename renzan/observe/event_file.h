#pragma once

// TensorBoard's event files: `tensorboard --logdir <run directory>` shows the scalars. Records are
// framed as TFRecords with masked CRC-32C checksums. Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>

#include "renzan/observe/append_file.h"
#include "renzan/observe/scalars.h"

namespace renzan {

class EventFile {
 public:
  // Creates `directory`/events.out.tfevents.<unix seconds>.<host>. `next_step` is the first step of
  // a resumed run: TensorBoard then ignores events of this and later steps in older files of the
  // directory. Throws Error kCantCreate.
  EventFile(const std::string& directory, double unix_seconds, const std::string& host,
            int64_t next_step = 0);

  // Throws Error kIo.
  void Add(const ScalarRecord& record);

  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of RFC 3720.
uint32_t Crc32c(std::string_view bytes);

}  // namespace renzan
