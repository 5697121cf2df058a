#include "renzan/cluster/kubernetes/api/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

// yaml-cpp's tag of scalars in quotes.
constexpr const char* kQuotedTag = "!";
// Deeper than any object of the API; a malicious file would overflow the stack.
constexpr int kMaxDepth = 100;

template <typename Number>
bool IsWhole(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

json ScalarFrom(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == kQuotedTag) return text;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (int64_t number = 0; IsWhole(text, number)) return number;
  // Not "inf" and "nan", which are names here.
  const bool is_number = text.find_first_of("0123456789") < 3;
  if (double number = 0; is_number && IsWhole(text, number)) return number;
  return text;
}

json ValueFrom(const YAML::Node& node, const std::string& source, int depth) {
  const auto fail = [&](const char* what) {
    Fail(ErrorCode::kConfig, "{}:{}:{}: {}: correct the file", source, node.Mark().line + 1,
         node.Mark().column + 1, what);
  };
  if (depth > kMaxDepth) fail("nested too deeply");
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return ScalarFrom(node);
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const YAML::Node& item : node) list.push_back(ValueFrom(item, source, depth + 1));
      return list;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) fail("a key must be a word");
        if (!object.emplace(entry.first.Scalar(), ValueFrom(entry.second, source, depth + 1))
                 .second)
          fail("a key appears twice");
      }
      return object;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return nullptr;
}

}  // namespace

json JsonFromYaml(const std::string& text, const std::string& source) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      Fail(ErrorCode::kConfig, "{}: has {} documents: give one file for each", source,
           documents.size());
    return documents.empty() ? json() : ValueFrom(documents[0], source, 0);
  } catch (const YAML::Exception& error) {
    Fail(ErrorCode::kConfig, "{}:{}:{}: {}: correct the file", source, error.mark.line + 1,
         error.mark.column + 1, error.msg);
  }
}

json JsonFromYaml(const YAML::Node& node, const std::string& source) {
  return ValueFrom(node, source, 0);
}

}  // namespace renzan::cluster::kubernetes
