#include "renzan/base/config/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "renzan/base/config/config_tree.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using internal::ConfigTree;
using Kind = ConfigTree::Kind;

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

const char* KindName(const ConfigTree& tree) {
  switch (tree.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "a single value";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a section";
  }
  return "";
}

[[noreturn]] void FailType(const ConfigTree& tree, std::string_view path,
                           std::string_view expected) {
  const std::string found = tree.kind != Kind::kScalar ? KindName(tree)
                            : tree.quoted              ? fmt::format("the text '{}'", tree.text)
                                                       : fmt::format("'{}'", tree.text);
  Fail(ErrorCode::kConfig, "{}: {} must be {}, found {}", tree.where, path, expected, found);
}

bool IsPlainScalar(const ConfigTree& tree) { return tree.kind == Kind::kScalar && !tree.quoted; }

void Read(const ConfigTree& tree, std::string_view path, bool* value) {
  const bool is_true = tree.text == "true" || tree.text == "True" || tree.text == "TRUE";
  const bool is_false = tree.text == "false" || tree.text == "False" || tree.text == "FALSE";
  if (!IsPlainScalar(tree) || (!is_true && !is_false)) FailType(tree, path, "true or false");
  *value = is_true;
}

template <typename Number>
requires std::is_arithmetic_v<Number>
void Read(const ConfigTree& tree, std::string_view path, Number* value) {
  constexpr bool kWhole = std::is_integral_v<Number>;
  constexpr const char* kExpected = kWhole ? "a whole number" : "a number";
  if (!IsPlainScalar(tree)) FailType(tree, path, kExpected);
  std::string_view text = tree.text;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if constexpr (!kWhole) {
    const bool negative = text.starts_with('-');
    const std::string_view magnitude = text.substr(negative ? 1 : 0);
    if (magnitude == ".inf" || text == ".nan") {
      *value = text == ".nan" ? std::numeric_limits<Number>::quiet_NaN()
                              : (negative ? -1 : 1) * std::numeric_limits<Number>::infinity();
      return;
    }
    // from_chars would take "inf" and "nan", which are words in YAML.
    if (magnitude.empty() ||
        (magnitude[0] != '.' && std::isdigit(static_cast<unsigned char>(magnitude[0])) == 0))
      FailType(tree, path, kExpected);
  } else if (std::is_unsigned_v<Number> && text.starts_with('-')) {
    FailType(tree, path, "a whole number that is not negative");
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (error == std::errc::result_out_of_range && stop == end)
    Fail(ErrorCode::kConfig, "{}: {}: '{}' is too large or too small for this number", tree.where,
         path, tree.text);
  if (error != std::errc{} || stop != end) FailType(tree, path, kExpected);
}

void Read(const ConfigTree& tree, std::string_view path, std::string* value) {
  if (tree.kind != Kind::kScalar) FailType(tree, path, "text");
  *value = tree.text;
}

// Of texts: that of the words that are there instead.
template <typename Item>
std::string ExampleOfList(const ConfigTree& instead) {
  if constexpr (!std::is_same_v<Item, std::string>) return "[1, 2]";
  std::vector<std::string> words;
  std::istringstream text(instead.text);
  for (std::string word; text >> word;) words.push_back(ConfigValue{{word}, ""}.key());
  return fmt::format("[{}]", words.empty() ? "a, b" : Join(words));
}

template <typename Item>
void Read(const ConfigTree& tree, std::string_view path, std::vector<Item>* value) {
  if (tree.kind != Kind::kList)
    FailType(tree, path, fmt::format("a list, such as {}", ExampleOfList<Item>(tree)));
  value->clear();
  for (const ConfigTree& item : tree.items) {
    Item element{};
    Read(item, fmt::format("{}[{}]", path, value->size()), &element);
    value->push_back(std::move(element));
  }
}

template <typename Item>
void Read(const ConfigTree& tree, std::string_view path, std::map<std::string, Item>* value) {
  if (tree.kind == Kind::kNull) return;
  if (tree.kind != Kind::kMap) FailType(tree, path, "a mapping, such as {name: value}");
  for (const ConfigTree::Entry& entry : tree.entries)
    Read(entry.value, fmt::format("{}.{}", path, entry.key), &(*value)[entry.key]);
}

template <typename T>
void Read(const ConfigTree& tree, std::string_view path, std::optional<T>* value) {
  if (tree.kind == Kind::kNull) return value->reset();
  Read(tree, path, &value->emplace());
}

// State shared by all sections of one file.
struct ReadState {
  std::string file;
  std::vector<internal::Override> overrides = {};
  struct Unknown {
    std::string key, where, section;
    std::vector<std::string> valid;
  };
  std::optional<Unknown> unknown = {};
  std::string broken_rule = {};
  std::vector<std::pair<std::string, std::string>> known = {};  // key, dotted path of its section
};

// The dotted names in a text: "a multiple of numerics.virtual_workers (8)" has four.
std::vector<std::string_view> NamesIn(std::string_view text) {
  std::vector<std::string_view> names;
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = begin;
    while (end < text.size() && in_name(text[end])) ++end;
    if (end > begin) names.push_back(text.substr(begin, end - begin));
  }
  return names;
}

bool IsBelow(std::string_view path, std::string_view above) {
  return path.starts_with(above) && path.substr(above.size()).starts_with('.');
}

// Whether a rule about `path`, or its message, names the overridden key `given`: "batch_size" in a
// rule about `training` is training.batch_size.
bool NamesKey(const std::string& path, const std::string& message, const std::string& given) {
  const size_t dot = path.rfind('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot + 1);
  for (const std::string_view name : NamesIn(message)) {
    const bool is_whole = name.find('.') != std::string_view::npos;
    if (is_whole && (name == given || IsBelow(name, given))) return true;
    if (is_whole) continue;
    if (given == fmt::format("{}.{}", path, name)) return true;
    if (!section.empty() && given == fmt::format("{}{}", section, name)) return true;
  }
  return given == path;
}

class ConfigReader final : public ConfigFields {
 public:
  // `where`: of the section's key; "" if there is none.
  ConfigReader(ConfigTree* section, std::string path, std::string where, ReadState* state)
      : section_(*section), path_(std::move(path)), where_(std::move(where)), state_(*state) {}

  void Section(const char* key, const Describer& describe, const char*) override {
    ConfigTree* tree = Take(key);
    ConfigTree empty{.kind = Kind::kMap, .where = section_.where};
    if (tree == nullptr || tree->kind == Kind::kNull) tree = &empty;
    ReadSection(*tree, PathOf(key), WhereOf(section_, key), describe);
  }

  std::string Where() const override {
    const auto last = std::find_if(
        state_.overrides.rbegin(), state_.overrides.rend(),
        [&](const internal::Override& o) { return o.path == path_ || IsBelow(o.path, path_); });
    return last == state_.overrides.rend() ? where_ : last->where;
  }

  bool IsEmptySection(const char* key) const override {
    const ConfigTree::Entry* entry = section_.Find(key);
    return entry != nullptr && entry->value.entries.empty() &&
           (entry->value.kind == Kind::kMap || entry->value.kind == Kind::kNull);
  }

  void RequireAt(const std::string& at, bool condition, const char* key,
                 const std::string& message) override {
    if (condition || !state_.broken_rule.empty()) return;
    // A key that the file does not mention has no line.
    const ConfigTree::Entry* entry = section_.Find(key);
    const std::string path = PathOf(key);
    std::string where = entry ? entry->value.where : state_.file;
    if (const internal::Override* override = OverrideAbout(path, message)) where = override->where;
    if (!at.empty()) where = at;
    state_.broken_rule = fmt::format("{}: {} {}", where, path, message);
  }

  // Records the first key that was not declared.
  void Finish() {
    if (state_.unknown) return;
    for (const ConfigTree::Entry& entry : section_.entries) {
      if (std::find(keys_.begin(), keys_.end(), entry.key) != keys_.end()) continue;
      state_.unknown = {entry.key, entry.where, path_, keys_};
      return;
    }
  }

 protected:
  void Bind(const char* key, Value value, const Check& check, const char*) override {
    const ConfigTree* tree = Take(key);
    if (tree == nullptr) return;
    std::visit([&](auto* target) { Read(*tree, PathOf(key), target); }, value);
    const std::string wrong = check ? check() : "";
    if (!wrong.empty()) Fail(ErrorCode::kConfig, "{}: {}", tree->where, wrong);
  }

  void BindMap(const char* key, const std::vector<std::string>& names,
               const NamedDescriber& describe, const char*) override {
    ConfigTree* tree = Take(key);
    ConfigTree empty{.kind = Kind::kMap, .where = section_.where};
    if (tree == nullptr || tree->kind == Kind::kNull) tree = &empty;
    if (tree->kind != Kind::kMap) FailType(*tree, PathOf(key), "a section");
    std::vector<std::string> all = names;
    for (const ConfigTree::Entry& entry : tree->entries)
      if (std::find(all.begin(), all.end(), entry.key) == all.end()) all.push_back(entry.key);
    for (const std::string& name : all) {
      ConfigTree::Entry* entry = tree->Find(name);
      const bool given = entry != nullptr && entry->value.kind != Kind::kNull;
      ConfigTree none{.kind = Kind::kMap, .where = tree->where};
      ReadSection(given ? entry->value : none, fmt::format("{}.{}", PathOf(key), name),
                  WhereOf(*tree, name), [&](ConfigFields& fields) { describe(name, fields); });
    }
  }

 private:
  // The last override of a value that the rule names, or else of something below `path`. Null if
  // there is none.
  const internal::Override* OverrideAbout(const std::string& path,
                                          const std::string& message) const {
    const auto last = [&](const auto& matches) {
      const auto found = std::find_if(state_.overrides.rbegin(), state_.overrides.rend(), matches);
      return found == state_.overrides.rend() ? nullptr : &*found;
    };
    using internal::Override;
    const Override* named =
        last([&](const Override& o) { return NamesKey(path, message, o.path); });
    return named != nullptr ? named
                            : last([&](const Override& o) { return IsBelow(o.path, path); });
  }

  std::string PathOf(const char* key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  ConfigTree* Take(const char* key) {
    CHECK_MSG(std::find(keys_.begin(), keys_.end(), key) == keys_.end(), "{} declared twice",
              PathOf(key));
    keys_.push_back(key);
    state_.known.emplace_back(key, path_);
    ConfigTree::Entry* entry = section_.Find(key);
    return entry == nullptr ? nullptr : &entry->value;
  }

  static std::string WhereOf(ConfigTree& section, std::string_view key) {
    const ConfigTree::Entry* entry = section.Find(key);
    return entry == nullptr ? "" : entry->where;
  }

  void ReadSection(ConfigTree& tree, const std::string& path, const std::string& where,
                   const Describer& describe) {
    if (tree.kind != Kind::kMap) FailNotASection(tree, path, describe);
    ConfigReader reader(&tree, path, where, &state_);
    describe(reader);
    reader.Finish();
  }

  [[noreturn]] void FailNotASection(const ConfigTree& tree, const std::string& path,
                                    const Describer& describe) {
    ConfigTree empty{.kind = Kind::kMap, .where = tree.where};
    ConfigReader reader(&empty, path, "", &state_);
    describe(reader);
    FailType(tree, path, fmt::format("a section with the keys {}", Join(reader.keys_)));
  }

  ConfigTree& section_;
  std::string path_, where_;
  ReadState& state_;
  std::vector<std::string> keys_;
};

[[noreturn]] void FailUnknownKey(const ReadState& state) {
  const ReadState::Unknown& unknown = *state.unknown;
  std::string hint;
  const std::string nearest = NearestName(unknown.key, unknown.valid);
  const auto elsewhere =
      std::find_if(state.known.begin(), state.known.end(),
                   [&](const auto& known) { return known.first == unknown.key; });
  if (!nearest.empty()) {
    hint = fmt::format("did you mean '{}'?", nearest);
  } else if (elsewhere != state.known.end()) {
    hint = fmt::format("it belongs {}", elsewhere->second.empty()
                                            ? "at the top level"
                                            : fmt::format("in section {}", elsewhere->second));
  } else {
    hint = fmt::format("valid keys are {}", Join(unknown.valid));
  }
  Fail(ErrorCode::kConfig, "{}: unknown key '{}' {}: {}", unknown.where, unknown.key,
       unknown.section.empty() ? "at the top level" : "in " + unknown.section, hint);
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const auto same = [&](size_t x, size_t y) {
        const auto fold = [](char c) {
          return c == '-' ? '_' : std::tolower(static_cast<unsigned char>(c));
        };
        return fold(a[x]) == fold(b[y]);
      };
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

void ConfigFields::Choice(const char* key, std::string* value,
                          const std::vector<std::string>& allowed, const char* doc) {
  const std::string name = key;
  std::vector<std::string> shown = allowed;
  for (std::string& word : shown)
    if (word.empty()) word = "\"\"";
  const std::string with_allowed =
      fmt::format("{}{}allowed: {}", doc, *doc == '\0' ? "" : "; ", Join(shown));
  Bind(
      key, value,
      [=]() -> std::string {
        if (std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return "";
        const std::string nearest = NearestName(*value, allowed);
        return fmt::format("{} cannot be '{}': allowed are {}{}", name, *value, Join(shown),
                           nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
      },
      with_allowed.c_str());
}

void ReadConfigFile(const std::string& path, std::span<const std::string> overrides,
                    const ConfigFields::Describer& describe) {
  ReadConfigText(ReadFile(path), path, overrides, describe);
}

void ReadConfigText(std::string_view yaml, const std::string& name,
                    std::span<const std::string> overrides,
                    const ConfigFields::Describer& describe) {
  ConfigTree root = internal::ParseConfig(yaml, name);
  ReadState state{.file = name};
  for (const std::string& text : overrides)
    state.overrides.push_back(internal::ApplyOverride(text, root));
  ConfigReader reader(&root, "", "", &state);
  describe(reader);
  reader.Finish();
  if (state.unknown) FailUnknownKey(state);
  if (!state.broken_rule.empty()) Fail(ErrorCode::kConfig, "{}", state.broken_rule);
}

std::string NearestName(std::string_view word, std::span<const std::string> candidates) {
  std::string nearest;
  size_t best = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    const size_t length = std::max(word.size(), candidate.size());
    // Up to a third of the letters wrong counts as a typo, in a short word one; more is a different
    // word.
    if (distance < best && distance < length && distance <= std::max<size_t>(1, length / 3)) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace renzan
