#pragma once

// What becomes of a read through a memory map that the kernel cannot satisfy: the file was cut
// short under the map, or the disk fails. The kernel answers with SIGBUS, which would end the
// program like a crash, as if starting it again could help. Thread-safe.

#include <cstddef>
#include <string>

namespace renzan {

// From now on such a read ends the process with one line on stderr that names the file, and with
// the exit status of the error that it is: kData where the file has become shorter, else kIo. Any
// other SIGBUS still kills. For main(), before there are threads.
void ExitOnBusErrors();

// MappedFile tells which addresses belong to which file.
void RememberMap(const std::byte* begin, size_t bytes, const std::string& path);
void ForgetMap(const std::byte* begin);

}  // namespace renzan
