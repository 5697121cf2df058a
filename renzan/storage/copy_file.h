#pragma once

#include <atomic>
#include <string>

namespace renzan {

// Copies a file of this machine to a path of any kind. Throws Error; kTempFail, and leaves nothing,
// once `cancel` is true.
void CopyFile(const std::string& from, const std::string& to,
              const std::atomic<bool>* cancel = nullptr);

}  // namespace renzan
