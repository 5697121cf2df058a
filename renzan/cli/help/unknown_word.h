#pragma once

// Messages for an unknown verb or flag, with the one that was probably meant. Pure functions.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace renzan {

// After a failed parse: a message about the first unknown word ("renzan has no verb 'trian': did
// you mean 'train'? ..."), or "" if all words are known. `after_dashes`: the words after "--".
std::string DescribeParseFailure(const CLI::App& app, const std::vector<std::string>& after_dashes);

// The message for `word`, which `verb` does not accept.
std::string DescribeUnknownWord(const CLI::App& verb, const std::string& word);

// The verb selected by the parsed words.
const CLI::App& ChosenVerb(const CLI::App& app);

}  // namespace renzan
