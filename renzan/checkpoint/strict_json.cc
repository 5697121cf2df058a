#include "renzan/checkpoint/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  Checker(size_t max_depth, std::string_view what) : max_depth_(max_depth), what_(what) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string& text) override {
    Fail(ErrorCode::kData, "{} holds {}, not a whole number", what_, text);
  }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }

  bool start_object(size_t) override { return Open(); }
  bool key(std::string& name) override {
    // nlohmann-json silently keeps the last of two equal keys; here it is an error.
    if (!keys_.back().insert(name).second)
      Fail(ErrorCode::kData, "{} has the key '{}' twice", what_, name);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Open() {
    if (keys_.size() == max_depth_) Fail(ErrorCode::kData, "{} is nested too deeply", what_);
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  size_t max_depth_;
  std::string_view what_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

}  // namespace

void CheckStrictJson(std::string_view text, size_t max_depth, std::string_view what) {
  Checker checker(max_depth, what);
  if (!nlohmann::json::sax_parse(text, &checker))
    Fail(ErrorCode::kData, "{} is not valid JSON", what);
}

}  // namespace renzan
