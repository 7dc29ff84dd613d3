// Within one comparison over several limits `auto` is never worse under a looser one.
#include <array>
#include <optional>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/starts.h"

#include "tests/properties/machines.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::size_t kDevices = 3;
constexpr std::array<std::int64_t, 4> kPerMille = {700, 1'000, 1'150, 3'000};  // of an even share

Findings try_limits(std::size_t number) {
  const Family& family = families()[number % families().size()];
  const std::uint64_t seed = number / families().size();
  if (family.name == "kinds") return Findings("");
  Findings findings(std::string(family.name) + ", seed " + std::to_string(seed));
  const auto graph = family.make(40 + 20 * seed, seed);
  const Problem plenty(graph, even_machine(kDevices, std::int64_t{1} << 40));
  const std::int64_t share = one_device_bytes(plenty) / std::int64_t{kDevices} + 1;
  const Run run = short_run(seed);
  Ladder ladder;
  std::optional<Score> tighter;
  for (const std::int64_t per_mille : kPerMille) {
    const Problem problem(graph, even_machine(kDevices, share * per_mille / 1'000));
    const Plan etf = ladder.plan(problem, "etf", run);
    const Plan best = ladder.plan(problem, "auto", run);
    expect_sound(findings, problem, best);
    findings.expect(best.score <= etf.score, "auto is worse than a row");
    findings.expect(!tighter || best.score.overflow_bytes <= tighter->overflow_bytes,
                    "a looser limit overflows by more");
    findings.expect(!tighter || !tighter->fits() || best.score <= *tighter,
                    "a looser limit has a worse plan");
    tighter = best.score;
    ladder.loosen();
  }
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_limits)

BOOST_AUTO_TEST_CASE(auto_is_never_worse_under_a_looser_limit) {
  run_trials("limits", 2 * families().size(), try_limits);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
