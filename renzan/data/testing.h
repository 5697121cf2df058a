#pragma once

// Helpers for the tests of this folder.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/text_output.h"

namespace renzan::testing {

inline void ExpectError(ErrorCode code, const ::testing::Matcher<std::string>& message,
                        const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), message);
  }
}

// Compressed according to the file name.
inline void WriteText(const std::string& path, const std::string& text) {
  TextOutput output(path);
  output.Write(text);
  output.Close();
}

inline std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Edits dataset.yaml and updates its checksum line.
inline void RewriteManifest(const std::string& directory, const std::string& from,
                            const std::string& to) {
  const std::string path = directory + "/dataset.yaml";
  std::string text = ReadFile(path);
  const size_t at = text.find(from), checksum = text.rfind("xxh128: ");
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_NE(checksum, std::string::npos);
  text.resize(checksum);
  text.replace(at, from.size(), to);
  Xxh128 hash;
  hash.Update(text);
  WriteFileAtomically(path, fmt::format("{}xxh128: {}\n", text, hash.HexDigest()));
}

inline Batch ReadAll(const Dataset& dataset) {
  std::vector<int64_t> rows(static_cast<size_t>(dataset.num_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  Batch batch;
  dataset.Read(rows, &batch);
  return batch;
}

// A file of real data, which is not part of the repository.
inline std::string SharedData(const std::string& file) {
  return std::string(RENZAN_SHARED_DATA) + "/" + file;
}

}  // namespace renzan::testing

#define SKIP_WITHOUT_SHARED_DATA(file)                  \
  if (!FileExists(::renzan::testing::SharedData(file))) \
  GTEST_SKIP() << ::renzan::testing::SharedData(file) << " is absent"
