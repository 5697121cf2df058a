#pragma once

// Converts structures to JSON and back, both by one description of each: a function template
// Describe(io, value), in the structure's namespace or this one, that calls io(key, field) for
// every field. Plain fields, optional times, vectors, maps from names and described structures are
// fields; the wrappers below are for the rest. Pure functions.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// An int64_t whose maximum means "none" and is null in JSON.
struct NullAtMax {
  int64_t& value;
};

// A double whose infinity is null in JSON.
struct NullAtInfinity {
  double& value;
};

// A list or text that is left out of the JSON while it is empty, so that documents from before it
// was added can be read; a truth value while it is false; and an optional value while it is none.
template <typename T>
struct AbsentIfEmpty {
  T& value;
};
struct AbsentIfFalse {
  bool& value;
};
template <typename T>
struct AbsentIfNone {
  std::optional<T>& value;
};
// A key of earlier versions, which is read over.
struct Dropped {};

// A state that is a word in JSON.
template <typename State>
struct Word {
  State state;
  const char* word;
};
template <typename State, size_t size>
const char* WordOf(State state, const Word<State> (&words)[size]) {
  for (const Word<State>& word : words)
    if (word.state == state) return word.word;
  return "";
}
template <typename State>
struct AsWord {
  State& value;
  std::span<const Word<State>> words;
};

// Text without line breaks or blanks between its parts.
class JsonWriter {
 public:
  template <typename T>
  static std::string Text(T& value) {
    JsonWriter writer;
    writer.Put(value);
    return std::move(writer.text_);
  }

  template <typename T>
  void operator()(const char* key, AbsentIfEmpty<T> value) {
    if (!value.value.empty()) (*this)(key, value.value);
  }
  void operator()(const char* key, AbsentIfFalse value) {
    if (value.value) (*this)(key, value.value);
  }
  template <typename T>
  void operator()(const char* key, AbsentIfNone<T> value) {
    if (value.value) (*this)(key, *value.value);
  }
  void operator()(const char*, Dropped) {}
  template <typename T>
  void operator()(const char* key, T&& value) {
    Separate('{');
    text_ += '"';
    text_ += key;
    text_ += "\":";
    Put(value);
  }

 private:
  void Separate(char opening) {
    if (text_.back() != opening) text_ += ',';
  }
  void Null() { text_ += "null"; }
  void Put(bool& value) { text_ += value ? "true" : "false"; }
  void Put(int64_t& value);
  void Put(int& value) {
    int64_t wide = value;
    Put(wide);
  }
  void Put(double& value);
  // Bytes that are not UTF-8 are replaced.
  void Put(std::string& value) { Quote(value); }
  void Quote(std::string_view value);
  void Put(NullAtMax& value) { value.value == kNever ? Null() : Put(value.value); }
  void Put(NullAtInfinity& value);
  template <typename State>
  void Put(AsWord<State>& value) {
    for (const auto& word : value.words)
      if (word.state == value.value) return Quote(word.word);
    Null();
  }
  void Put(Resources& value) {
    text_ += '[';
    for (int64_t& amount : value.amount) {
      Separate('[');
      NullAtMax item{amount};
      Put(item);
    }
    text_ += ']';
  }
  void Put(std::optional<TimeMs>& value) { value ? Put(*value) : Null(); }
  template <typename T>
  void Put(std::map<std::string, T>& value) {
    text_ += '{';
    for (auto& [name, item] : value) {
      Separate('{');
      Quote(name);
      text_ += ':';
      Put(item);
    }
    text_ += '}';
  }
  template <typename T, size_t size>
  void Put(std::array<T, size>& value) {
    PutList(value);
  }
  template <typename T>
  void Put(std::vector<T>& value) {
    PutList(value);
  }
  template <typename List>
  void PutList(List& list) {
    text_ += '[';
    for (auto& item : list) {
      Separate('[');
      Put(item);
    }
    text_ += ']';
  }
  template <typename T>
  void Put(T& value) {
    text_ += '{';
    Describe(*this, value);
    text_ += '}';
  }

  std::string text_;
};

// Every error is an Error kData that names the field: "the snapshot's jobs[3].id is not text".
class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  // Reads text that is exactly one described structure: no key missing, unknown or twice. `what` it
  // is, for errors: "snapshot".
  template <typename T>
  static T Parse(std::string_view text, const char* what) {
    T value;
    WithParsed(text, what, [&](const Json& json) { JsonReader(json, what, "").Object(value); });
    return value;
  }

  template <typename T>
  void operator()(const char* key, AbsentIfEmpty<T> value) {
    if (Has(key))
      (*this)(key, value.value);
    else
      value.value.clear();
  }
  void operator()(const char* key, AbsentIfFalse value) {
    value.value = false;
    if (Has(key)) (*this)(key, value.value);
  }
  template <typename T>
  void operator()(const char* key, AbsentIfNone<T> value) {
    value.value.reset();
    if (Has(key)) (*this)(key, value.value.emplace());
  }
  void operator()(const char* key, Dropped) {
    if (Has(key)) keys_.insert(key);
  }
  template <typename T>
  void operator()(const char* key, T&& value) {
    const std::string where = where_.empty() ? key : where_ + "." + key;
    JsonReader(Member(key, where), what_, where).Get(value);
    keys_.insert(key);
  }

 private:
  JsonReader(const Json& json, const char* what, std::string where)
      : json_(json), what_(what), where_(std::move(where)) {}

  static void WithParsed(std::string_view text, const char* what,
                         const std::function<void(const Json&)>& read);
  [[noreturn]] void FailType(const std::string& expected) const;
  bool Has(const char* key) const;
  const Json& Member(const char* key, const std::string& where) const;
  JsonReader Item(size_t at) const;
  // The size of a list; anything else is an error that says `expected`.
  size_t Size(const std::string& expected) const;
  bool IsNull() const;
  bool IsText(const char* text) const;
  void ForEachMember(
      const std::function<void(const std::string& name, const JsonReader& item)>& read) const;
  void RequireObject() const;
  void RefuseUnknownKeys() const;

  void Get(bool& value) const;
  void Get(int64_t& value) const;
  void Get(int& value) const;
  void Get(double& value) const;
  void Get(std::string& value) const;
  void Get(NullAtMax& value) const { IsNull() ? void(value.value = kNever) : Get(value.value); }
  void Get(NullAtInfinity& value) const;
  template <typename State>
  void Get(AsWord<State>& value) const {
    for (const auto& word : value.words) {
      if (!IsText(word.word)) continue;
      value.value = word.state;
      return;
    }
    FailType("a state");
  }
  void Get(Resources& value) const {
    const std::string expected = "a list of " + std::to_string(value.amount.size()) + " amounts";
    if (Size(expected) != value.amount.size()) FailType(expected);
    for (size_t kind = 0; kind < value.amount.size(); ++kind) {
      NullAtMax item{value.amount[kind]};
      Item(kind).Get(item);
    }
  }
  void Get(std::optional<TimeMs>& value) const {
    value.reset();
    if (!IsNull()) Get(value.emplace());
  }
  template <typename T>
  void Get(std::map<std::string, T>& value) const {
    value.clear();
    ForEachMember([&](const std::string& name, const JsonReader& item) { item.Get(value[name]); });
  }
  template <typename T, size_t size>
  void Get(std::array<T, size>& value) const {
    const std::string expected = "a list of " + std::to_string(size) + " times";
    if (Size(expected) != size) FailType(expected);
    for (size_t at = 0; at < size; ++at) Item(at).Get(value[at]);
  }
  template <typename T>
  void Get(std::vector<T>& value) const {
    value.clear();
    const size_t size = Size("a list");
    for (size_t at = 0; at < size; ++at) Item(at).Get(value.emplace_back());
  }
  template <typename T>
  void Get(T& value) const {
    JsonReader(json_, what_, where_).Object(value);
  }
  template <typename T>
  void Object(T& value) {
    RequireObject();
    Describe(*this, value);
    RefuseUnknownKeys();
  }

  const Json& json_;
  const char* what_;
  std::string where_;
  std::set<std::string> keys_;
};

// --- Structures used by several documents.

template <typename Io>
void Describe(Io& io, Placed& placed) {
  io("node", placed.node);
  io("workers", placed.workers);
}

template <typename Io>
void Describe(Io& io, Reservation& reservation) {
  io("job", reservation.job);
  io("placement", reservation.placement);
}

}  // namespace renzan::cluster::spec
