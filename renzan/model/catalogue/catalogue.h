#pragma once

// The models that a configuration names (`model.type`): each entry builds a graph of blocks.

#include <cstdint>
#include <span>
#include <string>

#include "renzan/model/model.h"

namespace renzan {

struct CatalogueEntry {
  const char* name;
  Graph (*graph)(const ModelOptions& options);
  // What each row of a table has: an embedding, and as its last column a first-order weight
  // (blocks/first_order.h).
  bool has_embedding = true, has_first_order = false;
  bool needs_sequences = false;
  // Which of ModelSizes it has, as a list of words.
  const char* keys = "";

  bool Has(const std::string& key) const;
};

std::span<const CatalogueEntry> Catalogue();
// Null if the catalogue has no such model.
const CatalogueEntry* FindEntry(const std::string& name);

}  // namespace renzan
