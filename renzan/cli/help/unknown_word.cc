#include "renzan/cli/help/unknown_word.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/cli/help/verb_help.h"

namespace renzan {
namespace {

std::string Suggestion(const std::string& nearest) {
  return nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest);
}

bool TakesSettings(const VerbHelp& verb) {
  return std::any_of(verb.options.begin(), verb.options.end(), [](const OptionHelp& option) {
    return std::find(option.names.begin(), option.names.end(), "--set") != option.names.end();
  });
}

// The verb that `word`, which `verb` has not, may mean, or "": one below another ("import"), a
// misspelt one, or one that is a part of the word or has it as a part ("evaluate", "pred").
std::string MeantVerb(const VerbHelp& verb, const std::string& word) {
  std::vector<std::string> names;
  for (const VerbHelp& sub : verb.verbs) {
    names.push_back(sub.name);
    for (const VerbHelp& below : sub.verbs)
      if (below.name == word) return sub.name + " " + word;
  }
  if (const std::string nearest = NearestName(word, names); !nearest.empty()) return nearest;
  constexpr size_t kFewest = 4;  // letters that say enough
  for (const std::string& name : names)
    if (std::min(name.size(), word.size()) >= kFewest &&
        (word.starts_with(name) || name.starts_with(word)))
      return name;
  return "";
}

}  // namespace

std::string DescribeUnknownWord(const CLI::App& verb, const std::string& word) {
  const VerbHelp help = DescribeVerbs(verb);
  const std::string& path = help.path;
  if (word.starts_with("-")) {
    std::vector<std::string> candidates;
    const std::string flag = word.substr(0, word.find('='));
    for (const OptionHelp& option : help.options)
      candidates.insert(candidates.end(), option.names.begin(), option.names.end());
    return fmt::format("{} has no flag '{}'{} (`{} --help` lists them)", path, flag,
                       Suggestion(NearestName(flag, candidates)), path);
  }
  if (help.verbs.empty())
    return fmt::format("{} does not expect '{}'{} (`{} --help` shows the arguments)", path, word,
                       TakesSettings(help) && word.find('=') != std::string::npos
                           ? ": repeat --set before each key"
                           : "",
                       path);
  return fmt::format("{} has no verb '{}'{} (`{} --help` lists them)", path, word,
                     Suggestion(MeantVerb(help, word)), path);
}

namespace {

// CLI11 gives the words after "--" to the program if the verb's own arguments are complete.
std::string DescribeWordAfterDashes(const CLI::App& verb, const std::string& word) {
  const VerbHelp help = DescribeVerbs(verb);
  if (help.arguments.empty() || !help.arguments.back().repeated)
    return DescribeUnknownWord(verb, word);
  return fmt::format(
      "{0} takes words before -- or after it, not both: '{1}' is too much "
      "(`{0} --help` shows the arguments)",
      help.path, word);
}

}  // namespace

const CLI::App& ChosenVerb(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : ChosenVerb(*chosen.back());
}

std::string DescribeParseFailure(const CLI::App& app,
                                 const std::vector<std::string>& after_dashes) {
  std::string unknown;
  for (const CLI::App* verb = &app;;) {
    std::vector<std::string> left = verb->remaining();
    std::erase(left, "--");  // CLI11 keeps it there
    // Prefer a verb's unknown flag to the words left over above it: CLI11 takes the value of an
    // unknown flag for an argument, and what follows "--" for another verb.
    if (!left.empty() && (unknown.empty() || left.front().starts_with("-")))
      unknown = left == after_dashes ? DescribeWordAfterDashes(ChosenVerb(*verb), left.front())
                                     : DescribeUnknownWord(*verb, left.front());
    const std::vector<CLI::App*> chosen = verb->get_subcommands();
    if (chosen.empty()) return unknown;
    verb = chosen.back();
  }
}

}  // namespace renzan
