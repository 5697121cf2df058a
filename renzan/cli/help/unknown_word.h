#pragma once

// A verb or flag that does not exist, and the one that was probably meant. Pure.

#include <string>

namespace CLI {
class App;
}

namespace renzan {

// After a parse that failed: one sentence about the first word that nothing takes ("renzan has no
// verb 'trian': did you mean 'train'? ..."), or "" where every word was taken.
std::string DescribeUnknownWord(const CLI::App& app);

// The same where `verb` does not take `word`.
std::string DescribeUnknownWord(const CLI::App& verb, const std::string& word);

// The verb that the words that were taken have chosen.
const CLI::App& ChosenVerb(const CLI::App& app);

}  // namespace renzan
