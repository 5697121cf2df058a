#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan::testing {

// CSV files, a schema, and how they are imported: each value has an id of its own.
struct Csv {
  TemporaryDirectory dir;
  ImportOptions options;

  Csv(const std::string& schema, const std::vector<std::string>& texts) {
    WriteFileAtomically(dir / "schema.yaml", schema);
    for (size_t i = 0; i < texts.size(); ++i) {
      options.inputs.push_back(dir / fmt::format("in{}.csv", i));
      WriteText(options.inputs.back(), texts[i]);
    }
    options.format = "csv";
    options.schema = dir / "schema.yaml";
    options.output = dir / "out";
    options.vocabulary = {"threshold:1"};
  }
  ImportSummary Import() const { return ImportDataset(options); }
  Batch Read() const {
    Import();
    const Dataset dataset(options.output);
    dataset.Verify();
    return ReadAll(dataset);
  }
  std::vector<std::string> Values(const std::string& feature) const {
    return ReadVocabularyValues(options.output, ReadManifest(options.output), feature);
  }
};

}  // namespace renzan::testing
