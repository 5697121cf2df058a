#include "renzan/cluster/spec/described_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using Json = nlohmann::ordered_json;

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

// nlohmann-json silently keeps the last of two equal keys; here that is an error.
Json ParseWithoutDuplicateKeys(std::string_view text, const char* what) {
  std::vector<std::set<std::string>> open;
  const auto callback = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      Fail(ErrorCode::kData, "the {} has the key '{}' twice in one object", what,
           parsed.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const Json::exception& error) {
    Fail(ErrorCode::kData, "the {} is not valid JSON: {}", what, error.what());
  }
}

}  // namespace

// --- Writing.

void JsonWriter::Put(int64_t& value) {
  char digits[20];
  text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void JsonWriter::Put(double& value) {
  // The shortest text that reads back to the same value.
  std::isfinite(value) ? void(fmt::format_to(std::back_inserter(text_), "{}", value)) : Null();
}

void JsonWriter::Put(NullAtInfinity& value) { std::isinf(value.value) ? Null() : Put(value.value); }

void JsonWriter::Quote(std::string_view value) {
  if (std::all_of(value.begin(), value.end(), IsPlain)) {
    text_ += '"';
    text_ += value;
    text_ += '"';
  } else {
    text_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

// --- Reading.

void JsonReader::WithParsed(std::string_view text, const char* what,
                            const std::function<void(const Json&)>& read) {
  read(ParseWithoutDuplicateKeys(text, what));
}

void JsonReader::FailType(const std::string& expected) const {
  Fail(ErrorCode::kData, "the {}'s {} is not {}", what_, where_.empty() ? "top level" : where_,
       expected);
}

bool JsonReader::Has(const char* key) const { return json_.contains(key); }

const Json& JsonReader::Member(const char* key, const std::string& where) const {
  const auto at = json_.find(key);
  if (at == json_.end()) Fail(ErrorCode::kData, "the {} lacks {}", what_, where);
  return *at;
}

JsonReader JsonReader::Item(size_t at) const {
  return {json_[at], what_, fmt::format("{}[{}]", where_, at)};
}

size_t JsonReader::Size(const std::string& expected) const {
  if (!json_.is_array()) FailType(expected);
  return json_.size();
}

bool JsonReader::IsNull() const { return json_.is_null(); }

bool JsonReader::IsText(const char* text) const { return json_ == text; }

void JsonReader::ForEachMember(
    const std::function<void(const std::string& name, const JsonReader& item)>& read) const {
  RequireObject();
  for (const auto& [name, item] : json_.items())
    read(name, JsonReader(item, what_, where_ + "." + name));
}

void JsonReader::RequireObject() const {
  if (!json_.is_object()) FailType("an object");
}

void JsonReader::RefuseUnknownKeys() const {
  if (json_.size() == keys_.size()) return;
  for (const auto& [key, unused] : json_.items())
    if (!keys_.contains(key))
      Fail(ErrorCode::kData, "the {} has an unknown key '{}' in {}", what_, key,
           where_.empty() ? "its top level" : where_);
}

void JsonReader::Get(bool& value) const {
  if (!json_.is_boolean()) FailType("true or false");
  value = json_.get<bool>();
}

void JsonReader::Get(int64_t& value) const {
  const bool too_large =
      json_.is_number_unsigned() && json_.get<uint64_t>() > static_cast<uint64_t>(kUnlimited);
  if (!json_.is_number_integer() || too_large) FailType("a whole number of 64 bits");
  value = json_.get<int64_t>();
}

void JsonReader::Get(int& value) const {
  int64_t wide = 0;
  Get(wide);
  value = static_cast<int>(wide);
  if (value != wide) FailType("a whole number of 32 bits");
}

void JsonReader::Get(double& value) const {
  if (!json_.is_number()) FailType("a number");
  value = json_.get<double>();
}

void JsonReader::Get(std::string& value) const {
  if (!json_.is_string()) FailType("text");
  value = json_.get<std::string>();
}

void JsonReader::Get(NullAtInfinity& value) const {
  IsNull() ? void(value.value = INFINITY) : Get(value.value);
}

}  // namespace renzan::cluster::spec
