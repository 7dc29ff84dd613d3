// Graphs that are hard on planners in ways that networks are not; all but `isolated` and `star`
// repeat a small block, so that they exist in every size.
#include <string>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/graph/families.h"
#include "pardnn/graph/specs.h"

namespace pardnn {
namespace {

// Writes ops in a few words each.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) { builder_.about("costs", "analytical"); }

  struct More {
    std::string group = {};
    Phase phase = Phase::kNone;
    std::int64_t workspace_bytes = 0;
    bool every = false;
    std::vector<std::string> on = {};
  };

  void op(const std::string& key, std::string_view type, std::vector<Cost> costs,
          const std::vector<std::string>& inputs, std::vector<OutputSpec> outputs,
          const More& more) {
    OpSpec spec;
    spec.key = key;
    spec.type = type;
    spec.costs = std::move(costs);
    for (const std::string& input : inputs) spec.inputs.push_back(input_of(input));
    spec.outputs = std::move(outputs);
    if (!more.group.empty()) spec.group = more.group;
    spec.phase = more.phase;
    spec.workspace_bytes = more.workspace_bytes;
    spec.every = more.every;
    spec.pins.on = more.on;
    if (with_order_ && !more.every) spec.at = next_at_++;
    builder_.op(spec);
  }
  void op(const std::string& key, std::string_view type, std::int64_t cost_ns,
          const std::vector<std::string>& inputs, std::vector<OutputSpec> outputs,
          const More& more) {
    op(key, type, {Cost::known(cost_ns)}, inputs, std::move(outputs), more);
  }
  void op(const std::string& key, std::string_view type, std::int64_t cost_ns,
          const std::vector<std::string>& inputs, std::vector<OutputSpec> outputs) {
    op(key, type, cost_ns, inputs, std::move(outputs), More{});
  }
  void variable(const std::string& key, std::int64_t bytes, const std::string& group) {
    VariableSpec spec;
    spec.key = key;
    spec.bytes = bytes;
    if (!group.empty()) spec.group = group;
    builder_.variable(spec);
  }
  // From now on the ops keep the order in which they are written (rule D4b).
  void keep_order() { with_order_ = true; }

  GraphBuilder& builder() { return builder_; }
  std::int64_t between(std::int64_t low, std::int64_t high) { return random_.between(low, high); }

 private:
  GraphBuilder builder_{"generated"};
  Random random_;
  bool with_order_ = false;
  std::int64_t next_at_ = 0;
};

// A chain forward and backward, in which every backward op reads what its forward op made.
void write_there_and_back(Writer& to, const std::string& name, std::size_t length, bool is_free) {
  const auto key = [&](const char* way, std::size_t n) { return name + way + std::to_string(n); };
  const auto cost = [&] { return is_free ? 0 : to.between(5'000, 200'000); };
  for (std::size_t n = 0; n < length; ++n) {
    std::vector<std::string> inputs;
    if (n > 0) inputs.push_back(key("/forward", n - 1));
    to.op(key("/forward", n), "Layer", cost(), inputs, {sized(to.between(1, 1 << 20))},
          {.phase = Phase::kForward});
  }
  for (std::size_t n = length; n-- > 0;) {
    std::vector<std::string> inputs{key("/forward", n)};
    if (n + 1 < length) inputs.push_back(key("/backward", n + 1));
    to.op(key("/backward", n), "Gradient", cost(), inputs, {sized(to.between(1, 1 << 20))},
          {.phase = Phase::kBackward});
  }
}

std::string numbered(const char* name, std::size_t number) { return name + std::to_string(number); }

}  // namespace

std::shared_ptr<const Graph> make_isolated(std::size_t ops, std::uint64_t seed) {
  Writer to(seed);
  for (std::size_t n = 0; n < std::max<std::size_t>(ops, 1); ++n) {
    std::vector<OutputSpec> outputs;
    if (to.between(0, 3) > 0) outputs.push_back(sized(to.between(0, 1 << 20)));
    if (to.between(0, 7) == 0) outputs.push_back(fetched(sized(to.between(0, 1 << 16))));
    to.op(numbered("op", n), "Alone", to.between(0, 100'000), {}, outputs);
  }
  return to.builder().build();
}

std::shared_ptr<const Graph> make_two_components(std::size_t ops, std::uint64_t seed) {
  Writer to(seed);
  const std::size_t half = std::max<std::size_t>(ops / 4, 1);
  write_there_and_back(to, "left", half, false);
  write_there_and_back(to, "right", half, false);
  return to.builder().build();
}

std::shared_ptr<const Graph> make_zero_costs(std::size_t ops, std::uint64_t seed) {
  Writer to(seed);
  const std::size_t length = std::max<std::size_t>(ops / 8, 1);
  for (std::size_t n = 0; n < 4; ++n) write_there_and_back(to, numbered("tower", n), length, true);
  return to.builder().build();
}

std::shared_ptr<const Graph> make_star(std::size_t ops, std::uint64_t seed) {
  constexpr std::size_t kJoined = 50;  // readers whose results one op joins
  Writer to(seed);
  to.op("center", "Make", 100'000, {}, {sized(to.between(1 << 20, 1 << 26))});
  std::vector<std::string> open;
  std::string joined;
  for (std::size_t n = 0, joins = 0; n + joins + 2 < std::max<std::size_t>(ops, 4) || n == 0; ++n) {
    to.op(numbered("reader", n), "Use", to.between(1'000, 1'000'000), {"center"},
          {sized(to.between(0, 1 << 16))});
    open.push_back(numbered("reader", n));
    if (open.size() < kJoined) continue;
    if (!joined.empty()) open.push_back(joined);
    joined = numbered("join", joins++);
    to.op(joined, "Join", 10'000, open, {sized(4)});
    open.clear();
  }
  if (!joined.empty()) open.push_back(joined);
  to.op("end", "Join", 10'000, open, {fetched(sized(4))});
  return to.builder().build();
}

namespace {

// One block of `mixed`. Every op of it is there for a rule:
//
//     w --> read --> make --> peek        `look` sees the buffer before `relu` changes it in place
//              prev --^  \--> relu --> half --> again (alias of an alias of an alias)
//     constant --> part (aliases of every device) --\          |
//                         relu, relu, again ----> combine --> next block, and an output for nobody
class MixedBlock {
 public:
  MixedBlock(Writer& to, std::size_t number, std::string before, std::int64_t bytes)
      : to_(to),
        number_(number),
        name_(numbered("block", number)),
        group_(numbered("group", number)),
        before_(std::move(before)),
        bytes_(bytes),
        weight_bytes_(to.between(1, 1 << 18)) {}

  std::string output() const { return key("combine"); }
  std::int64_t bytes() const { return bytes_; }

  void forward() {
    to_.variable(key("w"), weight_bytes_, group_);
    to_.variable(key("slot"), weight_bytes_, group_);
    if (number_ % 3 == 0) to_.variable(key("lone"), to_.between(1, 1 << 12), "");
    if (number_ % 3 == 1) {
      to_.variable(key("pair0"), to_.between(1, 1 << 12), key("pair"));
      to_.variable(key("pair1"), to_.between(1, 1 << 12), key("pair"));
    }
    if (number_ % 4 == 0) to_.builder().group(group_, {.on = {"d0"}, .avoid = {}});
    to_.op(key("constant"), "Constant", 0, {}, {sized(bytes_)}, {.every = true});
    to_.op(key("part"), "Slice", 0, {key("constant")}, {alias_of(0, bytes_ / 2)}, {.every = true});
    forward_op("read", "Read", 0, {key("w")}, {alias_of(0)}, true, 0);
    forward_op("make", "MatMul", to_.between(10'000, 300'000), {before_, key("read")},
               {sized(bytes_)}, true, to_.between(0, 1 << 16));
    forward_op("peek", "Mean", 2'000, {key("make")}, {sized(8)}, false, 0);
    forward_op("relu", "Relu", 5'000, {'!' + key("make"), '^' + key("peek")}, {alias_of(0)}, true,
               0);
    const OutputSpec half = alias_of(0, bytes_ / 2);
    forward_op("half", "Slice", 0, {key("relu")}, {number_ % 5 == 0 ? fetched(half) : half}, false,
               0);
    forward_op("again", "Reshape", 0, {key("half")}, {alias_of(0)}, false, 0);
    forward_op("combine", "Combine", to_.between(5'000, 50'000),
               {before_, key("relu"), key("relu"), key("again"), key("part")},
               {taking_over(bytes_, 0), sized(to_.between(0, 1 << 10))}, false, 0);
    to_.op(key("mark"), "NoOp", 0, {'^' + key("combine"), '^' + key("again")}, {sized(0)},
           {.phase = Phase::kForward,
            .on = number_ % 7 == 0 ? std::vector<std::string>{"d0"} : std::vector<std::string>{}});
  }

  // Two writers of one variable in order, and a read of what they left.
  void backward(const std::string& gradient) {
    const auto op = [&](const char* name, const char* type, std::int64_t cost_ns,
                        const std::vector<std::string>& inputs, std::vector<OutputSpec> outputs,
                        Phase phase, bool in_group) {
      to_.op(key(name), type, cost_ns, inputs, std::move(outputs),
             {.group = in_group ? group_ : "", .phase = phase});
    };
    op("d_sum", "Gradient", 8'000, {gradient, key("relu"), key("mark")}, {taking_over(bytes_, 0)},
       Phase::kBackward, false);
    op("d_in", "Gradient", to_.between(10'000, 300'000), {key("d_sum"), key("read")},
       {sized(bytes_)}, Phase::kBackward, false);
    op("d_w", "Gradient", to_.between(10'000, 300'000), {key("d_sum"), before_},
       {sized(weight_bytes_)}, Phase::kBackward, false);
    op("decay", "Scale", 3'000,
       {'!' + key("w"), '^' + key("read"), '^' + key("make"), '^' + key("d_in")}, {},
       Phase::kUpdate, true);
    op("update", "Adam", 9'000, {key("d_w"), '!' + key("w"), '!' + key("slot"), '^' + key("decay")},
       {}, Phase::kUpdate, true);
    op("read_after", "Read", 0, {key("w"), '^' + key("update")}, {alias_of(0)}, Phase::kUpdate,
       true);
    op("norm", "Norm", 4'000, {key("read_after")}, {fetched(sized(4))}, Phase::kUpdate, false);
  }
  std::string gradient() const { return key("d_in"); }

 private:
  std::string key(const char* name) const { return name_ + '/' + name; }
  void forward_op(const char* name, const char* type, std::int64_t cost_ns,
                  const std::vector<std::string>& inputs, std::vector<OutputSpec> outputs,
                  bool in_group, std::int64_t workspace_bytes) {
    to_.op(key(name), type, cost_ns, inputs, std::move(outputs),
           {.group = in_group ? group_ : "",
            .phase = Phase::kForward,
            .workspace_bytes = workspace_bytes});
  }

  Writer& to_;
  std::size_t number_;
  std::string name_, group_, before_;
  std::int64_t bytes_, weight_bytes_;
};

}  // namespace

std::shared_ptr<const Graph> make_mixed(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t count) {
    Writer to(seed);
    to.keep_order();
    const std::int64_t bytes = to.between(2, 1 << 18);
    to.op("x", "Input", 0, {}, {sized(bytes)}, {.every = true});
    std::vector<MixedBlock> blocks;
    std::string before = "x";
    for (std::size_t n = 0; n < count; ++n) {
      blocks.emplace_back(to, n, before, bytes);
      blocks.back().forward();
      before = blocks.back().output();
    }
    to.op("loss", "Loss", 20'000, {before}, {fetched(sized(4)), sized(bytes)},
          {.phase = Phase::kForward});
    std::string gradient = "loss:1";
    for (std::size_t n = count; n-- > 0;) {
      blocks[n].backward(gradient);
      gradient = blocks[n].gradient();
    }
    return to.builder().build();
  });
}

// Blocks of: decode (cpu alone), lookup (cpu better), product (gpu better), pinned product (gpu).
std::shared_ptr<const Graph> make_kinds(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Writer to(seed);
    to.builder().kinds({"gpu", "cpu"});
    const auto ns = [&](std::int64_t least) { return Cost::known(to.between(least, 4 * least)); };
    std::string before;
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string name = numbered("block", n);
      const std::string group = numbered("table", n);
      if (n % 2 == 0) to.builder().group(group, {.on = {}, .avoid = {"gpu"}});
      to.variable(name + "/table", to.between(1 << 20, 1 << 26), group);
      std::vector<std::string> inputs;
      if (!before.empty()) inputs.push_back(before);
      to.op(name + "/decode", "Decode", {Cost::not_allowed(), ns(20'000)}, inputs,
            {sized(to.between(1, 1 << 16))}, {});
      to.op(name + "/read", "Read", {Cost::known(0)}, {name + "/table"}, {alias_of(0, 1 << 20)},
            {.group = group});
      to.op(name + "/lookup", "Gather", {ns(50'000), ns(10'000)},
            {name + "/read", name + "/decode"}, {sized(to.between(1, 1 << 16))}, {.group = group});
      to.op(name + "/product", "MatMul", {ns(10'000), ns(200'000)}, {name + "/lookup"},
            {sized(to.between(1, 1 << 20))}, {});
      to.op(name + "/kernel", "Fused", {ns(30'000), Cost::not_allowed()}, {name + "/product"},
            {taking_over(to.between(1, 1 << 20), 0)}, {.workspace_bytes = 1 << 12});
      to.op(name + "/update", "Scatter", {ns(40'000), ns(15'000)},
            {name + "/kernel", '!' + name + "/table", '^' + name + "/lookup"}, {},
            {.group = group, .phase = Phase::kUpdate});
      before = name + "/kernel";
    }
    return to.builder().build();
  });
}

}  // namespace pardnn
