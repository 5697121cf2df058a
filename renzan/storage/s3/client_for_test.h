#pragma once

// For tests: a client of a store in memory.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/storage/s3/client.h"
#include "renzan/storage/s3/failure_for_test.h"
#include "renzan/storage/s3/fake_store_for_test.h"

namespace renzan::s3 {

inline Location At(const std::string& key) { return {.bucket = FakeStore::kBucket, .key = key}; }

inline std::span<std::byte> BytesOf(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

// Time passes only while the client waits.
class ClientTest : public testing::Test {
 protected:
  Environment environment() {
    return [this, of_store = store_.environment()](const std::string& name) {
      return name == "AWS_ACCESS_KEY_ID" ? access_key_ : of_store(name);
    };
  }
  // A new client, after a change to options_ or access_key_.
  std::unique_ptr<Client> NewClient() {
    return std::make_unique<Client>(ReadSettings(environment()), environment(), clock_, options_);
  }
  std::optional<std::string> Content(const std::string& key) { return store_.Content(key); }

  FakeStore store_;
  ManualClock clock_;
  std::vector<double> waits_;
  std::string access_key_ = FakeStore::kAccessKey;
  Client::Options options_{.wait = [this](double seconds, const std::stop_token&) {
    waits_.push_back(seconds);
    clock_.seconds += seconds;
  }};
  std::unique_ptr<Client> client_ = NewClient();
};

}  // namespace renzan::s3
