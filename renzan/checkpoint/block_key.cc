#include "renzan/checkpoint/block_key.h"

#include <fmt/format.h>

#include <regex>

namespace renzan {

std::string BlockKey::Name() const {
  std::string name = table;
  if (row_blocks > 1) name += fmt::format(".row_block_{}_of_{}", row_block, row_blocks);
  if (column_blocks > 1) name += fmt::format(".column_block_{}_of_{}", column_block, column_blocks);
  return name;
}

std::optional<TableTensorKey> ParseTableTensorKey(const std::string& key) {
  static const std::regex pattern(R"(embedding\.([^./]+))"
                                  R"((?:\.row_block_(\d{1,4})_of_(\d{1,4}))?)"
                                  R"((?:\.column_block_(\d{1,4})_of_(\d{1,4}))?)"
                                  R"((\.weight.*))");
  std::smatch match;
  if (!std::regex_match(key, match, pattern)) return std::nullopt;
  const auto number = [&](size_t group, int otherwise) {
    return match[group].matched ? std::stoi(match[group]) : otherwise;
  };
  return TableTensorKey{.block = {.table = match[1],
                                  .row_block = number(2, 0),
                                  .row_blocks = number(3, 1),
                                  .column_block = number(4, 0),
                                  .column_blocks = number(5, 1)},
                        .rest = match[6]};
}

}  // namespace renzan
