#include "pardnn/graph/training_step.h"

#include <algorithm>

#include "pardnn/base/error.h"
#include "pardnn/graph/specs.h"

namespace pardnn {
namespace {

constexpr std::int64_t kStartNs = 5'000;
constexpr std::int64_t kFlopsPerNs = 15'000;
constexpr std::int64_t kBytesPerNs = 900;
constexpr std::size_t kMostTerms = 16;  // of one op that sums
constexpr std::int64_t kLossBytes = 4;
constexpr int kSlots = 2;  // of the optimizer, each as large as its weight

}  // namespace

std::int64_t analytical_cost_ns(std::int64_t flops, std::int64_t moved_bytes) {
  return kStartNs + std::max(flops / kFlopsPerNs, moved_bytes / kBytesPerNs);
}

TrainingStep::TrainingStep() {
  builder_.about(
      {{"costs", "analytical"}, {"device", "5 us + max(flops / 15 TFLOP/s, bytes / 900 GB/s)"}});
}

TrainingStep::Value TrainingStep::batch(const std::string& key, std::int64_t bytes) {
  OpSpec op;
  op.key = key;
  op.type = "Input";
  op.costs = {Cost::known(0)};
  op.outputs = {sized(bytes)};
  op.every = true;
  builder_.op(op);
  values_.push_back({.key = key, .bytes = bytes, .differentiable = false});
  return Value{static_cast<std::uint32_t>(values_.size() - 1)};
}

TrainingStep::Weight TrainingStep::weight(const std::string& key, std::int64_t bytes) {
  VariableSpec variable;
  variable.key = key;
  variable.bytes = bytes;
  variable.group = key;
  builder_.variable(variable);
  for (int slot = 0; slot < kSlots; ++slot) {
    const std::string slot_key = key + "/slot" + std::to_string(slot);
    variable.key = slot_key;
    builder_.variable(variable);
  }
  OpSpec read;
  const std::string read_key = key + "/read";
  read.key = read_key;
  read.type = "Read";
  read.costs = {Cost::known(0)};
  read.inputs = {input_of(key)};
  read.outputs = {alias_of(0)};
  read.group = key;
  read.phase = Phase::kForward;
  builder_.op(read);
  weights_.push_back({.key = key, .group = key, .bytes = bytes});
  return Weight{static_cast<std::uint32_t>(weights_.size() - 1)};
}

void TrainingStep::write(const Step& step) {
  OpSpec op;
  op.key = step.key;
  op.type = step.type;
  op.costs = {Cost::known(analytical_cost_ns(step.flops, step.moved_bytes))};
  for (const std::string& input : step.inputs) op.inputs.push_back(input_of(input));
  op.outputs = step.outputs;
  if (!step.group.empty()) op.group = step.group;
  op.workspace_bytes = step.workspace_bytes;
  op.phase = step.phase;
  op.flops = step.flops;
  op.moved_bytes = step.moved_bytes;
  builder_.op(op);
}

TrainingStep::Value TrainingStep::add(const Layer& layer) {
  Step step{.key = layer.key,
            .type = layer.type,
            .outputs = {sized(layer.bytes)},
            .flops = layer.flops,
            .moved_bytes = layer.bytes,
            .workspace_bytes = layer.workspace_bytes};
  bool differentiable = !layer.weights.empty();
  for (const Value input : layer.inputs) {
    step.inputs.push_back(row(input).key);
    step.moved_bytes += row(input).bytes;
    differentiable = differentiable || row(input).differentiable;
  }
  for (const Weight weight : layer.weights) {
    step.inputs.push_back(row(weight).key + "/read");
    step.moved_bytes += row(weight).bytes;
    row(weight).readers.push_back(layer.key);
  }
  if (layer.takes_over) step.outputs[0].takes_over = 0;
  write(step);
  values_.push_back({.key = layer.key, .bytes = layer.bytes, .differentiable = differentiable});
  layers_.push_back(layer);
  output_of_layer_.push_back(Value{static_cast<std::uint32_t>(values_.size() - 1)});
  return output_of_layer_.back();
}

// The tensor that holds the sum of gradients; ops of at most kMostTerms inputs, each taking over
// the buffer of the sum so far.
std::string TrainingStep::sum(std::vector<std::string> gradients, const std::string& key,
                              std::int64_t bytes) {
  PARDNN_CHECK(!gradients.empty());
  std::string so_far = gradients[0];
  for (std::size_t at = 1, number = 0; at < gradients.size(); ++number) {
    Step step{.key = key + "/sum" + std::to_string(number),
              .type = "AddN",
              .inputs = {so_far},
              .outputs = {taking_over(bytes, 0)},
              .moved_bytes = 2 * bytes,
              .phase = Phase::kBackward};
    for (; at < gradients.size() && step.inputs.size() < kMostTerms; ++at) {
      step.inputs.push_back(gradients[at]);
      step.flops += bytes / 4;
      step.moved_bytes += bytes;
    }
    write(step);
    so_far = step.key;
  }
  return so_far;
}

void TrainingStep::differentiate(std::size_t number) {
  const Layer& layer = layers_[number];
  ValueRow& output = row(output_of_layer_[number]);
  if (output.gradients.empty() || !output.differentiable) return;
  const std::string gradient = sum(output.gradients, layer.key, output.bytes);
  if (layer.backward == Backward::kPass) {
    for (const Value input : layer.inputs) {
      if (row(input).differentiable) row(input).gradients.push_back(gradient);
    }
    return;
  }
  Step step{.type = "Gradient",
            .inputs = {gradient},
            .flops = layer.flops,
            .moved_bytes = output.bytes,
            .workspace_bytes = layer.workspace_bytes,
            .phase = Phase::kBackward};
  if (layer.saves_output) {
    step.inputs.push_back(output.key);
    step.moved_bytes += output.bytes;
  }
  if (layer.backward == Backward::kJoint) {
    gradients_jointly(layer, std::move(step));
  } else {
    gradient_of_inputs(layer, step);
    gradient_of_weights(layer, step);
  }
}

// The gradient of an input reads the weights and the other inputs, those that a product needs.
void TrainingStep::gradient_of_inputs(const Layer& layer, const Step& shared) {
  for (std::size_t n = 0; n < layer.inputs.size(); ++n) {
    ValueRow& input = row(layer.inputs[n]);
    if (!input.differentiable) continue;
    Step step = shared;
    step.key = layer.key + "/d" + std::to_string(n);
    for (std::size_t other = 0; other < layer.inputs.size(); ++other) {
      const bool is_own = other == n && layer.inputs.size() + layer.weights.size() > 1;
      if (layer.saves_output || is_own) continue;
      step.inputs.push_back(row(layer.inputs[other]).key);
      step.moved_bytes += row(layer.inputs[other]).bytes;
    }
    for (const Weight weight : layer.weights) {
      step.inputs.push_back(row(weight).key + "/read");
      step.moved_bytes += row(weight).bytes;
      row(weight).readers.push_back(step.key);
    }
    const bool same_size = input.bytes == layer.bytes;
    step.outputs = {same_size ? taking_over(input.bytes, 0) : sized(input.bytes)};
    step.moved_bytes += input.bytes;
    write(step);
    input.gradients.push_back(step.key);
  }
}

void TrainingStep::gradient_of_weights(const Layer& layer, const Step& shared) {
  for (std::size_t n = 0; n < layer.weights.size(); ++n) {
    WeightRow& weight = row(layer.weights[n]);
    Step step = shared;
    step.key = layer.key + "/w" + std::to_string(n);
    for (const Value input : layer.inputs) {
      if (layer.saves_output) continue;
      step.inputs.push_back(row(input).key);
      step.moved_bytes += row(input).bytes;
    }
    step.outputs = {sized(weight.bytes)};
    step.moved_bytes += weight.bytes;
    write(step);
    weight.gradients.push_back(step.key);
  }
}

void TrainingStep::gradients_jointly(const Layer& layer, Step step) {
  step.key = layer.key + "/d";
  step.flops *= 2;
  const auto add_gradient = [&](std::int64_t bytes, std::vector<std::string>& gradients) {
    const std::size_t number = step.outputs.size();
    gradients.push_back(number == 0 ? step.key : step.key + ':' + std::to_string(number));
    step.outputs.push_back(sized(bytes));
    step.moved_bytes += bytes;
  };
  for (const Value input : layer.inputs) {
    if (!layer.saves_output) {
      step.inputs.push_back(row(input).key);
      step.moved_bytes += row(input).bytes;
    }
    if (row(input).differentiable) add_gradient(row(input).bytes, row(input).gradients);
  }
  for (const Weight weight : layer.weights) {
    step.inputs.push_back(row(weight).key + "/read");
    step.moved_bytes += row(weight).bytes;
    row(weight).readers.push_back(step.key);
    add_gradient(row(weight).bytes, row(weight).gradients);
  }
  write(step);
}

// The update waits for all that reads the weight of this step, as rule M4 asks.
void TrainingStep::update(WeightRow& weight) {
  if (weight.gradients.empty()) return;
  Step step{.key = weight.key + "/update",
            .type = "Adam",
            .inputs = {sum(weight.gradients, weight.key, weight.bytes), '!' + weight.key},
            .flops = 3 * weight.bytes,
            .moved_bytes = (2 * (1 + kSlots) + 1) * weight.bytes,
            .phase = Phase::kUpdate,
            .group = weight.group};
  for (int slot = 0; slot < kSlots; ++slot) {
    step.inputs.push_back('!' + weight.key + "/slot" + std::to_string(slot));
  }
  step.inputs.push_back('^' + weight.key + "/read");
  for (const std::string& reader : weight.readers) step.inputs.push_back('^' + reader);
  write(step);
}

std::shared_ptr<const Graph> TrainingStep::finish(std::vector<Value> outputs) {
  const Value one = batch("one", kLossBytes);
  Step loss{.key = "loss", .type = "Loss", .outputs = {fetched(sized(kLossBytes))}};
  for (const Value output : outputs) {
    loss.inputs.push_back(row(output).key);
    loss.flops += row(output).bytes;
    loss.moved_bytes += row(output).bytes;
  }
  write(loss);
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    ValueRow& output = row(outputs[n]);
    if (!output.differentiable) continue;
    Step step{.key = "loss/d" + std::to_string(n),
              .type = "Gradient",
              .inputs = {row(one).key, "loss", output.key},
              .outputs = {sized(output.bytes)},
              .flops = output.bytes,
              .moved_bytes = 2 * output.bytes,
              .phase = Phase::kBackward};
    write(step);
    output.gradients.push_back(step.key);
  }
  for (std::size_t layer = layers_.size(); layer-- > 0;) differentiate(layer);
  for (WeightRow& weight : weights_) update(weight);
  return builder_.build();
}

}  // namespace pardnn
