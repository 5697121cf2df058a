#include "renzan/base/escape.h"

#include <fmt/format.h>

#include "renzan/base/utf8.h"

namespace renzan {
namespace {

// The number of bytes of the first character of `text`; 0 if it is invalid UTF-8 or a control
// character.
size_t PrintableBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7f) return 0;
  // 0xc2 0x80 to 0xc2 0x9f are control characters too.
  if (first == 0xc2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xa0) return 0;
  return FirstUtf8Bytes(text);
}

std::string EscapeBut(std::string_view text, std::string_view kept) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = kept.find(text[0]) != kept.npos ? 1 : PrintableBytes(text);
    if (bytes > 0) {
      escaped += text.substr(0, bytes);
    } else if (text[0] == '\n') {
      escaped += "\\n";
    } else if (text[0] == '\t') {
      escaped += "\\t";
    } else {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return escaped;
}

}  // namespace

std::string Escape(std::string_view text) { return EscapeBut(text, ""); }
std::string EscapeMessage(std::string_view text) { return EscapeBut(text, "\n\t"); }

std::string ShortText(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  constexpr size_t kLongest = 4;  // bytes of a character
  size_t end = bytes;
  for (size_t before = 1; before < kLongest && before <= bytes; ++before) {
    // Whole as they are; what is no character is cut anywhere.
    if (PrintableBytes(text.substr(bytes - before)) > before) end = bytes - before;
  }
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace renzan
