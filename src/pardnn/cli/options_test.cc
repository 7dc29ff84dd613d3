// Options in every form that people type, and what is said of mistakes.
#include "pardnn/cli/options.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/cli/commands.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/pdg_reader.h"

using namespace pardnn;
using namespace pardnn::cli;

namespace {

struct Sample {
  std::string name, text;
  int switches = 0;
  std::vector<Option> table() {
    return {{"-n, --name", "NAME", "of it", [this](std::string_view value) { name = value; }},
            {"--text", "TEXT", "in it", [this](std::string_view value) { text = value; }},
            {"--yes", "", "a switch", [this](std::string_view) { ++switches; }}};
  }
};

std::shared_ptr<const Graph> any_graph() { return read_pdg("pdg 1\nop a T 1\n", "g"); }

using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  Sample sample;
  try {
    parse_options(words, sample.table());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// Answer, messages and status of the whole program.
struct Ran {
  explicit Ran(const Words& words) {
    std::ostringstream out_stream, err_stream;
    Console console{out_stream, err_stream};
    status = run(words, console);
    out = out_stream.str();
    err = err_stream.str();
  }
  std::string out, err;
  int status;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_options)

BOOST_AUTO_TEST_CASE(options_stand_anywhere_among_the_words) {
  Sample sample;
  const Words rest =
      parse_options({"a", "--name", "x", "b", "--yes", "--text=y=z", "-"}, sample.table());
  BOOST_TEST(sample.name == "x");
  BOOST_TEST(sample.text == "y=z");
  BOOST_TEST(sample.switches == 1);
  BOOST_TEST((rest == Words{"a", "b", "-"}));
}

BOOST_AUTO_TEST_CASE(a_short_name_is_the_same_option) {
  Sample sample;
  parse_options({"-n", "x"}, sample.table());
  BOOST_TEST(sample.name == "x");
}

BOOST_AUTO_TEST_CASE(a_value_may_be_empty_or_look_like_an_option) {
  Sample sample;
  sample.name = "before";
  parse_options({"--name=", "--text", "--yes"}, sample.table());
  BOOST_TEST(sample.name == "");
  BOOST_TEST(sample.text == "--yes");
  BOOST_TEST(sample.switches == 0);
}

BOOST_AUTO_TEST_CASE(two_dashes_end_the_options) {
  Sample sample;
  const Words rest = parse_options({"--yes", "--", "--yes", "--unknown"}, sample.table());
  BOOST_TEST(sample.switches == 1);
  BOOST_TEST((rest == Words{"--yes", "--unknown"}));
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  BOOST_TEST(refusal({"--nmae", "x"}) ==
             "found the option --nmae, which there is not; is --name meant?");
  BOOST_TEST(refusal({"--zoom"}) == "found the option --zoom, which there is not");
  BOOST_TEST(refusal({"--name"}) == "--name: found nothing after it, expected NAME");
  BOOST_TEST(refusal({"--yes=1"}) == "--yes: found a value, expected none");
}

BOOST_AUTO_TEST_CASE(the_nearest_word_is_at_most_two_letters_off) {
  BOOST_TEST(nearest("pln", {"plan", "check"}) == "plan");
  BOOST_TEST(nearest("chekc", {"plan", "check"}) == "check");
  BOOST_TEST(nearest("train", {"plan", "check"}) == "");
}

BOOST_AUTO_TEST_CASE(machine_options_state_a_machine) {
  MachineOptions options;
  parse_options({"--devices", "3", "--memory", "1KiB", "--bandwidth", "2GB/s", "--overhead", "1us",
                 "--latency", "4ns"},
                options.table());
  const Machine machine = options.machine(*any_graph());
  BOOST_REQUIRE(machine.devices.size() == 3);
  BOOST_TEST(machine.devices[DeviceId{2}].capacity_bytes == 1024);
  BOOST_TEST(machine.link(DeviceId{0}, DeviceId{2})->bytes_per_second == 2'000'000'000);
  BOOST_TEST(machine.link(DeviceId{0}, DeviceId{2})->overhead_ns == 1'000);
  BOOST_TEST(machine.link(DeviceId{0}, DeviceId{2})->latency_ns == 4);
}

BOOST_AUTO_TEST_CASE(devices_are_of_the_kind_that_the_graph_has_costs_for) {
  MachineOptions options;
  parse_options({"--memory", "1KiB"}, options.table());
  const auto kind_for = [&](const char* graph) {
    return options.machine(*read_pdg(graph, "g")).devices[DeviceId{0}].kind;
  };
  BOOST_TEST(kind_for("pdg 1\nop a T 1\n") == "any");
  BOOST_TEST(kind_for("pdg 1\nkind tpu\nop a T 1\n") == "tpu");
  BOOST_TEST(kind_for("pdg 1\nkind gpu cpu\nop a T 1\n") == "any");
}

BOOST_AUTO_TEST_CASE(memory_of_each_device_says_how_many_there_are) {
  MachineOptions options;
  parse_options({"--memory", "1KiB,2KiB"}, options.table());
  BOOST_TEST(options.machine(*any_graph()).devices[DeviceId{1}].capacity_bytes == 2048);
}

BOOST_AUTO_TEST_CASE(rule_options_state_rules) {
  RuleOptions options;
  parse_options({"--sequence", "fifo", "--contention", "off", "--margin", "30"}, options.table());
  BOOST_TEST((options.rules ==
              Rules{.dispatch = Dispatch::kFifo, .contention = false, .margin_per_mille = 30}));
  RuleOptions others;
  parse_options({"--sequence", "given", "--guarantee", "any-timing", "--pin", "a=b=d1"},
                others.table());
  BOOST_TEST((others.rules == Rules{.given_order = true, .any_timing = true}));
  BOOST_TEST((others.pins.front() == std::pair<std::string, std::string>{"a=b", "d1"}));
}

BOOST_AUTO_TEST_CASE(messages_go_to_err_and_name_the_word) {
  const Ran ran({"info"});
  BOOST_TEST(ran.status == kBadUsage);
  BOOST_TEST(ran.out == "");
  BOOST_TEST(ran.err == "pardnn info: found 0 graphs, expected one (see pardnn info --help)\n");
}

BOOST_AUTO_TEST_CASE(every_word_has_a_help_with_an_example) {
  for (const Command& command : commands()) {
    const Ran ran({std::string(command.word), "--help"});
    BOOST_TEST(ran.status == kDone);
    BOOST_TEST(ran.err == "");
    BOOST_TEST(ran.out.starts_with("usage: pardnn " + std::string(command.word)), command.word);
    BOOST_TEST(ran.out.find("example: pardnn ") != std::string::npos, command.word);
  }
}

BOOST_AUTO_TEST_SUITE_END()
