#include "renzan/base/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace renzan {
namespace {

constexpr double kTerminalInterval = 0.1;
constexpr int kDefaultWidth = 80;
constexpr const char* kClearLine = "\r\033[K";

// Queried for every update, because windows are resized.
int TerminalWidth(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

}  // namespace

LiveLine::LiveLine(int fd, bool is_terminal) : fd_(fd), is_terminal_(is_terminal) {}

LiveLine::~LiveLine() {
  if (painted_) Write("\n");
}

void LiveLine::Update(double now, bool insist, const std::function<std::string(int)>& painted,
                      const std::function<std::string()>& printed) {
  if (!insist && now - shown_at_ < (is_terminal_ ? kTerminalInterval : kPlainInterval)) return;
  shown_at_ = now;
  if (is_terminal_) {
    // Some terminals wrap when the last column is filled.
    Write(kClearLine + painted(TerminalWidth(fd_) - 1));
    painted_ = true;
  } else {
    Write(printed() + "\n");
  }
}

void LiveLine::Clear() {
  if (!painted_) return;
  Write(kClearLine);
  painted_ = false;
}

void LiveLine::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd_, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

std::string BarText(double fraction, int inside) {
  const auto columns = static_cast<size_t>(std::max(inside, 0));
  std::string bar(
      static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns)), '=');
  if (bar.size() < columns) bar += '>';
  bar.resize(columns, ' ');
  return fmt::format("[{}]", bar);
}

}  // namespace renzan
