#include <fmt/format.h>

#include <algorithm>

#include "renzan/cli/help/completion.h"

namespace renzan {
namespace {

// Escapes text inside single quotes, where the characters in `special` have a meaning for zsh's
// completion.
std::string Escape(const std::string& text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c == '\'' ? std::string("'\\''") : std::string(1, c == '\n' ? ' ' : c);
  }
  return escaped;
}

std::string FunctionName(const VerbHelp& verb) {
  std::string name = "_" + verb.path;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

// "'*--set[Override one key]:TEXT:_files'", one line for each name of an option.
std::string OptionSpecs(const OptionHelp& option) {
  std::string text;
  for (const std::string& name : option.names) {
    std::string value;
    if (!option.choices.empty())
      value = fmt::format(":{}:({})", Escape(option.value, ":\\"), fmt::join(option.choices, " "));
    else if (!option.value.empty())
      value = fmt::format(":{}:_files", Escape(option.value, ":\\"));
    text += fmt::format("    '{}{}[{}]{}' \\\n", option.repeated ? "*" : "", name,
                        Escape(option.text, "[]:\\"), value);
  }
  return text;
}

std::string ArgumentSpecs(const VerbHelp& verb) {
  std::string text;
  for (const OptionHelp& argument : verb.arguments)
    text += fmt::format("    '{}:{}:_files' \\\n", argument.repeated ? "*" : "",
                        Escape(argument.argument, ":\\"));
  return text;
}

std::string Function(const VerbHelp& verb, const VerbHelp& program) {
  std::string text = fmt::format("{}() {{\n", FunctionName(verb));
  std::string options;
  for (const OptionHelp& option : verb.options) options += OptionSpecs(option);
  if (verb.verbs.empty()) {
    text += fmt::format("  _arguments \\\n{}{}    && return\n}}\n\n", options, ArgumentSpecs(verb));
    return text;
  }
  text += "  local state\n  local -a verbs=(\n";
  for (const VerbHelp& sub : verb.verbs)
    text += fmt::format("    '{}:{}'\n", sub.name, Escape(sub.text, ":\\"));
  text += fmt::format(
      "  )\n  _arguments -C \\\n{}    '1: :->verb' '*:: :->rest' && return\n"
      "  case $state in\n    verb) _describe -t verbs verb verbs ;;\n"
      "    rest)\n      case $words[1] in\n",
      options);
  for (const VerbHelp& sub : verb.verbs) {
    // The arguments of `help` are completed as verbs.
    const bool is_help = sub.path == program.path + " help";
    text += fmt::format("        {}) {} ;;\n", sub.name, FunctionName(is_help ? verb : sub));
  }
  text += "      esac ;;\n  esac\n}\n\n";
  for (const VerbHelp& sub : verb.verbs) text += Function(sub, program);
  return text;
}

}  // namespace

std::string ZshCompletion(const VerbHelp& program) {
  return fmt::format(
      "#compdef {0}\n# Completion of {0} in zsh, made by `{0} completion zsh`.\n\n{1}"
      "# Called by the completion system, or sourced.\n"
      "if [[ $funcstack[1] == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
      program.name, Function(program, program));
}

}  // namespace renzan
