#include "renzan/cli/help/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace renzan {
namespace {

// Escapes text so that troff prints it unchanged. Hyphens must stay ASCII so that they can be
// copied, and a line must not begin with a control character.
std::string Escape(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Bold(std::string_view text) { return "\\fB" + Escape(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Escape(text) + "\\fR"; }

std::string Section(const char* title) { return fmt::format(".SH {}\n", title); }

// "\fB\-o\fR, \fB\-\-output\fR \fIPATH\fR"
std::string OptionTag(const OptionHelp& option) {
  std::string tag;
  for (const std::string& name : option.names) tag += (tag.empty() ? "" : ", ") + Bold(name);
  if (!option.value.empty()) tag += " " + Italic(option.value);
  return tag;
}

std::string OptionText(const OptionHelp& option) {
  std::string text = option.text;
  if (!option.choices.empty()) text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (!option.default_text.empty()) text += fmt::format(" [default: {}]", option.default_text);
  if (option.required) text += " [required]";
  // troff paragraphs must not be empty.
  return text.empty() ? "\\&" : Escape(text);
}

std::string Options(const VerbHelp& verb) {
  std::string text;
  if (!verb.arguments.empty()) text += Section("ARGUMENTS");
  for (const OptionHelp& argument : verb.arguments)
    text += fmt::format(".TP\n{}\n{}\n", Italic(argument.argument), OptionText(argument));
  if (!verb.options.empty()) text += Section("OPTIONS");
  for (const OptionHelp& option : verb.options)
    text += fmt::format(".TP\n{}\n{}\n", OptionTag(option), OptionText(option));
  return text;
}

std::string Synopsis(const VerbHelp& verb) {
  std::string text = Section("SYNOPSIS") + Bold(verb.path);
  if (!verb.options.empty()) text += " [\\fIOPTIONS\\fR]";
  for (const OptionHelp& argument : verb.arguments) {
    const std::string name = Italic(argument.argument) + (argument.repeated ? " ..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  if (!verb.verbs.empty()) text += verb.needs_verb ? " \\fIVERB\\fR" : " [\\fIVERB\\fR]";
  return text + "\n";
}

// The sub-verbs of `verb` by group, groups in order of first appearance.
std::string Verbs(const VerbHelp& verb) {
  std::vector<std::string> groups;
  for (const VerbHelp& sub : verb.verbs)
    if (std::find(groups.begin(), groups.end(), sub.group) == groups.end())
      groups.push_back(sub.group);
  std::string text;
  if (!verb.verbs.empty()) text += Section("VERBS");
  for (const std::string& group : groups) {
    if (groups.size() > 1) text += fmt::format(".SS {}\n", Escape(group));
    for (const VerbHelp& sub : verb.verbs)
      if (sub.group == group)
        text += fmt::format(".TP\n{}(1)\n{}\n", Bold(ManPageName(sub)), Escape(sub.text));
  }
  return text;
}

std::string Examples(const VerbHelp& verb) {
  if (verb.examples.empty()) return "";
  std::string text = Section("EXAMPLES") + ".nf\n";
  for (const std::string& line : verb.examples) text += Escape(line) + "\n";
  return text + ".fi\n";
}

// The parent page and the sub-pages.
std::string SeeAlso(const VerbHelp& verb, const VerbHelp& program) {
  if (verb.path == program.path) return "";
  const std::string above = verb.path.substr(0, verb.path.rfind(' '));
  std::string text = Section("SEE ALSO") + Bold(program.name) + "(1)";
  if (above != program.path) text += ", " + Bold(ManPageName({.path = above})) + "(1)";
  return text + "\n";
}

}  // namespace

std::string ManPageName(const VerbHelp& verb) {
  std::string name = verb.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string ManPage(const VerbHelp& verb, const VerbHelp& program, const std::string& version) {
  std::string title = ManPageName(verb);
  std::string upper = title;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"{} manual\"\n", Escape(upper),
                                 program.name, Escape(version), program.name);
  text += fmt::format("{}{} \\- {}\n", Section("NAME"), Escape(title), Escape(verb.text));
  text += Synopsis(verb);
  if (!verb.notes.empty()) text += Section("DESCRIPTION") + Escape(verb.notes) + "\n";
  text += Options(verb) + Verbs(verb) + Examples(verb);
  if (verb.path != program.path)
    text +=
        fmt::format("{}{}\n", Section("EXIT STATUS"),
                    "See " + Bold(program.name) + "(1), which lists the exit codes of all verbs.");
  return text + SeeAlso(verb, program);
}

}  // namespace renzan
