// Rows heft, m-etf, m-sct and cut, worked by hand.
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/cut.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/heft.h"
#include "pardnn/partition/memory_capped.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(list_rows)

// By the longest path a (40), b (10), e (5): e comes last and runs while d1 waits for b's input.
BOOST_AUTO_TEST_CASE(heft_fills_gaps) {
  const PlannerStory story("op a T 10 > 20 on=d0\nop b T 10 < a on=d1\nop e T 5 on=d1\n");
  BOOST_TEST(story.text(heft(story.problem, {})) == "a | e b");
}

// b has the longer path behind it: 20 against 15. Beside a it ends at 30; c elsewhere at 10 + 3
// + 15.
BOOST_AUTO_TEST_CASE(heft_takes_the_longest_path_first_to_where_it_ends_first) {
  const PlannerStory story("op a T 10 > 3\nop b T 20 < a\nop c T 15 < a\n");
  BOOST_TEST(story.text(heft(story.problem, {})) == "a b | c");
}

// a's 300 bytes hold the channel from 10 to 310. v's 2 are made at 4 and pass before them, though v
// is placed later; behind them its reader would end at 313.
BOOST_AUTO_TEST_CASE(heft_sends_in_gaps_too) {
  const PlannerStory story(
      "op v T 4 > 2 on=d0\nop a T 6 < v:0 > 300 on=d0\nop b T 9 < a on=d1\nop w T 1 < v on=d1\n");
  BOOST_TEST(story.text(heft(story.problem, {})) == "v a | w b");
}

// y's 100 bytes hold the channel from d0 until 101; behind them f's 5 are there at 106. Then b and
// c wait for the same 20 bytes: once they are sent for b, until 126, they are there for c as well,
// which runs before g, whose 5 bytes come from d2 at 130. Sent once more they would come after
// that.
BOOST_AUTO_TEST_CASE(etf_knows_what_was_sent_for_another) {
  const PlannerStory story(
      "op z T 1 > 100 on=d0\n"
      "op a T 99 < ^z > 20 5 on=d0\n"
      "op h T 125 > 5 on=d2\n"
      "op y T 1 < z on=d1\n"
      "op f T 1 < a:1 on=d1\n"
      "op b T 2 < a on=d1\n"
      "op c T 1 < a on=d1\n"
      "op g T 1 < h on=d1\n",
      StoryMachine{.devices = 3}.build());
  BOOST_TEST(story.text(etf(story.problem, {})) == "z a | y f b c g | h");
}

// Both outputs stay: one device would hold 1200 of its 1000 bytes, so each may be given its 600.
BOOST_AUTO_TEST_CASE(m_etf_gives_no_device_more_than_its_part) {
  const PlannerStory story("op a T 10 > 600*\nop b T 10 < a > 600*\n");
  BOOST_TEST(story.text(etf(story.problem, {})) == "a b | ");
  BOOST_TEST(story.text(m_etf(story.problem, {})) == "a | b");
}

// b is a's favourite: their 50 bytes are on the longer path, and p's input for b is there at 12. e
// could start at 10, and does in etf; b elsewhere would start at 60.
BOOST_AUTO_TEST_CASE(m_sct_keeps_the_device_for_a_favourite) {
  const PlannerStory story(
      "op a T 10 > 50 1\nop p T 5 > 7 on=d1\nop q T 35 < p on=d1\nop b T 10 < a p\nop e T 30 < "
      "a:1\n");
  BOOST_TEST(story.text(etf(story.problem, {})) == "a e b | p q");
  BOOST_TEST(story.text(m_sct(story.problem, {})) == "a b e | p q");
}

// a to d take as long as each other; to part a from b or c from d would send 300 bytes.
BOOST_AUTO_TEST_CASE(cut_parts_where_least_is_sent) {
  const PlannerStory story(
      "op a T 10 > 300\nop b T 10 < a > 1\nop c T 10 > 300\nop d T 10 < c > 1\nop e T 1 < b d\n");
  const Proposal proposal = cut(story.problem, {});
  const auto device = [&](const char* key) { return index(proposal.placement[story.unit(key)]); };
  BOOST_TEST(device("a") == device("b"));
  BOOST_TEST(device("c") == device("d"));
  BOOST_TEST(device("a") != device("c"));
}

BOOST_AUTO_TEST_CASE(cut_obeys_pins_and_keeps_groups) {
  const PlannerStory story(
      "op a T 10 > 300 on=d1\nop b T 10 < a @g\nop c T 10 > 1 @g\nop d T 10 < c on=d0\n");
  const Proposal proposal = cut(story.problem, {});
  BOOST_TEST(index(proposal.placement[story.unit("a")]) == 1);
  BOOST_TEST(index(proposal.placement[story.unit("d")]) == 0);
  BOOST_TEST(index(proposal.placement[story.unit("b")]) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
