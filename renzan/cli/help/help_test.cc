#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "renzan/cli/help/completion.h"
#include "renzan/cli/help/help_formatter.h"
#include "renzan/cli/help/man_page.h"
#include "renzan/cli/help/unknown_word.h"
#include "renzan/cli/help/verb_help.h"
#include "renzan/cli/text/one_of.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// renzan train [--workers INT] [--backend auto|gloo] config, renzan data import, and a hidden verb.
class Help : public ::testing::Test {
 protected:
  Help() {
    app_.require_subcommand(1);
    app_.footer("Exit codes: 0 done.");
    CLI::App* train = app_.add_subcommand("train", "Train a model")->group("Training");
    train->add_option("config", config_, "YAML's own .file")->required();
    train->add_option("-w,--workers", workers_, "Number of workers")->capture_default_str();
    train->add_option("--backend", backend_, "Which")->check(OneOf({"auto", "gloo"}));
    train->add_flag("--resume", resume_, "Resume");
    train->add_option("--secret", config_)->group("");
    train->footer(".first line\nsecond\nExamples:\n  renzan train a.yaml\n    --resume");
    CLI::App* data = app_.add_subcommand("data", "Datasets")->group("Data");
    data->require_subcommand(1);
    data->add_subcommand("import", "Import files")->footer("Example: renzan data import x");
    app_.add_subcommand("hidden", "Not shown")->group("");
  }

  // The message for a command line that cannot be parsed.
  std::string Unknown(const std::vector<std::string>& words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    EXPECT_THROW(app_.parse(reversed), CLI::ParseError);
    const auto dashes = std::find(words.begin(), words.end(), "--");
    return DescribeParseFailure(app_, {dashes == words.end() ? dashes : dashes + 1, words.end()});
  }

  CLI::App app_{"Trains", "renzan"};
  std::string config_, backend_;
  int workers_ = 1;
  bool resume_ = false;
};

TEST_F(Help, DescribesTheCommandLine) {
  const VerbHelp program = DescribeVerbs(app_);
  ASSERT_EQ(program.verbs.size(), 2U);
  EXPECT_TRUE(program.needs_verb);
  EXPECT_EQ(program.notes, "Exit codes: 0 done.");
  const VerbHelp& train = program.verbs[0];
  EXPECT_EQ(train.path, "renzan train");
  EXPECT_EQ(train.group, "Training");
  EXPECT_EQ(train.notes, ".first line\nsecond");
  EXPECT_THAT(train.examples, ElementsAre("renzan train a.yaml", "  --resume"));
  ASSERT_EQ(train.arguments.size(), 1U);
  EXPECT_EQ(train.arguments[0].argument, "config");
  EXPECT_TRUE(train.arguments[0].required);
  ASSERT_EQ(train.options.size(), 4U);  // --help too
  EXPECT_THAT(train.options[1].names, ElementsAre("-w", "--workers"));
  EXPECT_EQ(train.options[1].value, "INT");
  EXPECT_EQ(train.options[1].default_text, "1");
  EXPECT_THAT(train.options[2].choices, ElementsAre("auto", "gloo"));
  EXPECT_EQ(train.options[3].value, "");
  EXPECT_THAT(train.options[3].choices, IsEmpty());
  EXPECT_THAT(program.verbs[1].verbs[0].examples, ElementsAre("renzan data import x"));
}

TEST_F(Help, AnOptionThatIsRepeatedTakesOneValueEachTime) {
  std::vector<std::string> values;
  UseHelpFormatter(app_);
  app_.add_option("--set", values, "One")->allow_extra_args(false);
  app_.add_option("--files", values, "Several");
  EXPECT_THAT(app_.help(), HasSubstr("--set TEXT  "));
  EXPECT_THAT(app_.help(), HasSubstr("--files TEXT ..."));
}

TEST_F(Help, AMisspeltWordNamesTheNearest) {
  EXPECT_EQ(Unknown({"trian", "x"}),
            "renzan has no verb 'trian': did you mean 'train'? (`renzan --help` lists them)");
  EXPECT_EQ(Unknown({"data", "imprt"}),
            "renzan data has no verb 'imprt': did you mean 'import'? (`renzan data --help` lists "
            "them)");
  EXPECT_EQ(Unknown({"train", "x", "--workrs=2"}),
            "renzan train has no flag '--workrs': did you mean '--workers'? (`renzan train --help` "
            "lists them)");
  EXPECT_EQ(Unknown({"train", "--workrs", "2", "--", "x"}),
            "renzan train has no flag '--workrs': did you mean '--workers'? (`renzan train --help` "
            "lists them)");
  EXPECT_EQ(Unknown({"train", "--resme"}),
            "renzan train has no flag '--resme': did you mean '--resume'? (`renzan train --help` "
            "lists them)");
  EXPECT_EQ(Unknown({"frobnicate"}),
            "renzan has no verb 'frobnicate' (`renzan --help` lists them)");
  EXPECT_EQ(Unknown({"hiden"}), "renzan has no verb 'hiden' (`renzan --help` lists them)");
  EXPECT_EQ(Unknown({"train", "x", "y"}),
            "renzan train does not expect 'y' (`renzan train --help` shows the arguments)");
}

TEST_F(Help, WordsAfterDashesBelongToTheVerb) {
  std::vector<std::string> words;
  app_.add_subcommand("submit", "Submit")->add_option("job", words, "A file, or a command");
  const std::string both =
      "renzan submit takes words before -- or after it, not both: 'hostname' is "
      "too much (`renzan submit --help` shows the arguments)";
  EXPECT_EQ(Unknown({"submit", "job.yaml", "--", "hostname"}), both);
  EXPECT_EQ(Unknown({"submit", "job.yaml", "--", "hostname", "-f"}), both);
  EXPECT_EQ(Unknown({"train", "x", "--", "y"}),
            "renzan train does not expect 'y' (`renzan train --help` shows the arguments)");
  EXPECT_EQ(Unknown({"--", "y"}), "renzan has no verb 'y' (`renzan --help` lists them)");
  EXPECT_NO_THROW(app_.parse("submit -- hostname -f"));
}

TEST_F(Help, AnotherWordForAVerbNamesIt) {
  // Below another verb, longer and shorter; and what is nothing like a verb.
  EXPECT_THAT(Unknown({"import"}), HasSubstr("did you mean 'data import'?"));
  EXPECT_THAT(Unknown({"training"}), HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(Unknown({"trai"}), HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(Unknown({"drain"}), HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(Unknown({"grids"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(Unknown({"d"}), Not(HasSubstr("did you mean")));
}

TEST_F(Help, AnUnknownChoiceNamesTheOthersAndTheNearest) {
  const auto error = [&](const std::string& word) -> std::string {
    try {
      app_.parse(std::vector<std::string>{word, "--backend", "x", "train"});
    } catch (const CLI::ParseError& unknown) {
      return unknown.what();
    }
    return "";
  };
  EXPECT_EQ(error("goo"), "--backend: 'goo' is not one of auto, gloo; did you mean 'gloo'?");
  EXPECT_EQ(error("nccl"), "--backend: 'nccl' is not one of auto, gloo");
  EXPECT_EQ(error("gloo"), "");
}

TEST_F(Help, ValidWordsAreNotUnknown) {
  EXPECT_EQ(Unknown({"train", "--workers=many", "--", "x"}), "");
  EXPECT_EQ(Unknown({"train"}), "");
  EXPECT_EQ(&ChosenVerb(app_), app_.get_subcommand("train"));
}

TEST_F(Help, AManPageHasTheSameText) {
  const VerbHelp program = DescribeVerbs(app_);
  const std::string page = ManPage(program.verbs[0], program, "1.2");
  EXPECT_EQ(page,
            ".TH RENZAN\\-TRAIN 1 \"\" \"renzan 1.2\" \"renzan manual\"\n"
            ".SH NAME\nrenzan\\-train \\- Train a model\n"
            ".SH SYNOPSIS\n\\fBrenzan train\\fR [\\fIOPTIONS\\fR] \\fIconfig\\fR\n"
            ".SH DESCRIPTION\n\\&.first line\nsecond\n"
            ".SH ARGUMENTS\n.TP\n\\fIconfig\\fR\nYAML\\(aqs own .file [required]\n"
            ".SH OPTIONS\n"
            ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint this help message and exit\n"
            ".TP\n\\fB\\-w\\fR, \\fB\\-\\-workers\\fR \\fIINT\\fR\nNumber of workers [default: 1]\n"
            ".TP\n\\fB\\-\\-backend\\fR \\fITEXT\\fR\nWhich (auto, gloo)\n"
            ".TP\n\\fB\\-\\-resume\\fR\nResume\n"
            ".SH EXAMPLES\n.nf\nrenzan train a.yaml\n  \\-\\-resume\n.fi\n"
            ".SH EXIT STATUS\nSee \\fBrenzan\\fR(1), which lists the exit codes of all verbs.\n"
            ".SH SEE ALSO\n\\fBrenzan\\fR(1)\n");
  const std::string root = ManPage(program, program, "1.2");
  EXPECT_THAT(root, HasSubstr(".SS Training\n.TP\n\\fBrenzan\\-train\\fR(1)\nTrain a model\n"));
  EXPECT_THAT(root, HasSubstr("Exit codes: 0 done."));
  EXPECT_THAT(root, Not(HasSubstr("hidden")));
  EXPECT_EQ(ManPageName(program.verbs[1].verbs[0]), "renzan-data-import");
}

TEST_F(Help, CompletionsNameVerbsFlagsAndChoices) {
  const VerbHelp program = DescribeVerbs(app_);
  const std::string bash = BashCompletion(program);
  EXPECT_THAT(bash, HasSubstr("'renzan') verbs='train data' flags='-h --help' takes='' ;;"));
  EXPECT_THAT(bash, HasSubstr("'renzan train --backend') echo 'auto gloo' ;;"));
  const std::string zsh = ZshCompletion(program);
  EXPECT_THAT(zsh, HasSubstr("'--backend[Which]:TEXT:(auto gloo)'"));
  EXPECT_THAT(zsh, HasSubstr("':config:_files'"));
  EXPECT_THAT(zsh, HasSubstr("import) _renzan_data_import ;;"));
}

}  // namespace
}  // namespace renzan
