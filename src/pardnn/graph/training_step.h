// TrainingStep: writes down the layers of a network and derives the whole step from them, with
// gradients, what they need of the forward pass, and the update of every weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pardnn/graph/builder.h"

namespace pardnn {

class TrainingStep {
 public:
  enum class Value : std::uint32_t {};   // an activation
  enum class Weight : std::uint32_t {};  // a variable that is trained

  // How a layer's gradients are computed.
  enum class Backward : std::uint8_t {
    kSeparate,  // one op for each input and each weight
    kJoint,     // one op with an output for each
    kPass,      // none: the gradient of the output is that of each input, as for a sum
  };

  struct Layer {
    std::string key;
    std::string_view type;
    std::vector<Value> inputs = {};
    std::vector<Weight> weights = {};
    std::int64_t bytes = 0;  // of the output
    std::int64_t flops = 0;
    std::int64_t workspace_bytes = 0;
    Backward backward = Backward::kSeparate;
    bool saves_output = false;  // gradients read the output instead of the inputs
    bool takes_over = false;    // the output may take over the buffer of the first input
  };

  TrainingStep();

  // A tensor that every device has, such as the batch.
  Value batch(const std::string& key, std::int64_t bytes);
  // A variable with its slots of the optimizer in one group, behind one read op.
  Weight weight(const std::string& key, std::int64_t bytes);
  Value add(const Layer& layer);
  // Ends the forward pass with a loss over these values, adds backward pass and updates, and
  // builds.
  std::shared_ptr<const Graph> finish(std::vector<Value> outputs);

 private:
  struct ValueRow {
    std::string key;
    std::int64_t bytes = 0;
    bool differentiable = true;
    std::vector<std::string> gradients = {};  // tensors whose sum is the gradient, KEY or KEY:n
  };
  struct WeightRow {
    std::string key, group;
    std::int64_t bytes = 0;
    std::vector<std::string> gradients = {};
    std::vector<std::string> readers = {};  // ops that read the weight through its read op
  };
  // An op about to be written; inputs as input_of() reads them.
  struct Step {
    std::string key = {};
    std::string_view type;
    std::vector<std::string> inputs = {};
    std::vector<OutputSpec> outputs = {};
    std::int64_t flops = 0, moved_bytes = 0, workspace_bytes = 0;
    Phase phase = Phase::kForward;
    std::string group = {};
  };

  void write(const Step& step);
  std::string sum(std::vector<std::string> gradients, const std::string& key, std::int64_t bytes);
  void differentiate(std::size_t layer);
  void gradient_of_inputs(const Layer& layer, const Step& shared);
  void gradient_of_weights(const Layer& layer, const Step& shared);
  void gradients_jointly(const Layer& layer, Step step);
  void update(WeightRow& weight);

  ValueRow& row(Value value) { return values_[static_cast<std::size_t>(value)]; }
  WeightRow& row(Weight weight) { return weights_[static_cast<std::size_t>(weight)]; }

  GraphBuilder builder_{"generated"};
  std::vector<ValueRow> values_;
  std::vector<WeightRow> weights_;
  std::vector<Layer> layers_;
  std::vector<Value> output_of_layer_;
};

// Time of an op on the device that generated graphs assume: 5 us to start, then 15 TFLOP/s or
// 900 GB/s, whichever takes longer.
std::int64_t analytical_cost_ns(std::int64_t flops, std::int64_t moved_bytes);

}  // namespace pardnn
