// Feed-forward networks: chain, diamonds, layered, residual, inception, transformer, experts.
#include <string>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/graph/families.h"
#include "pardnn/graph/training_step.h"

namespace pardnn {
namespace {

using Value = TrainingStep::Value;
using Weight = TrainingStep::Weight;
using Backward = TrainingStep::Backward;
using Layer = TrainingStep::Layer;

constexpr std::int64_t kFloat = 4;  // bytes

// Layers that networks share, for one batch of `rows` rows.
class Network {
 public:
  Network(std::uint64_t seed, std::int64_t rows) : random_(seed), rows_(rows) {}

  TrainingStep& step() { return step_; }
  Random& random() { return random_; }
  std::int64_t bytes(std::int64_t width) const { return rows_ * width * kFloat; }

  Value dense(const std::string& key, Value input, std::int64_t from, std::int64_t to) {
    const Weight kernel = step_.weight(key + "/kernel", from * to * kFloat);
    return step_.add({.key = key,
                      .type = "MatMul",
                      .inputs = {input},
                      .weights = {kernel},
                      .bytes = bytes(to),
                      .flops = 2 * rows_ * from * to});
  }
  Value bias(const std::string& key, Value input, std::int64_t width) {
    const Weight weight = step_.weight(key + "/bias", width * kFloat);
    return step_.add({.key = key,
                      .type = "BiasAdd",
                      .inputs = {input},
                      .weights = {weight},
                      .bytes = bytes(width),
                      .flops = rows_ * width,
                      .backward = Backward::kJoint,
                      .takes_over = true});
  }
  Value activation(const std::string& key, Value input, std::int64_t width) {
    return step_.add({.key = key,
                      .type = "Relu",
                      .inputs = {input},
                      .bytes = bytes(width),
                      .flops = rows_ * width,
                      .saves_output = true,
                      .takes_over = true});
  }
  Value sum(const std::string& key, std::vector<Value> inputs, std::int64_t width) {
    return step_.add({.key = key,
                      .type = "AddN",
                      .inputs = std::move(inputs),
                      .bytes = bytes(width),
                      .flops = rows_ * width,
                      .backward = Backward::kPass});
  }
  Value normalized(const std::string& key, Value input, std::int64_t width) {
    const Weight scale = step_.weight(key + "/scale", width * kFloat);
    const Weight shift = step_.weight(key + "/shift", width * kFloat);
    return step_.add({.key = key,
                      .type = "Norm",
                      .inputs = {input},
                      .weights = {scale, shift},
                      .bytes = bytes(width),
                      .flops = 8 * rows_ * width,
                      .backward = Backward::kJoint});
  }
  // A convolution over `rows` places with a window of `window` places.
  Value convolution(const std::string& key, Value input, std::int64_t from, std::int64_t to,
                    std::int64_t window) {
    const Weight kernel = step_.weight(key + "/kernel", window * from * to * kFloat);
    return step_.add({.key = key,
                      .type = "Conv2D",
                      .inputs = {input},
                      .weights = {kernel},
                      .bytes = bytes(to),
                      .flops = 2 * rows_ * window * from * to,
                      .workspace_bytes = bytes(from)});
  }
  // Convolution, normalization, activation.
  Value unit(const std::string& key, Value input, std::int64_t from, std::int64_t to,
             std::int64_t window) {
    const Value raw = convolution(key + "/conv", input, from, to, window);
    return activation(key + "/relu", normalized(key + "/norm", raw, to), to);
  }

 private:
  TrainingStep step_;
  Random random_;
  std::int64_t rows_;
};

std::int64_t pick(Random& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random.below(static_cast<std::uint32_t>(choices.size()))];
}

std::string numbered(const char* name, std::size_t number) { return name + std::to_string(number); }

}  // namespace

std::shared_ptr<const Graph> make_chain(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Network net(seed, 256);
    std::int64_t width = 512;
    Value value = net.step().batch("x", net.bytes(width));
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("layer", n);
      const std::int64_t to = pick(net.random(), {256, 512, 1024, 2048});
      value = net.dense(key + "/product", value, width, to);
      value = net.activation(key + "/relu", net.bias(key + "/sum", value, to), to);
      width = to;
    }
    return net.step().finish({value});
  });
}

std::shared_ptr<const Graph> make_diamonds(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Network net(seed, 128);
    constexpr std::int64_t kWidth = 512;
    Value value = net.step().batch("x", net.bytes(kWidth));
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("fork", n);
      std::vector<Value> branches;
      for (std::size_t branch = 0; branch < 4; ++branch) {
        const std::string branch_key = key + numbered("/branch", branch);
        const std::int64_t inner = pick(net.random(), {128, 512, 1024});
        Value at = net.dense(branch_key + "/in", value, kWidth, inner);
        at = net.activation(branch_key + "/relu", at, inner);
        branches.push_back(net.dense(branch_key + "/out", at, inner, kWidth));
      }
      value = net.sum(key + "/join", branches, kWidth);
    }
    return net.step().finish({value});
  });
}

std::shared_ptr<const Graph> make_layered(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Network net(seed, 64);
    constexpr std::int64_t kWidth = 512;
    constexpr std::size_t kReach = 24;  // how far back a layer reads
    std::vector<Value> values{net.step().batch("x", net.bytes(kWidth))};
    std::vector<bool> is_read{true};
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("node", n);
      std::vector<Value> inputs;
      for (std::size_t k = 0; k < 3; ++k) {
        const auto reach = static_cast<std::uint32_t>(std::min(values.size(), kReach));
        const std::size_t from = values.size() - 1 - net.random().below(reach);
        is_read[from] = true;
        inputs.push_back(values[from]);
      }
      const Value sum = net.sum(key + "/sum", inputs, kWidth);
      const Value product = net.dense(key + "/product", sum, kWidth, kWidth);
      values.push_back(net.activation(key + "/relu", product, kWidth));
      is_read.push_back(false);
    }
    std::vector<Value> ends;
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (!is_read[n]) ends.push_back(values[n]);
    }
    return net.step().finish(ends);
  });
}

std::shared_ptr<const Graph> make_residual(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Network net(seed, 32 * 32 * 64);
    const std::int64_t width = pick(net.random(), {96, 128, 160});
    Value value = net.unit("stem", net.step().batch("x", net.bytes(3)), 3, width, 9);
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("block", n);
      Value branch = net.unit(key + "/a", value, width, width, 9);
      branch = net.unit(key + "/b", branch, width, width, 9);
      value = net.sum(key + "/join", {value, branch}, width);
    }
    return net.step().finish({value});
  });
}

std::shared_ptr<const Graph> make_inception(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Network net(seed, 17 * 17 * 32);
    constexpr std::int64_t kBranch = 192, kWidth = 4 * kBranch;
    Value value = net.unit("stem", net.step().batch("x", net.bytes(3)), 3, kWidth, 9);
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("block", n);
      const std::int64_t inner = pick(net.random(), {96, 128, 160});
      std::vector<Value> branches{net.unit(key + "/one", value, kWidth, kBranch, 1)};
      Value at = net.unit(key + "/two0", value, kWidth, inner, 1);
      branches.push_back(net.unit(key + "/two1", at, inner, kBranch, 7));
      at = net.unit(key + "/three0", value, kWidth, inner, 1);
      at = net.unit(key + "/three1", at, inner, inner, 7);
      branches.push_back(net.unit(key + "/three2", at, inner, kBranch, 7));
      at = net.step().add({.key = key + "/pool",
                           .type = "Pool",
                           .inputs = {value},
                           .bytes = net.bytes(kWidth),
                           .flops = net.bytes(kWidth),
                           .saves_output = true});
      branches.push_back(net.unit(key + "/four", at, kWidth, kBranch, 1));
      value = net.step().add({.key = key + "/concat",
                              .type = "Concat",
                              .inputs = branches,
                              .bytes = net.bytes(kWidth),
                              .backward = Backward::kJoint,
                              .saves_output = true});
    }
    return net.step().finish({value});
  });
}

namespace {

struct TransformerSizes {
  std::int64_t width = 512, sequence = 128, batch = 16, heads = 8;
  std::int64_t rows() const { return sequence * batch; }
};

Value attention(Network& net, const std::string& key, Value input, const TransformerSizes& sizes) {
  const std::int64_t width = sizes.width;
  const Value query = net.dense(key + "/query", input, width, width);
  const Value keys = net.dense(key + "/key", input, width, width);
  const Value values = net.dense(key + "/value", input, width, width);
  const std::int64_t scores = sizes.batch * sizes.heads * sizes.sequence * sizes.sequence;
  const std::int64_t flops = 2 * sizes.rows() * sizes.sequence * width;
  Value weights = net.step().add({.key = key + "/scores",
                                  .type = "BatchMatMul",
                                  .inputs = {query, keys},
                                  .bytes = scores * kFloat,
                                  .flops = flops});
  weights = net.step().add({.key = key + "/softmax",
                            .type = "Softmax",
                            .inputs = {weights},
                            .bytes = scores * kFloat,
                            .flops = 5 * scores,
                            .saves_output = true,
                            .takes_over = true});
  const Value mixed = net.step().add({.key = key + "/mix",
                                      .type = "BatchMatMul",
                                      .inputs = {weights, values},
                                      .bytes = net.bytes(width),
                                      .flops = flops});
  return net.dense(key + "/out", mixed, width, width);
}

Value feed_forward(Network& net, const std::string& key, Value input, std::int64_t width) {
  Value at = net.dense(key + "/up", input, width, 4 * width);
  at = net.activation(key + "/relu", net.bias(key + "/bias", at, 4 * width), 4 * width);
  return net.dense(key + "/down", at, 4 * width, width);
}

}  // namespace

std::shared_ptr<const Graph> make_transformer(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Random random(seed);
    TransformerSizes sizes;
    sizes.width = pick(random, {512, 768, 1024});
    Network net(seed, sizes.rows());
    Value value = net.dense("embed", net.step().batch("x", net.bytes(64)), 64, sizes.width);
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("block", n);
      Value at = net.normalized(key + "/norm0", value, sizes.width);
      at = attention(net, key + "/attention", at, sizes);
      value = net.sum(key + "/add0", {value, at}, sizes.width);
      at = net.normalized(key + "/norm1", value, sizes.width);
      at = feed_forward(net, key + "/forward", at, sizes.width);
      value = net.sum(key + "/add1", {value, at}, sizes.width);
    }
    return net.step().finish({value});
  });
}

std::shared_ptr<const Graph> make_experts(std::size_t ops, std::uint64_t seed) {
  return of_about(ops, [&](std::size_t blocks) {
    Random random(seed);
    TransformerSizes sizes;
    sizes.width = pick(random, {512, 768});
    constexpr std::size_t kExperts = 8;
    Network net(seed, sizes.rows());
    Value value = net.dense("embed", net.step().batch("x", net.bytes(64)), 64, sizes.width);
    for (std::size_t n = 0; n < blocks; ++n) {
      const std::string key = numbered("block", n);
      const Value seen = net.normalized(
          key + "/norm0", attention(net, key + "/attention", value, sizes), sizes.width);
      const Value gate = net.dense(key + "/gate", seen, sizes.width, kExperts);
      std::vector<Value> results{value};
      for (std::size_t expert = 0; expert < kExperts; ++expert) {
        const std::string expert_key = key + numbered("/expert", expert);
        const Value routed = net.step().add({.key = expert_key + "/route",
                                             .type = "Mul",
                                             .inputs = {seen, gate},
                                             .bytes = net.bytes(sizes.width),
                                             .flops = sizes.rows() * sizes.width});
        results.push_back(feed_forward(net, expert_key, routed, sizes.width));
      }
      value = net.sum(key + "/join", results, sizes.width);
    }
    return net.step().finish({value});
  });
}

}  // namespace pardnn
