#include "renzan/cluster/local/controller/last_line.h"

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

constexpr size_t kMaxLine = 1000;

}  // namespace

std::string LastLineOf(const std::string& log) {
  try {
    std::string text = ReadFile(log);
    while (text.ends_with('\n')) text.pop_back();
    return ShortText(text.substr(text.rfind('\n') + 1), kMaxLine);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace renzan::cluster::local
