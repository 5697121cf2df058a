#include "renzan/cluster/pod/termination_message.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/cluster/contract/run_status.h"

namespace renzan::cluster::pod {
namespace {

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

// Without the sequences that set colours and move the cursor: ESC [ ... letter.
std::string WithoutTerminalSequences(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t escape = text.find("\x1b[");
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) break;
    text.remove_prefix(escape + 2);
    const auto end = std::find_if(text.begin(), text.end(), [](char c) { return c >= 0x40; });
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.begin()) + 1));
  }
  return plain;
}

std::string Line(const ContainerEnd& end, const std::string& message) {
  nlohmann::ordered_json json = {{"exit_code", end.exit_code}};
  if (end.signal != 0) json["signal"] = SignalName(end.signal);
  json["message"] = message;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string TerminationMessage(const ContainerEnd& end) {
  const std::string message = Escape(WithoutTerminalSequences(end.message));
  std::string line = Line(end, message);
  // The rest of the message takes at most twice its size in the line.
  for (size_t bytes = message.size(); line.size() > kMaxTerminationBytes;) {
    bytes -= (line.size() - kMaxTerminationBytes + 1) / 2;
    line = Line(end, ShortText(message, bytes));
  }
  return line;
}

std::string DescribeContainerEnd(const ProcessEnd& end, const std::optional<std::string>& status,
                                 std::string_view last_line) {
  std::string text;
  const auto progress = status ? ParseRunStatus(*status, 0) : std::nullopt;
  if (progress && !progress->state.empty())
    text = fmt::format("{} at step {} of {}", progress->state, progress->step, progress->steps);
  const int code = end.ShellStatus();
  // After a requested stop there is nothing to explain.
  const bool stopped = code == static_cast<int>(ErrorCode::kTempFail) && !text.empty();
  if (code != 0 && !stopped && !last_line.empty())
    text += fmt::format("{}{}", text.empty() ? "" : ": ", last_line);
  return text.empty() ? DescribeEnd(end) : text;
}

void WriteTerminationMessage(const std::string& path, const ContainerEnd& end) {
  // Not created: the kubelet provides it. A pipe that nobody reads must not block.
  const Descriptor file(open(path.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC));
  if (!file) return;
  const std::string line = TerminationMessage(end);
  const ssize_t written = write(file.get(), line.data(), line.size());
  static_cast<void>(written);
}

}  // namespace renzan::cluster::pod
