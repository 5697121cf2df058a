#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/text/propose_schema.h"

namespace renzan::testing {

// Proposes a schema for a file, imports the file with it, and returns both.
struct Proposed {
  TemporaryDirectory dir;
  std::string path, schema, warnings;

  explicit Proposed(const std::string& text, const std::string& name = "in.csv")
      : path(dir / name) {
    WriteText(path, text);
    Run();
  }
  explicit Proposed(std::string file, std::nullptr_t) : path(std::move(file)) { Run(); }

  void Run() {
    schema = ProposeSchema({.input = path});
    WriteFileAtomically(dir / "schema.yaml", schema);
    ImportOptions options;
    options.inputs = {path};
    options.format = "csv";
    options.schema = dir / "schema.yaml";
    options.output = dir / "out";
    options.vocabulary = {"threshold:1"};
    ::testing::internal::CaptureStderr();
    try {
      ImportDataset(options);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what() << "\n" << schema;
    }
    warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(warnings, "") << schema;
  }
};

// The schema proposed for 300 rows of that column, a number and a label.
inline std::string SchemaOfColumn(const std::string& name,
                                  const std::function<std::string(int)>& value,
                                  const std::string& delimiter = ",") {
  TemporaryDirectory dir;
  std::string text = fmt::format("{0}{1}other{1}clicked\n", name, delimiter);
  for (int row = 0; row < 300; ++row)
    text += fmt::format("{1}{0}{2}{0}{3}\n", delimiter, value(row), row * row % 97,
                        row % 3 == 0 ? 1 : 0);
  return Proposed(text).schema;
}

}  // namespace renzan::testing
