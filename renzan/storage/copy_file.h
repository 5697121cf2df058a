#pragma once

#include <atomic>
#include <string>

namespace renzan {

// Copies a file of this machine to a path of any kind. Throws Error. Once `cancel` is true, it
// throws kTempFail and leaves nothing behind.
void CopyFile(const std::string& from, const std::string& to,
              const std::atomic<bool>* cancel = nullptr);

}  // namespace renzan
