// Recurrent networks, unrolled over time: char-rnn, word-rnn, grid.
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

constexpr std::int64_t kFloat = 4;  // bytes

struct State {
  Value output, memory;
};

// A recurrent layer whose weights are shared by all steps.
class Cell {
 public:
  // `window` places of input make one place of output: 1 for a plain cell.
  Cell(TrainingStep& step, std::string key, std::int64_t rows, std::int64_t from,
       std::int64_t width, std::int64_t window)
      : step_(step),
        key_(std::move(key)),
        bytes_(rows * width * kFloat),
        flops_(2 * rows * window * width),
        from_(from),
        width_(width),
        from_input_(step.weight(key_ + "/input", window * from * 4 * width * kFloat)),
        from_state_(step.weight(key_ + "/state", window * width * 4 * width * kFloat)),
        bias_(step.weight(key_ + "/bias", 4 * width * kFloat)) {}

  // Four gates from the input and the output before, then the new memory and output.
  State advance(std::size_t time, Value input, const State& before) {
    const std::string key = key_ + "/" + std::to_string(time);
    const Value left = product(key + "/x", input, from_input_, from_);
    const Value right = product(key + "/h", before.output, from_state_, width_);
    const Value gates = step_.add({.key = key + "/gates",
                                   .type = "AddBias",
                                   .inputs = {left, right},
                                   .weights = {bias_},
                                   .bytes = 4 * bytes_,
                                   .flops = 2 * bytes_,
                                   .backward = Backward::kJoint,
                                   .takes_over = true});
    const Value memory = step_.add({.key = key + "/memory",
                                    .type = "CellMemory",
                                    .inputs = {gates, before.memory},
                                    .bytes = bytes_,
                                    .flops = 3 * bytes_,
                                    .backward = Backward::kJoint});
    const Value output = step_.add({.key = key + "/output",
                                    .type = "CellOutput",
                                    .inputs = {gates, memory},
                                    .bytes = bytes_,
                                    .flops = 2 * bytes_,
                                    .backward = Backward::kJoint});
    return {output, memory};
  }

 private:
  Value product(const std::string& key, Value input, Weight weight, std::int64_t from) {
    return step_.add({.key = key,
                      .type = "MatMul",
                      .inputs = {input},
                      .weights = {weight},
                      .bytes = 4 * bytes_,
                      .flops = 4 * flops_ * from});
  }

  TrainingStep& step_;
  std::string key_;
  std::int64_t bytes_, flops_, from_, width_;
  Weight from_input_, from_state_, bias_;
};

struct Sizes {
  std::size_t layers = 1;
  std::int64_t rows = 64, width = 1024, window = 1;
  std::int64_t embedding = 0, vocabulary = 256;  // an embedding of 0: the input as it is
  std::size_t attended = 0;  // how many of the last outputs each step attends to; 0: none
};

// What the last of `outputs` picks out of the last few, itself included, place by place.
Value attention(TrainingStep& step, const std::string& number, std::vector<Value> outputs,
                const Sizes& sizes) {
  const Value query = outputs.back();
  if (outputs.size() > sizes.attended)
    outputs.erase(outputs.begin(), outputs.end() - sizes.attended);
  const auto seen = static_cast<std::int64_t>(outputs.size());
  const std::int64_t bytes = sizes.rows * sizes.width * kFloat;
  const Value past = step.add({.key = "past" + number,
                               .type = "Concat",
                               .inputs = std::move(outputs),
                               .bytes = seen * bytes,
                               .backward = Backward::kJoint,
                               .saves_output = true});
  const std::int64_t flops = 2 * seen * sizes.rows * sizes.width;
  Value weights = step.add({.key = "scores" + number,
                            .type = "BatchMatMul",
                            .inputs = {query, past},
                            .bytes = seen * sizes.rows * kFloat,
                            .flops = flops});
  weights = step.add({.key = "softmax" + number,
                      .type = "Softmax",
                      .inputs = {weights},
                      .bytes = seen * sizes.rows * kFloat,
                      .flops = 5 * seen * sizes.rows,
                      .saves_output = true,
                      .takes_over = true});
  return step.add({.key = "mix" + number,
                   .type = "BatchMatMul",
                   .inputs = {weights, past},
                   .bytes = bytes,
                   .flops = flops});
}

std::shared_ptr<const Graph> unrolled(std::size_t steps, const Sizes& sizes) {
  TrainingStep step;
  const std::int64_t from = sizes.embedding > 0 ? sizes.embedding : sizes.width;
  std::vector<Cell> cells;
  std::vector<State> states;
  const std::int64_t state_bytes = sizes.rows * sizes.width * kFloat;
  const Value zero = step.batch("zero", state_bytes);
  for (std::size_t n = 0; n < sizes.layers; ++n) {
    cells.emplace_back(step, "cell" + std::to_string(n), sizes.rows, n == 0 ? from : sizes.width,
                       sizes.width, sizes.window);
    states.push_back({zero, zero});
  }
  const std::int64_t table_bytes = sizes.vocabulary * from * kFloat;
  const Weight softmax = step.weight("softmax", sizes.vocabulary * sizes.width * kFloat);
  std::vector<Weight> table;
  if (sizes.embedding > 0) table.push_back(step.weight("embedding", table_bytes));
  std::vector<Value> losses, outputs;
  for (std::size_t time = 0; time < steps; ++time) {
    const std::string number = std::to_string(time);
    Value at = step.batch("x" + number, sizes.rows * (sizes.embedding > 0 ? 1 : from) * kFloat);
    if (!table.empty()) {
      at = step.add({.key = "embed" + number,
                     .type = "Gather",
                     .inputs = {at},
                     .weights = table,
                     .bytes = sizes.rows * from * kFloat});
    }
    for (std::size_t n = 0; n < sizes.layers; ++n) {
      states[n] = cells[n].advance(time, at, states[n]);
      at = states[n].output;
    }
    if (sizes.attended > 0) {
      outputs.push_back(at);
      at = attention(step, number, outputs, sizes);
    }
    at = step.add({.key = "logits" + number,
                   .type = "MatMul",
                   .inputs = {at},
                   .weights = {softmax},
                   .bytes = sizes.rows * sizes.vocabulary * kFloat,
                   .flops = 2 * sizes.rows * sizes.width * sizes.vocabulary});
    losses.push_back(step.add({.key = "entropy" + number,
                               .type = "CrossEntropy",
                               .inputs = {at},
                               .bytes = sizes.rows * kFloat,
                               .flops = 5 * sizes.rows * sizes.vocabulary}));
  }
  const Value total = step.add({.key = "total",
                                .type = "AddN",
                                .inputs = losses,
                                .bytes = sizes.rows * kFloat,
                                .backward = Backward::kPass});
  return step.finish({total});
}

}  // namespace

std::shared_ptr<const Graph> make_char_rnn(std::size_t ops, std::uint64_t seed) {
  Random random(seed);
  Sizes sizes{.layers = 3 + random.below(6),
              .rows = 64,
              .width = 512,
              .window = 1,
              .embedding = 0,
              .vocabulary = 256};
  return of_about(ops, [&](std::size_t steps) { return unrolled(steps, sizes); });
}

std::shared_ptr<const Graph> make_word_rnn(std::size_t ops, std::uint64_t seed) {
  Random random(seed);
  Sizes sizes{.layers = 2 + random.below(2),
              .rows = 128,
              .width = 1024,
              .window = 1,
              .embedding = 512,
              .vocabulary = 20'000};
  return of_about(ops, [&](std::size_t steps) { return unrolled(steps, sizes); });
}

std::shared_ptr<const Graph> make_grid(std::size_t ops, std::uint64_t seed) {
  Random random(seed);
  Sizes sizes{.layers = 4 + random.below(3),
              .rows = 4 * 32 * 32,
              .width = 64,
              .window = 25,
              .embedding = 0,
              .vocabulary = 64,
              .attended = 8};
  return of_about(ops, [&](std::size_t steps) { return unrolled(steps, sizes); });
}

}  // namespace pardnn
