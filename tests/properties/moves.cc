// The clock of a line knows to the nanosecond how long the step is, whatever is moved, as long as
// no channel is shared by senders.
#include "pardnn/partition/moves.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/line_clock.h"
#include "pardnn/partition/orders.h"

#include "tests/properties/machines.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::size_t kTrials = 400;
constexpr int kChanges = 40;

// Some units elsewhere, and an op further to the front where what it waits for lets it.
void change(LineClock& clock, const Problem& problem, const Arcs& arcs, Random& random) {
  const std::span<const OpId> order = clock.order();
  const auto any = [&](std::size_t count) {
    return random.below(static_cast<std::uint32_t>(count));
  };
  for (std::uint32_t n = random.below(4); n > 0; --n) {
    clock.move(*problem.unit(order[any(order.size())]), DeviceId{any(problem.device_count())});
  }
  if (random.below(2) == 0) return;
  const std::size_t from = any(order.size());
  std::size_t least = 0;
  for (const Arc& arc : arcs.producers(order[from])) {
    least = std::max(least, clock.position(arc.op) + 1);
  }
  clock.shift(from, least + any(from - least + 1));
}

Findings try_changes(std::size_t number) {
  const Family& family = families()[number % families().size()];
  Random random(number);
  const std::size_t devices = 2 + random.below(5);
  Findings findings(std::string(family.name) + ", trial " + std::to_string(number));
  if (family.name == "kinds") return findings;
  const Problem problem(family.make(15 + random.below(200), number),
                        even_machine(devices, std::int64_t{1} << 40),
                        {.contention = random.below(2) == 0});
  const Arcs arcs(problem);
  LineClock clock(problem, arcs);
  pardnn::Trial trial(problem);
  Lineup lineup;
  const Proposal start = etf(problem, {});
  lineup.order = start.order;
  lineup.placement = start.placement;
  clock.start(lineup);
  for (int n = 0; n < kChanges; ++n) {
    const std::int64_t before_ns = clock.step_ns();
    change(clock, problem, arcs, random);
    const std::int64_t most_ns = before_ns + before_ns / 1000 * random.between(-50, 200);
    const bool kept = clock.keeps(most_ns);
    findings.expect(kept ? clock.step_ns() <= most_ns : clock.step_ns() == before_ns,
                    "a change was kept that makes the step too long, or a refused one did");
    clock.write(lineup);
    const std::optional<Score> score = trial.score({lineup.placement, lineup.order});
    findings.expect(score.has_value(), "a change left no plan");
    if (score) findings.expect(score->step_ns == clock.step_ns(), "the clock's step is another");
  }
  Moves(problem, arcs).improve(lineup, 5'000, random);
  const std::optional<Score> score = trial.score({lineup.placement, lineup.order});
  findings.expect(score && score->step_ns <= clock.step_ns(), "moves made the step longer");
  findings.count_plan();
  return findings;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_is_timed_exactly_while_ops_move) {
  run_trials("moves", kTrials, try_changes);
}

}  // namespace pardnn::properties
