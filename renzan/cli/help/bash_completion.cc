#include <fmt/format.h>

#include "renzan/cli/help/completion.h"

namespace renzan {
namespace {

// Inside single quotes only the single quote itself is special.
std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// What may follow `verb` and each of its sub-verbs, as branches of a case.
std::string Branches(const VerbHelp& verb) {
  std::vector<std::string> verbs, flags, takes;
  for (const VerbHelp& sub : verb.verbs) verbs.push_back(sub.name);
  for (const OptionHelp& option : verb.options) {
    flags.insert(flags.end(), option.names.begin(), option.names.end());
    if (!option.value.empty()) takes.insert(takes.end(), option.names.begin(), option.names.end());
  }
  std::string text = fmt::format("    {}) verbs={} flags={} takes={} ;;\n", Quote(verb.path),
                                 Quote(fmt::format("{}", fmt::join(verbs, " "))),
                                 Quote(fmt::format("{}", fmt::join(flags, " "))),
                                 Quote(fmt::format("{}", fmt::join(takes, " "))));
  for (const VerbHelp& sub : verb.verbs) text += Branches(sub);
  return text;
}

std::string ChoiceBranches(const VerbHelp& verb) {
  std::string text;
  for (const OptionHelp& option : verb.options)
    for (const std::string& name : option.names)
      if (!option.choices.empty())
        text += fmt::format("    {}) echo {} ;;\n", Quote(verb.path + " " + name),
                            Quote(fmt::format("{}", fmt::join(option.choices, " "))));
  for (const VerbHelp& sub : verb.verbs) text += ChoiceBranches(sub);
  return text;
}

// Follows the words before the cursor from verb to verb. COMPREPLY stays empty where files are
// expected: that is bash's default (-o default).
constexpr const char* kFunction = R"bash(
_@() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local path=@ verbs flags takes i word
  COMPREPLY=()
  _@_verb "$path"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      return
    elif [[ " $takes " == *" $word "* ]]; then
      ((i++))
    elif [[ "$path $word" != '@ help' && " $verbs " == *" $word "* ]]; then
      path="$path $word"
      _@_verb "$path"
    fi
  done
  if [[ " $takes " == *" $prev "* ]]; then
    COMPREPLY=($(compgen -W "$(_@_choices "$path $prev")" -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$verbs" -- "$cur"))
  fi
}
complete -o default -F _@ @
)bash";

}  // namespace

std::string BashCompletion(const VerbHelp& program) {
  std::string function;
  for (const char c : std::string_view(kFunction))
    function += c == '@' ? program.name : std::string(1, c);
  return fmt::format(
      "# Completion of {0} in bash, made by `{0} completion bash`.\n"
      "_{0}_verb() {{\n  verbs= flags= takes=\n  case $1 in\n{1}  esac\n}}\n\n"
      "_{0}_choices() {{\n  case $1 in\n{2}  esac\n}}\n{3}",
      program.name, Branches(program), ChoiceBranches(program), function);
}

}  // namespace renzan
