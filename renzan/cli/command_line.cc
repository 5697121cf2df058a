#include "renzan/cli/command_line.h"

#include <unistd.h>

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/process/process_table.h"

namespace renzan {

std::vector<std::string> CommandLine() {
  const std::string line = ProcessFile(getpid(), "cmdline");
  if (line.empty()) Fail(ErrorCode::kOsError, "cannot read /proc/self/cmdline");
  std::vector<std::string> words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find('\0', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<std::string> WordsAfterDashes() {
  std::vector<std::string> words = CommandLine();
  const auto dashes = std::find(words.begin(), words.end(), "--");
  words.erase(words.begin(), dashes == words.end() ? dashes : dashes + 1);
  return words;
}

}  // namespace renzan
