#include "renzan/base/config/config_tree.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "renzan/base/config/yaml_quotes.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan::internal {
namespace {

using Kind = ConfigTree::Kind;
using WhereFunction = std::function<std::string(const YAML::Mark&)>;

// Aliases can make a document recursive or huge; no real configuration exceeds these limits.
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 1 << 20;
constexpr size_t kMaxShown = 200;  // bytes of an override in messages

YAML::Mark MarkOf(std::string_view yaml, size_t offset) {
  const LineAndColumn place = PlaceOf(yaml, offset);
  YAML::Mark mark;
  mark.pos = static_cast<int>(offset);
  mark.line = static_cast<int>(place.line);
  mark.column = static_cast<int>(place.column);
  return mark;
}

[[noreturn]] void FailUnclosed(std::string_view yaml, const QuotedText& text,
                               const WhereFunction& where) {
  Fail(ErrorCode::kConfig, "{}: not valid YAML: the quote that opens here is never closed",
       where(MarkOf(yaml, text.open)));
}

class Converter {
 public:
  Converter(std::string_view yaml, WhereFunction where) : yaml_(yaml), where_(std::move(where)) {}

  ConfigTree Convert(const YAML::Node& node, int depth = 0) {
    ConfigTree tree;
    tree.where = where_(node.Mark());
    if (node.IsScalar()) CheckQuoteIsClosed(node);
    if (depth > kMaxDepth || ++num_nodes_ > kMaxNodes)
      Fail(ErrorCode::kConfig, "{}: nested too deeply or too large", tree.where);
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar:
        tree.kind = Kind::kScalar;
        tree.text = node.Scalar();
        tree.quoted = node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
        break;
      case YAML::NodeType::Sequence:
        tree.kind = Kind::kList;
        for (const YAML::Node& item : node) tree.items.push_back(Convert(item, depth + 1));
        break;
      case YAML::NodeType::Map:
        tree.kind = Kind::kMap;
        AddEntries(node, depth, tree);
        break;
    }
    return tree;
  }

 private:
  void AddEntries(const YAML::Node& map, int depth, ConfigTree& tree) {
    // Of keys, of which there may be as many as columns.
    std::unordered_map<std::string, std::string> places;
    for (const auto& pair : map) {
      const YAML::Node &key = pair.first, &value = pair.second;
      const std::string where = where_(key.Mark());
      if (key.IsScalar()) CheckQuoteIsClosed(key);
      if (!key.IsScalar()) Fail(ErrorCode::kConfig, "{}: a key must be a plain word", where);
      if (const auto [first, is_new] = places.emplace(key.Scalar(), where); !is_new)
        Fail(ErrorCode::kConfig, "{}: key '{}' is given twice, first at {}: remove one", where,
             key.Scalar(), first->second);
      tree.entries.push_back({key.Scalar(), where, Convert(value, depth + 1)});
    }
  }

  void CheckQuoteIsClosed(const YAML::Node& node) {
    if (node.Mark().is_null()) return;
    const auto text = QuotedTextOf(yaml_, static_cast<size_t>(node.Mark().pos));
    if (text && !text->is_closed()) FailUnclosed(yaml_, *text, where_);
  }

  std::string_view yaml_;
  WhereFunction where_;
  int num_nodes_ = 0;
};

// What the parser's message says, where that is its own grammar.
std::string ProblemOf(const YAML::Exception& error) {
  if (error.msg == YAML::ErrorMsg::END_OF_MAP || error.msg == YAML::ErrorMsg::END_OF_SEQ)
    return "this line is indented differently from those above that it belongs to: the keys of a "
           "mapping, and the items of a list, begin in the same column";
  if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) return "a '{' above is never closed";
  if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "a '[' above is never closed";
  return error.msg;
}

// Marks count the bytes of UTF-8 after its byte order mark.
std::string_view TextOfMarks(std::string_view yaml) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (yaml.starts_with(kByteOrderMark)) yaml.remove_prefix(kByteOrderMark.size());
  return yaml.find('\0') == yaml.npos ? yaml : "";  // UTF-16
}

// A quote may be what breaks a document far above of where that shows.
[[noreturn]] void FailToParse(std::string_view yaml, const YAML::Exception& error,
                              const WhereFunction& where) {
  std::string advice;
  if (const auto text = SuspectQuote(yaml, static_cast<size_t>(std::max(0, error.mark.line)))) {
    if (!text->is_closed()) FailUnclosed(yaml, *text, where);
    const LineAndColumn opens = PlaceOf(yaml, text->open);
    advice =
        fmt::format("; the quote that opens in line {}, column {}, is closed only in this line",
                    opens.line + 1, opens.column + 1);
  }
  Fail(ErrorCode::kConfig, "{}: not valid YAML: {}{}", where(error.mark), ProblemOf(error), advice);
}

ConfigTree Parse(std::string_view yaml, const WhereFunction& where) {
  const std::string_view text = TextOfMarks(yaml);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (documents.size() > 1)
      Fail(ErrorCode::kConfig, "{}: a second YAML document begins here ('---'): remove it",
           where(documents[1].Mark()));
    return documents.empty() ? ConfigTree{.where = where(YAML::Mark())}
                             : Converter(text, where).Convert(documents[0]);
  } catch (const YAML::Exception& error) {
    FailToParse(text, error, where);
  }
}

}  // namespace

ConfigTree::Entry* ConfigTree::Find(std::string_view key) {
  for (Entry& entry : entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

ConfigTree ParseConfig(std::string_view yaml, const std::string& name) {
  ConfigTree root = Parse(yaml, [&name](const YAML::Mark& mark) {
    if (mark.is_null()) return name;
    return fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
  });
  if (root.kind == Kind::kNull) root.kind = Kind::kMap;
  if (root.kind != Kind::kMap)
    Fail(ErrorCode::kConfig, "{}: expected 'key: value' lines at the top level", root.where);
  return root;
}

Override ApplyOverride(const std::string& override_text, ConfigTree& root) {
  // Every value stores this text as its location, so a long override is shortened.
  const std::string where = "--set " + ShortText(override_text, kMaxShown);
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0)
    Fail(ErrorCode::kConfig, "{}: expected key=value, such as --set numerics.virtual_workers=4",
         where);
  const std::string path = override_text.substr(0, equals);
  if (std::count(path.begin(), path.end(), '.') >= kMaxDepth)
    Fail(ErrorCode::kConfig, "{}: nested too deeply", where);
  ConfigTree value =
      Parse(override_text.substr(equals + 1), [&where](const YAML::Mark&) { return where; });
  if (equals + 1 == override_text.size())
    value = {.kind = Kind::kScalar, .where = where, .quoted = true};

  ConfigTree* node = &root;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (key.empty()) Fail(ErrorCode::kConfig, "{}: an empty word in key '{}'", where, path);
    if (node->kind == Kind::kNull) node->kind = Kind::kMap;
    if (node->kind != Kind::kMap)
      Fail(ErrorCode::kConfig, "{}: '{}' has no keys of its own: set it as a whole", where,
           path.substr(0, begin - 1));
    ConfigTree::Entry* entry = node->Find(key);
    if (entry == nullptr) {
      node->entries.push_back({key, where, {.kind = Kind::kNull, .where = where}});
      entry = &node->entries.back();
    }
    node = &entry->value;
    begin = end + 1;
  }
  *node = std::move(value);
  return {path, where};
}

}  // namespace renzan::internal
