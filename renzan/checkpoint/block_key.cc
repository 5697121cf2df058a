#include "renzan/checkpoint/block_key.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

bool TakeWord(std::string_view word, std::string_view* text) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

bool TakeNumber(std::string_view* text, int* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || *number < 0) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

// ".row_block_3_of_8" if it is there. False for one without numbers.
bool TakeBlock(std::string_view kind, std::string_view* text, int* block, int* blocks) {
  if (!TakeWord(kind, text)) return true;
  return TakeNumber(text, block) && TakeWord("_of_", text) && TakeNumber(text, blocks);
}

}  // namespace

std::string BlockKey::FileStem() const {
  // Leaves room for the numbers of any block, an ending, and the prefix of files in a store.
  constexpr size_t kMaxTableBytes = 128;
  BlockKey bounded = *this;
  bounded.table = BoundedFileName(table, kMaxTableBytes);
  return "table." + bounded.Name();
}

std::string BlockKey::Name() const {
  std::string name = table;
  if (row_blocks > 1) name += fmt::format(".row_block_{}_of_{}", row_block, row_blocks);
  if (column_blocks > 1) name += fmt::format(".column_block_{}_of_{}", column_block, column_blocks);
  return name;
}

std::optional<TableTensorKey> ParseTableTensorKey(const std::string& key) {
  std::string_view text = key;
  TableTensorKey parts;
  BlockKey& block = parts.block;
  if (!TakeWord("embedding.", &text)) return std::nullopt;
  block.table = text.substr(0, text.find('.'));
  text.remove_prefix(block.table.size());
  if (block.table.empty() ||
      !TakeBlock(".row_block_", &text, &block.row_block, &block.row_blocks) ||
      !TakeBlock(".column_block_", &text, &block.column_block, &block.column_blocks) ||
      !text.starts_with(".weight"))
    return std::nullopt;
  parts.rest = text;
  return parts;
}

}  // namespace renzan
