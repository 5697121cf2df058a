#include "renzan/cli/help/unknown_word.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/cli/help/verb_help.h"

namespace renzan {
namespace {

std::string Suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(word, candidates);
  return nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest);
}

}  // namespace

std::string DescribeUnknownWord(const CLI::App& verb, const std::string& word) {
  const VerbHelp help = DescribeVerbs(verb);
  const std::string& path = help.path;
  std::vector<std::string> candidates;
  if (word.starts_with("-")) {
    const std::string flag = word.substr(0, word.find('='));
    for (const OptionHelp& option : help.options)
      candidates.insert(candidates.end(), option.names.begin(), option.names.end());
    return fmt::format("{} has no flag '{}'{} (`{} --help` lists them)", path, flag,
                       Suggestion(flag, candidates), path);
  }
  if (help.verbs.empty())
    return fmt::format("{} does not expect '{}' (`{} --help` shows the arguments)", path, word,
                       path);
  for (const VerbHelp& sub : help.verbs) candidates.push_back(sub.name);
  return fmt::format("{} has no verb '{}'{} (`{} --help` lists them)", path, word,
                     Suggestion(word, candidates), path);
}

const CLI::App& ChosenVerb(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : ChosenVerb(*chosen.back());
}

std::string DescribeUnknownWord(const CLI::App& app) {
  std::string unknown;
  for (const CLI::App* verb = &app;;) {
    std::vector<std::string> left = verb->remaining();
    std::erase(left, "--");  // CLI11 keeps it there
    // Prefer a verb's unknown flag to the words left over above it: CLI11 takes the value of an
    // unknown flag for an argument, and what follows "--" for another verb.
    if (!left.empty() && (unknown.empty() || left.front().starts_with("-")))
      unknown = DescribeUnknownWord(*verb, left.front());
    const std::vector<CLI::App*> chosen = verb->get_subcommands();
    if (chosen.empty()) return unknown;
    verb = chosen.back();
  }
}

}  // namespace renzan
