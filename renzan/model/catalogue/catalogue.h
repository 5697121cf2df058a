#pragma once

// The models that a configuration names (`model.type`): each entry builds a graph of blocks.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/model/model.h"

namespace renzan {

struct CatalogueEntry {
  const char* name;
  Graph (*graph)(const ModelOptions& options);
  // What each row of a table has: an embedding, and as its last column a first-order weight
  // (blocks/first_order.h).
  bool has_embedding = true, has_first_order = false;
  bool needs_sequences = false;
  bool takes_negatives = false;  // SequenceInput::negatives_of
  bool compares_items = false;   // Block::ComparesItems() of its logit
  // Of a model with several, each given by BlockOfOutput(): those that it has for these labels
  // unless `model.outputs` names them. Throws kConfig if the labels are too few or too many.
  std::vector<ModelOutput> (*outputs)(const std::vector<std::string>& labels) = nullptr;
  // Which of ModelSizes it has, as a list of words.
  const char* keys = "";

  bool has_several_outputs() const { return outputs != nullptr; }
  bool Has(const std::string& key) const;
};

// The block that gives an output of a model with several: "output_click".
std::string BlockOfOutput(const std::string& output);

std::span<const CatalogueEntry> Catalogue();
// "sasrec, hstu or two_tower": the models that compare items.
std::string ModelsThatCompareItems();
// Null if the catalogue has no such model.
const CatalogueEntry* FindEntry(const std::string& name);

}  // namespace renzan
