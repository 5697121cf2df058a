#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "renzan/base/config/config.h"

namespace renzan {
namespace {

std::string Print(const bool& value) { return value ? "true" : "false"; }

template <typename Number>
requires std::is_arithmetic_v<Number> std::string Print(const Number& value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return ".nan";
    if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  return fmt::format("{}", value);
}

// Unquoted only if every YAML parser reads it as a string.
std::string Print(const std::string& value) {
  static const std::vector<std::string> kWords = {"true", "false", "yes", "no", "on",
                                                  "off",  "null",  "y",   "n"};
  std::string lower;
  bool plain = !value.empty() && (std::isalpha(static_cast<unsigned char>(value[0])) != 0 ||
                                  value[0] == '/' || value[0] == '_');
  for (const unsigned char c : value) {
    lower += static_cast<char>(std::tolower(c));
    plain = plain && (std::isalnum(c) != 0 || std::string_view("_-./+").find(
                                                  static_cast<char>(c)) != std::string_view::npos);
  }
  if (plain && std::find(kWords.begin(), kWords.end(), lower) == kWords.end()) return value;
  std::string quoted = "\"";
  for (const unsigned char c : value) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", c);
    } else {
      quoted += static_cast<char>(c);
    }
  }
  return quoted + "\"";
}

template <typename Item>
std::string Print(const std::vector<Item>& value) {
  std::vector<std::string> items;
  for (const Item& item : value) items.push_back(Print(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// A name as a key. YAML readers look for the colon only in the first 1024 characters of a key,
// unless a question mark precedes it; in block style the colon is then on a line of its own.
std::string PrintKey(const std::string& name, const std::string& before_colon) {
  constexpr size_t kMaxPlainKey = 1000;
  const std::string key = Print(name);
  return key.size() <= kMaxPlainKey ? key + ":" : fmt::format("? {}{}:", key, before_colon);
}

template <typename Item>
std::string Print(const std::map<std::string, Item>& value) {
  std::vector<std::string> items;
  for (const auto& [name, item] : value) items.push_back(PrintKey(name, " ") + " " + Print(item));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

template <typename T>
std::string Print(const std::optional<T>& value) {
  return value ? Print(*value) : "~";
}

class ConfigPrinter final : public ConfigFields {
 public:
  ConfigPrinter(std::string* out, bool with_docs, std::string indent = "")
      : out_(*out), with_docs_(with_docs), indent_(std::move(indent)) {}

  void Section(const char* key, const Describer& describe, const char* doc) override {
    Doc(doc);
    out_ += fmt::format("{}{}:\n", indent_, key);
    ConfigPrinter inner(&out_, with_docs_, indent_ + "  ");
    describe(inner);
  }

  void RequireAt(const std::string&, bool, const char*, const std::string&) override {}

 protected:
  void Bind(const char* key, Value value, const Check&, const char* doc) override {
    Doc(doc);
    const std::string text = std::visit([](auto* target) { return Print(*target); }, value);
    out_ += fmt::format("{}{}: {}\n", indent_, key, text);
  }

  void BindMap(const char* key, const std::vector<std::string>& names,
               const NamedDescriber& describe, const char* doc) override {
    Doc(doc);
    out_ += fmt::format("{}{}:{}\n", indent_, key, names.empty() ? " {}" : "");
    for (const std::string& name : names) {
      out_ += fmt::format("{}  {}\n", indent_, PrintKey(name, "\n" + indent_ + "  "));
      ConfigPrinter inner(&out_, with_docs_, indent_ + "    ");
      describe(name, inner);
    }
  }

 private:
  void Doc(const char* doc) {
    if (with_docs_ && *doc != '\0') out_ += fmt::format("{}# {}\n", indent_, doc);
  }

  std::string& out_;
  bool with_docs_;
  std::string indent_;
};

class ConfigLister final : public ConfigFields {
 public:
  ConfigLister(std::vector<ConfigValue>* out, std::vector<std::string> path, int tag)
      : out_(*out), path_(std::move(path)) {
    Tag(tag);
  }

  void Section(const char* key, const Describer& describe, const char*) override {
    ConfigLister inner(&out_, PathTo({key}), tag_);
    describe(inner);
  }

  void RequireAt(const std::string&, bool, const char*, const std::string&) override {}

 protected:
  void Bind(const char* key, Value value, const Check&, const char*) override {
    out_.push_back(
        {PathTo({key}), std::visit([](auto* target) { return Print(*target); }, value), tag_});
  }

  void BindMap(const char* key, const std::vector<std::string>& names,
               const NamedDescriber& describe, const char*) override {
    for (const std::string& name : names) {
      ConfigLister inner(&out_, PathTo({key, name}), tag_);
      describe(name, inner);
    }
  }

 private:
  std::vector<std::string> PathTo(std::initializer_list<std::string> keys) const {
    std::vector<std::string> path = path_;
    path.insert(path.end(), keys);
    return path;
  }

  std::vector<ConfigValue>& out_;
  const std::vector<std::string> path_;
};

}  // namespace

std::string ConfigValue::key() const {
  std::vector<std::string> names;
  for (const std::string& name : path) names.push_back(Print(name));
  return fmt::format("{}", fmt::join(names, "."));
}

std::vector<ConfigValue> ListConfig(const ConfigFields::Describer& describe) {
  std::vector<ConfigValue> values;
  ConfigLister lister(&values, {}, 0);
  describe(lister);
  return values;
}

std::string PrintConfig(const ConfigFields::Describer& describe, bool with_docs) {
  std::string text;
  ConfigPrinter printer(&text, with_docs);
  describe(printer);
  return text;
}

}  // namespace renzan
