// What people are told of one plan: summary, trace, and why it does not fit.
#include <algorithm>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"
#include "pardnn/partition/given.h"
#include "pardnn/report/explanation.h"
#include "pardnn/report/overflow.h"
#include "pardnn/report/summary.h"
#include "pardnn/report/trace.h"

using namespace pardnn;

namespace {

namespace json = boost::json;

// a [0,10) d0 - 500 bytes, [10,510) - b [513,533) d1; d0 also holds v and runs c [10,15)
constexpr const char* kGraph =
    "pdg 1\n"
    "var v 100 @g\n"
    "op a T 10 > 500 @g ws=60 name=first\n"
    "op b T 20 < a > 8*\n"
    "op c U 5 < !v ^a @g\n";

struct Planned {
  explicit Planned(std::int64_t capacity_bytes, Rules rules = {})
      : problem(read_pdg(kGraph, "g"),
                Machine::uniform({.capacity_bytes = {capacity_bytes, capacity_bytes},
                                  .bytes_per_second = 1'000'000'000,
                                  .latency_ns = 3,
                                  .reserve_bytes = 7}),
                rules) {
    Placement placement;
    placement.ops.assign(3, DeviceId{0});
    placement.ops[*problem.graph().find_op("b")] = DeviceId{1};
    placement.variables.assign(1, DeviceId{0});
    plan = plan_of(problem, placement, std::nullopt);
  }
  Problem problem;
  Plan plan;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<json::object> events_of(const std::string& trace, const std::string& phase) {
  std::vector<json::object> events;
  const json::value whole = json::parse(trace);
  for (const json::value& event : whole.at("traceEvents").as_array()) {
    if (event.at("ph").as_string() == phase) events.push_back(event.as_object());
  }
  return events;
}

// Microseconds with three digits as nanoseconds.
std::int64_t ns_of(const json::value& us) {
  return static_cast<std::int64_t>(us.to_number<double>() * 1'000 + 0.5);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_reports)

// b and c wait for a, and what one device does of them it does in turn: apart, 500 bytes cross, so
// the bound is 10 + 20 + 5; 533 / 35 is 1422.9 % above, rounded up 1423.
BOOST_AUTO_TEST_CASE(a_summary_says_how_far_the_step_is_from_the_bound) {
  const Planned planned(10'000);
  const std::string text = summary_text(planned.problem, planned.plan);
  BOOST_TEST(has(text, "step 533 ns, at most 1423 % above the best possible (35 ns)\n"), text);
  BOOST_TEST(has(text, "\nno plan is faster than one device with enough memory\n"), text);
  BOOST_TEST(has(text, "sent 500 B in 1 transfers"), text);
}

// p on d0 and q on d1: one device takes 30 + 16 of d0's time, or 33 + 20 of d1's.
std::string summary_of_two(const std::string& cost_of_q) {
  Machine machine = Machine::uniform({.capacity_bytes = {100, 100}, .kind = "x"});
  machine.devices[DeviceId{1}].kind = "y";
  const Problem problem(
      read_pdg("pdg 1\nkind x y\nop p T 30,33 > 1*\nop q T " + cost_of_q + " > 1*\n", "g"),
      machine);
  Placement placement;
  placement.ops.assign(2, DeviceId{0});
  placement.ops[*problem.graph().find_op("q")] = DeviceId{1};
  return summary_text(problem, plan_of(problem, placement, std::nullopt));
}

BOOST_AUTO_TEST_CASE(a_summary_says_what_several_devices_gain) {
  const std::string text = summary_of_two("16,20");
  BOOST_TEST(has(text, "\n1.53 times as fast as one device with enough memory\n"), text);
  // Where d0 may not do q, d1 is the one; 33 + 20 ns against 30.
  const std::string other = summary_of_two("-,20");
  BOOST_TEST(has(other, "\n1.76 times as fast"), other);
  // 40 ns on d1, against 30 + 1 on d0.
  const std::string slow = summary_of_two("1,40");
  BOOST_TEST(has(slow, "\nnot faster than one device with enough memory\n"), slow);
}

BOOST_AUTO_TEST_CASE(a_bound_that_is_met_is_the_best_possible) {
  BOOST_TEST(bound_text(30, 30) == "the best possible");
  BOOST_TEST(bound_text(30, 0) == "no bound is known");
  // 1 of 1000 more is 0.1 %, and the promise is `at most`.
  BOOST_TEST(has(bound_text(1'001, 1'000), "at most 1 % above"));
}

// Busy: d0 15 ns, d1 20 ns of 2 x 533: 35 / 1066 = 32 per mille.
BOOST_AUTO_TEST_CASE(work_is_counted_by_device) {
  const Planned planned(10'000);
  const auto work = device_work(planned.problem, planned.plan);
  BOOST_TEST(work[DeviceId{0}].ops == 2);
  BOOST_TEST(work[DeviceId{0}].busy_ns == 15);
  BOOST_TEST(work[DeviceId{0}].bytes_sent == 500);
  BOOST_TEST(work[DeviceId{1}].busy_ns == 20);
  BOOST_TEST(work[DeviceId{1}].bytes_sent == 0);
  BOOST_TEST(utilisation_per_mille(planned.problem, planned.plan) == 32);
}

BOOST_AUTO_TEST_CASE(a_summary_for_programs_has_every_number) {
  const Planned planned(10'000);
  const json::value summary =
      json::parse(summary_json(planned.problem, planned.plan, std::nullopt));
  BOOST_TEST(summary.at("fits").as_bool());
  BOOST_TEST(summary.at("step_ns").as_int64() == 533);
  BOOST_TEST(summary.at("bound_ns").as_int64() == 35);
  BOOST_TEST(summary.at("one_device_ns").as_int64() == 35);
  const json::value& d0 = summary.at("devices").as_array().at(0);
  // v and the reserve, a and its workspace: 100 + 7 + 500 + 60.
  BOOST_TEST(d0.at("peak_bytes").as_int64() == 667);
  BOOST_TEST(d0.at("limit_bytes").as_int64() == 10'000);
}

BOOST_AUTO_TEST_CASE(a_trace_has_a_span_per_op_and_transfer) {
  const Planned planned(10'000);
  const auto spans = events_of(trace_json(planned.problem, planned.plan), "X");
  BOOST_REQUIRE(spans.size() == 4);
  const auto span = [&](const std::string& name) {
    const auto found = std::find_if(spans.begin(), spans.end(), [&](const json::object& event) {
      return event.at("name").as_string() == name;
    });
    BOOST_REQUIRE(found != spans.end());
    return *found;
  };
  BOOST_TEST(ns_of(span("b").at("ts")) == 513);
  BOOST_TEST(ns_of(span("b").at("dur")) == 20);
  BOOST_TEST(ns_of(span("first").at("dur")) == 10);
  BOOST_TEST(span("first").at("cat").as_string() == "T");
  BOOST_TEST(ns_of(span("a:0").at("ts")) == 10);
  BOOST_TEST(ns_of(span("a:0").at("dur")) == 500);
  BOOST_TEST(span("a:0").at("args").at("bytes").as_int64() == 500);
  BOOST_TEST(span("a:0").at("args").at("arrives_ns").as_int64() == 513);
}

BOOST_AUTO_TEST_CASE(the_counters_of_a_trace_reach_the_peaks_and_end_at_nothing) {
  const Planned planned(10'000);
  const auto counters = events_of(trace_json(planned.problem, planned.plan), "C");
  for (const DeviceId device : planned.problem.devices()) {
    const std::string name = planned.problem.machine().devices[device].name + " memory";
    std::int64_t most = 0, last = -1, last_ns = -1;
    for (const json::object& counter : counters) {
      if (counter.at("name").as_string() != name) continue;
      last = counter.at("args").at("bytes").as_int64();
      most = std::max(most, last);
      BOOST_TEST(ns_of(counter.at("ts")) > last_ns);
      last_ns = ns_of(counter.at("ts"));
    }
    BOOST_TEST(most == planned.plan.prediction.peaks[device].bytes);
    BOOST_TEST(last == 0);
    BOOST_TEST(last_ns == 533);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_that_fits_has_no_overflow) {
  const Planned planned(667);
  BOOST_TEST(overflow_text(planned.problem, planned.plan) == "");
}

// d0 needs 667 bytes at 0, d1 7 + 500 + 8.
BOOST_AUTO_TEST_CASE(an_overflow_names_device_moment_bytes_and_holders) {
  const Planned planned(600);
  const std::string text = overflow_text(planned.problem, planned.plan);
  BOOST_TEST(
      has(text, "device d0 overflows by 67 B: 667 B at 0 ns of 533 ns, and its limit is 600 B\n"),
      text);
  const std::size_t output = text.find("500 B  output 0 of first"),
                    variable = text.find("100 B  variable v"),
                    workspace = text.find("60 B  workspace of first"),
                    reserve = text.find("7 B  reserve of the machine");
  BOOST_TEST(reserve != std::string::npos, text);
  BOOST_TEST((output < variable && variable < workspace && workspace < reserve), text);
}

// Against the any-timing peak: that one is named, not the peak of the simulation.
BOOST_AUTO_TEST_CASE(an_overflow_for_any_timing_states_that_peak) {
  const Planned planned(600, {.any_timing = true});
  const std::string text = overflow_text(planned.problem, planned.plan);
  const Peak& peak = planned.plan.prediction.peaks[DeviceId{0}];
  BOOST_TEST(peak.any_timing_bytes == 667);
  BOOST_TEST(has(text,
                 "device d0 overflows by 67 B: 667 B with the worst timing, by prediction 667 B at "
                 "0 ns of 533 ns, and its limit is 600 B\n"),
             text);
}

// The same numbers as in the text above.
BOOST_AUTO_TEST_CASE(an_overflow_for_programs_has_the_same_numbers) {
  const Planned planned(600);
  const auto explanation = explain(planned.problem, planned.plan);
  BOOST_REQUIRE(explanation.has_value());
  const json::value whole =
      json::parse(summary_json(planned.problem, planned.plan, explanation)).at("explanation");
  BOOST_TEST(whole.at("device").as_string() == "d0");
  BOOST_TEST(whole.at("limit_bytes").as_int64() == 600);
  BOOST_TEST(whole.at("bytes").as_int64() == 667);
  BOOST_TEST(whole.at("missing_bytes").as_int64() == 67);
  BOOST_TEST(whole.at("at_ns").as_int64() == 0);
  BOOST_TEST(whole.at("buffers").as_int64() == 4);
  const json::array& holders = whole.at("holders").as_array();
  BOOST_REQUIRE(holders.size() == 4);
  const auto says = [&](std::size_t n) { return json::serialize(holders[n]); };
  BOOST_TEST(says(0) == R"({"kind":"output","name":"first","bytes":500,"output":0})");
  BOOST_TEST(says(1) == R"({"kind":"variable","name":"v","bytes":100})");
  BOOST_TEST(says(2) == R"({"kind":"workspace","name":"first","bytes":60})");
  BOOST_TEST(says(3) == R"({"kind":"reserve","name":"","bytes":7})");
}

// Group g: v, a and its workspace, 660 beside the reserve of 7.
BOOST_AUTO_TEST_CASE(an_explanation_says_what_would_be_enough_and_what_would_not_help) {
  const Planned planned(600);
  const auto explanation = explain(planned.problem, planned.plan, "etf", {});
  const std::string text = explanation_text(planned.problem, planned.plan, explanation);
  BOOST_TEST(has(text,
                 "impossible: group g alone needs 660 B, 100 B of it for variables, and d0, the "
                 "largest device it may be on, has room for 593 B\n"),
             text);
  BOOST_TEST(has(text, "it would fit with 667 per device (a plan was found)\n"), text);
  BOOST_TEST(has(text,
                 "more devices of this memory would not help: group g needs a larger one "
                 "(proven)\n"),
             text);
  const json::value whole = json::parse(explanation_json(planned.problem, *explanation));
  BOOST_TEST(whole.at("enough_memory_bytes").at("d1").as_int64() == 667);
  BOOST_TEST(whole.at("more_devices").at("never").as_bool());
  BOOST_TEST(whole.at("more_devices").at("found").is_null());
  BOOST_TEST(whole.at("impossible").at(0).at("why").as_string() == "unit");
  BOOST_TEST(whole.at("impossible").at(0).at("needed_bytes").as_int64() == 660);
}

BOOST_AUTO_TEST_SUITE_END()
