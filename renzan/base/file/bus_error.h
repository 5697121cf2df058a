#pragma once

// Handles a read through a memory map that the kernel cannot satisfy, because the file was
// truncated or the disk failed. The kernel sends SIGBUS, which by default looks like a crash that a
// restart might cure. Thread-safe.

#include <cstddef>
#include <string>

namespace renzan {

// From now on such a read ends the process with one line on stderr that names the file and with an
// exit status: kData if the file was truncated, kIo otherwise. Any other SIGBUS still kills. Call
// it from main() before starting threads.
void ExitOnBusErrors();

// Called by MappedFile: which addresses belong to which file.
void RegisterMap(const std::byte* begin, size_t bytes, const std::string& path);
void UnregisterMap(const std::byte* begin);

}  // namespace renzan
