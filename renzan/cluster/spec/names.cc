#include "renzan/cluster/spec/names.h"

#include <algorithm>

#include "renzan/base/ascii.h"

namespace renzan::cluster::spec {
namespace {

constexpr size_t kMaxName = 63;
constexpr size_t kMaxLine = 4096;

bool IsMadeOf(std::string_view text, std::string_view first, std::string_view others) {
  if (text.empty() || text.size() > kMaxName) return false;
  const auto is_in = [](char c, std::string_view more) {
    return IsLetter(c) || IsDigit(c) || more.find(c) != std::string_view::npos;
  };
  return is_in(text[0], first) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_in(c, others); });
}

}  // namespace

bool IsName(std::string_view text) { return IsMadeOf(text, "", "_-."); }

bool IsNodeName(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("_-.").find(c) != std::string_view::npos;
  });
}

bool IsUserName(std::string_view text) { return IsMadeOf(text, "_", "_-.@+$"); }

bool IsLabelKey(std::string_view text) { return IsMadeOf(text, "", "_-./"); }

bool IsVariableName(std::string_view text) {
  return !text.empty() && !IsDigit(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_';
  });
}

bool IsOneLine(std::string_view text) {
  return text.size() <= kMaxLine && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace renzan::cluster::spec
