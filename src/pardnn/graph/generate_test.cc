// Generated graphs: of the size asked for, the same for a seed, and with the structure they claim.
#include "pardnn/graph/generate.h"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace pardnn;

namespace {

std::int64_t sum_of_costs(const Graph& graph) {
  std::int64_t sum = 0;
  for (const OpId op : graph.ops()) {
    for (const KindId kind : graph.kinds()) {
      if (graph.cost(op, kind).is_known()) sum += graph.cost(op, kind).ns();
    }
  }
  return sum;
}

std::int64_t sum_of_bytes(const Graph& graph) {
  std::int64_t sum = 0;
  for (const TensorId tensor : graph.tensors()) sum += graph.tensor(tensor).bytes.value();
  for (const VariableId variable : graph.variables()) sum += graph.bytes(variable).value();
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(generate)

BOOST_AUTO_TEST_CASE(families_are_found_by_name) {
  BOOST_TEST(families().size() >= 12);
  for (const Family& family : families()) {
    BOOST_TEST(find_family(family.name) == &family);
    BOOST_TEST(!family.summary.empty());
  }
  BOOST_TEST(find_family("none") == nullptr);
}

// A block of the largest family, an expert layer with backward pass, has about 300 ops, and half
// of one can be missing or too much; the rest is within one in a hundred.
BOOST_AUTO_TEST_CASE(a_graph_has_about_as_many_ops_as_asked_for) {
  for (const Family& family : families()) {
    for (const std::size_t ops : {1'000, 20'000}) {
      const auto graph = family.make(ops, 1);
      const auto count = static_cast<std::int64_t>(graph->ops().size());
      const auto wanted = static_cast<std::int64_t>(ops);
      BOOST_TEST(std::abs(count - wanted) <= 150 + wanted / 100,
                 family.name << " has " << count << " ops for " << ops);
    }
    BOOST_TEST(family.make(1, 1)->ops().size() >= 1);
    BOOST_TEST(family.make(1, 1)->ops().size() <= 600, family.name);
  }
}

BOOST_AUTO_TEST_CASE(a_seed_gives_one_graph_and_another_seed_another) {
  for (const Family& family : families()) {
    const auto one = family.make(500, 7), same = family.make(500, 7);
    BOOST_TEST(one->ops().size() == same->ops().size(), family.name);
    BOOST_TEST(sum_of_costs(*one) == sum_of_costs(*same), family.name);
    BOOST_TEST(sum_of_bytes(*one) == sum_of_bytes(*same), family.name);
    bool differs = false;
    for (std::uint64_t seed = 8; seed < 16; ++seed) {
      differs = differs || sum_of_bytes(*family.make(500, seed)) != sum_of_bytes(*one);
    }
    BOOST_TEST(differs, family.name);
  }
}

BOOST_AUTO_TEST_CASE(costs_are_stated_as_analytical) {
  for (const Family& family : families()) {
    const auto graph = family.make(100, 1);
    BOOST_REQUIRE(!graph->about().empty());
    BOOST_TEST(graph->about()[0].first == "costs");
    BOOST_TEST(graph->about()[0].second == "analytical");
  }
}

// Of a network, every weight is read once, updated once, after all that read it, and the forward
// pass is needed by the backward pass.
BOOST_AUTO_TEST_CASE(networks_are_whole_training_steps) {
  for (const char* name : {"chain", "diamonds", "layered", "residual", "inception", "char-rnn",
                           "word-rnn", "grid", "transformer", "experts"}) {
    const auto graph = find_family(name)->make(1'000, 3);
    std::size_t updates = 0, saved = 0;
    for (const OpId op : graph->ops()) {
      updates += graph->phase(op) == Phase::kUpdate;
      if (graph->phase(op) != Phase::kBackward) continue;
      for (const Input& input : graph->inputs(op)) {
        saved += graph->phase(graph->tensor(input.tensor()).producer) == Phase::kForward;
      }
    }
    BOOST_TEST(updates * 3 == graph->variables().size(), name);  // each weight has two slots
    BOOST_TEST(saved > graph->ops().size() / 10, name);
    for (const VariableId variable : graph->variables()) {
      const auto touchers = graph->touchers(variable);
      const bool is_slot = graph->key(variable).find("/slot") != std::string_view::npos;
      BOOST_TEST(touchers.size() == (is_slot ? 1 : 2), graph->key(variable));
    }
  }
}

BOOST_AUTO_TEST_CASE(mixed_has_every_feature) {
  const auto graph = find_family("mixed")->make(300, 1);
  std::size_t aliases = 0, take_overs = 0, modified = 0, every = 0, workspace = 0, pins = 0;
  for (const OpId op : graph->ops()) {
    every += graph->is_every(op);
    workspace += graph->workspace_bytes(op) > 0;
    pins += !graph->pins(op).empty();
    for (const Input& input : graph->inputs(op)) modified += input.modifies();
    for (const TensorId tensor : graph->outputs(op)) {
      aliases += graph->tensor(tensor).alias_of.has_value();
      take_overs += graph->tensor(tensor).takes_over.has_value();
    }
  }
  for (const std::size_t count : {aliases, take_overs, modified, every, workspace, pins}) {
    BOOST_TEST(count > 0);
  }
  BOOST_TEST(graph->has_given_order());
}

BOOST_AUTO_TEST_SUITE_END()
