#include "renzan/cluster/kubernetes/api/config_section.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/base64.h"
#include "renzan/cluster/kubernetes/api/yaml.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr uint64_t kMaxFileBytes = 16 << 20;

std::string DecodedBase64(const std::string& text, const std::string& where) {
  std::optional<std::string> bytes = DecodeBase64(text);
  if (!bytes)
    Fail(ErrorCode::kConfig, "{}: is not valid base64: copy the configuration again", where);
  return std::move(*bytes);
}

}  // namespace

Section::Section(const YAML::Node& node, std::string file, std::string key)
    : node_(std::make_shared<const YAML::Node>(node)),
      file_(std::move(file)),
      key_(std::move(key)) {
  if (!node.IsMap())
    Fail(ErrorCode::kConfig, "{}: {} is not a section with keys: correct the file", file_,
         key_.empty() ? "the file" : key_);
}

std::string Section::Where(const std::string& key) const {
  return fmt::format("{}: {}{}{}", file_, key_, key_.empty() || key.empty() ? "" : ".", key);
}

bool Section::Has(const std::string& key) const { return (*node_)[key] && !(*node_)[key].IsNull(); }

std::string Section::Text(const std::string& key) const {
  if (!Has(key)) return "";
  if (!(*node_)[key].IsScalar())
    Fail(ErrorCode::kConfig, "{}: must be a single value: correct the file", Where(key));
  return (*node_)[key].Scalar();
}

std::string Section::Required(const std::string& key, const char* next) const {
  std::string text = Text(key);
  if (text.empty()) Fail(ErrorCode::kConfig, "{}: is not set: {}", Where(key), next);
  return text;
}

bool Section::Flag(const std::string& key) const {
  const std::string text = Text(key);
  if (!text.empty() && text != "true" && text != "false")
    Fail(ErrorCode::kConfig, "{}: '{}' is neither true nor false: correct the file", Where(key),
         text);
  return text == "true";
}

std::optional<Section> Section::Part(const std::string& key) const {
  if (!Has(key)) return std::nullopt;
  return Section((*node_)[key], file_, key_.empty() ? key : key_ + "." + key);
}

std::optional<Section> Section::Find(const std::string& list, const std::string& name,
                                     const std::string& part) const {
  for (const YAML::Node& entry : Entries(list))
    if (entry["name"].as<std::string>("") == name)
      return Section(entry[part] ? entry[part] : YAML::Node(YAML::NodeType::Null), file_,
                     fmt::format("{}{}{}.{}.{}", key_, key_.empty() ? "" : ".", list, name, part));
  return std::nullopt;
}

Section Section::Follow(const std::string& list, const std::string& name, const std::string& part,
                        const std::string& referred_by) const {
  if (auto found = Find(list, name, part)) return *std::move(found);
  const std::vector<std::string> names = Names(list);
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kConfig, "{}: there is no '{}' in {}: {}", referred_by, name, Where(list),
       !nearest.empty() ? fmt::format("did you mean '{}'?", nearest)
       : names.empty()  ? std::string("the list is empty: is it the right file?")
                        : fmt::format("it has {}", fmt::join(names, ", ")));
}

std::vector<std::string> Section::Texts(const std::string& list) const {
  std::vector<std::string> texts;
  for (const YAML::Node& item : Items(list)) {
    if (!item.IsScalar())
      Fail(ErrorCode::kConfig, "{}: every entry must be a single value: correct the file",
           Where(list));
    texts.push_back(item.Scalar());
  }
  return texts;
}

std::vector<std::pair<std::string, std::string>> Section::NamedTexts(
    const std::string& list) const {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const YAML::Node& entry : Entries(list)) {
    const Section section(entry, file_, Where(list));
    texts.emplace_back(section.Required("name", "name it"), section.Text("value"));
  }
  return texts;
}

nlohmann::json Section::Json() const { return JsonFromYaml(*node_, file_); }

std::vector<YAML::Node> Section::Items(const std::string& list) const {
  if (!Has(list)) return {};
  const YAML::Node items = (*node_)[list];
  if (!items.IsSequence())
    Fail(ErrorCode::kConfig, "{}: must be a list: correct the file", Where(list));
  return {items.begin(), items.end()};
}

std::vector<YAML::Node> Section::Entries(const std::string& list) const {
  std::vector<YAML::Node> entries = Items(list);
  for (const YAML::Node& entry : entries)
    if (!entry.IsMap())
      Fail(ErrorCode::kConfig, "{}: every entry must have a name: correct the file", Where(list));
  return entries;
}

std::vector<std::string> Section::Names(const std::string& list) const {
  std::vector<std::string> names;
  for (const YAML::Node& entry : Entries(list)) names.push_back(entry["name"].as<std::string>(""));
  return names;
}

Section ReadSections(const std::string& path) {
  return Section(YAML::Load(ReadSmallFile(path)), path, "");
}

std::string ReadSmallFile(const std::string& path) {
  if (FileSize(path) > kMaxFileBytes)
    Fail(ErrorCode::kConfig, "{}: larger than {} bytes: is it the right file?", path,
         kMaxFileBytes);
  return ReadFile(path);
}

std::string ReadNamedFile(const std::string& path, const std::string& where) {
  try {
    return ReadSmallFile(path);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: make the file readable, or correct its name",
                                          where, error.what()));
  }
}

std::string ResolvePath(const Section& section, const std::string& path) {
  if (path.empty()) return "";
  return std::filesystem::path(section.file()).parent_path() / path;
}

Pem ReadPem(const Section& section, const std::string& key) {
  const std::string data_key = key + "-data";
  if (const std::string data = section.Text(data_key); !data.empty()) {
    const std::string where = section.Where(data_key);
    return {DecodedBase64(data, where), where};
  }
  const std::string path = ResolvePath(section, section.Text(key));
  if (path.empty()) return {};
  const std::string where = section.Where(key);
  return {ReadNamedFile(path, where), fmt::format("{} ({})", where, path)};
}

}  // namespace renzan::cluster::kubernetes
