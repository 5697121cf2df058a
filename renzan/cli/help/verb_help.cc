#include "renzan/cli/help/verb_help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace renzan {
namespace {

// CLI11 appends the checks on a value: "TEXT:{criteo,csv}", "INT:POSITIVE".
void DescribeValue(const std::string& type, OptionHelp& help) {
  const size_t colon = type.find(':');
  help.value = type.substr(0, colon);
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return;
  std::string word;
  for (const char c : type.substr(open + 1, close - open - 1) + ",") {
    if (c != ',') {
      word += c;
      continue;
    }
    help.choices.push_back(std::move(word));
    word.clear();
  }
}

OptionHelp DescribeOption(const CLI::Option& option) {
  OptionHelp help;
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  if (option.get_positional()) help.argument = option.get_name(/*positional=*/true);
  if (option.get_items_expected_max() > 0) DescribeValue(option.get_type_name(), help);
  help.text = option.get_description();
  help.default_text = option.get_default_str();
  help.required = option.get_required();
  help.repeated = option.get_items_expected_max() > 1;
  return help;
}

// "Text ...\nExample: renzan jobs" or "...\nExamples:\n  renzan jobs\n  renzan job show 3".
void DescribeFooter(const std::string& footer, VerbHelp& verb) {
  size_t begin = footer.find("Example");
  while (begin != std::string::npos && begin > 0 && footer[begin - 1] != '\n')
    begin = footer.find("Example", begin + 1);
  verb.notes = footer.substr(0, begin);
  while (verb.notes.ends_with('\n')) verb.notes.pop_back();
  if (begin == std::string::npos) return;
  std::string_view rest = std::string_view(footer).substr(footer.find(':', begin) + 1);
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min({line.find_first_not_of(' '), line.size(), size_t{2}}));
    if (!line.empty()) verb.examples.emplace_back(line);
  }
}

}  // namespace

std::string VerbPath(const CLI::App& app) {
  const CLI::App* above = app.get_parent();
  return (above == nullptr ? "" : VerbPath(*above) + " ") + app.get_name();
}

VerbHelp DescribeVerbs(const CLI::App& app) {
  VerbHelp verb{.path = VerbPath(app),
                .name = app.get_name(),
                .group = app.get_group(),
                .text = app.get_description(),
                .notes = {},
                .examples = {},
                .options = {},
                .arguments = {},
                .verbs = {},
                .needs_verb = app.get_require_subcommand_min() > 0};
  DescribeFooter(app.get_footer(), verb);
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
    OptionHelp help = DescribeOption(*option);
    (help.names.empty() ? verb.arguments : verb.options).push_back(std::move(help));
  }
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); }))
    verb.verbs.push_back(DescribeVerbs(*sub));
  return verb;
}

}  // namespace renzan
