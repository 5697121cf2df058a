#include "renzan/base/escape.h"

#include <fmt/format.h>

namespace renzan {
namespace {

// The number of bytes of the first character of `text`; 0 if it is invalid UTF-8 (Unicode, table
// 3-7) or a control character.
size_t PrintableBytes(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i) { return at(i) >= 0x80 && at(i) <= 0xbf; };
  const unsigned first = at(0), second = at(1);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  // 0xc2 0x80 to 0xc2 0x9f are control characters too.
  if (first == 0xc2) return continues(1) && second >= 0xa0 ? 2 : 0;
  if (first >= 0xc3 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second > 0x9f;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && second < 0x90;
    const bool too_large = first == 0xf4 && second > 0x8f;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
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
