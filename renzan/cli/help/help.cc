// renzan help [VERB...], renzan completion bash|zsh

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/help/completion.h"
#include "renzan/cli/help/man_page.h"
#include "renzan/cli/help/unknown_word.h"
#include "renzan/cli/help/verb_help.h"
#include "renzan/cli/help/verbs.h"
#include "renzan/cli/text/one_of.h"

namespace renzan {
namespace {

struct HelpFlags {
  std::vector<std::string> words;
  bool man = false;
  std::string write_pages;
};

void WriteManPages(const VerbHelp& verb, const VerbHelp& program, const std::string& directory) {
  WriteFileAtomically(directory + "/" + ManPageName(verb) + ".1",
                      ManPage(verb, program, RENZAN_VERSION));
  for (const VerbHelp& sub : verb.verbs) WriteManPages(sub, program, directory);
}

// Writes the files that `cmake --install` installs: man1/*.1, bash/renzan and zsh/_renzan.
void WritePages(const VerbHelp& program, const std::string& directory) {
  for (const char* part : {"/man1", "/bash", "/zsh"}) CreateDirectories(directory + part);
  WriteManPages(program, program, directory + "/man1");
  WriteFileAtomically(directory + "/bash/" + program.name, BashCompletion(program));
  WriteFileAtomically(directory + "/zsh/_" + program.name, ZshCompletion(program));
}

const CLI::App& FindVerb(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* verb = &program;
  for (const std::string& word : words) {
    const auto below =
        verb->get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
    if (below.empty()) Fail(ErrorCode::kUsage, "{}", DescribeUnknownWord(*verb, word));
    verb = below.front();
  }
  return *verb;
}

void Help(const CLI::App& app, const HelpFlags& flags) {
  const VerbHelp program = DescribeVerbs(app);
  if (!flags.write_pages.empty()) return WritePages(program, flags.write_pages);
  const CLI::App& verb = FindVerb(app, flags.words);
  fmt::print("{}", flags.man ? ManPage(DescribeVerbs(verb), program, RENZAN_VERSION)
                             : verb.get_formatter()->make_help(&verb, VerbPath(verb),
                                                               CLI::AppFormatMode::Normal));
}

}  // namespace

void AddHelpVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("help", "Show help for the program or one verb");
  const auto flags = std::make_shared<HelpFlags>();
  verb->add_option("verb", flags->words, "The verb as on the command line: data import");
  verb->add_flag("--man", flags->man, "Print the manual page in man(7) format");
  verb->add_option("--write-pages", flags->write_pages)->group("");  // for cmake --install
  verb->footer(
      "Examples:\n"
      "  renzan help data import\n"
      "  renzan help --man train | man -l -");
  verb->callback([&app, flags] { Help(app, *flags); });
}

void AddCompletionVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("completion", "Print a shell completion script");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash or zsh")->required()->check(OneOf({"bash", "zsh"}));
  verb->footer(
      "`cmake --install` and the Debian package install both in the standard places.\n"
      "Examples:\n"
      "  source <(renzan completion bash)\n"
      "  renzan completion zsh > ~/.zfunc/_renzan");
  verb->callback([&app, shell] {
    const VerbHelp program = DescribeVerbs(app);
    fmt::print("{}", *shell == "bash" ? BashCompletion(program) : ZshCompletion(program));
  });
}

}  // namespace renzan
