#include "tests/properties/tangle.h"

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/io/pdg_reader.h"

namespace pardnn::properties {

namespace {

// What a tensor lies in: an own buffer, or a variable.
struct Store {
  std::vector<std::string> users;  // ops that made, read or modified it or an alias
  std::string last_update;         // of a variable
  std::int64_t bytes = 0;
  std::size_t epoch = 0;  // grows with every modification; older tensors are no longer read
};

struct Value {
  std::string text;  // KEY or KEY:n
  std::int64_t bytes = 0;
  std::size_t store = 0, epoch = 0;
  std::optional<int> group;  // that carries the whole chain of aliases
  bool is_every = false;
};

class Weaver {
 public:
  explicit Weaver(std::uint64_t seed) : random_(seed) {}

  std::string weave(std::size_t ops) {
    has_kinds_ = chance(50);
    has_order_ = chance(50);
    text_ = "pdg 1\n";
    if (has_kinds_) text_ += "kind gpu cpu\n";
    if (chance(30)) text_ += "group g0 on=d0\n";
    for (int group = 0; group < kGroups; ++group) {
      if (chance(70)) add_variable(group);
    }
    if (chance(30)) text_ += "var " + new_key() + " " + number(0, 50) + "\n";
    for (std::size_t n = 0; n < ops; ++n) add_op();
    return text_;
  }

 private:
  static constexpr int kGroups = 3;

  bool chance(std::uint32_t percent) { return random_.below(100) < percent; }
  std::string number(std::int64_t low, std::int64_t high) {
    return std::to_string(random_.between(low, high));
  }

  // Keys are numbers in no order, so that ids are not the order in which ops are made.
  std::string new_key() {
    while (true) {
      std::string key = "k" + number(100, 999);
      if (keys_.insert(key).second) return key;
    }
  }

  void add_variable(int group) {
    const std::string key = new_key();
    Store store;
    store.bytes = random_.between(0, 50);
    text_ +=
        "var " + key + " " + std::to_string(store.bytes) + " @g" + std::to_string(group) + "\n";
    variables_.emplace_back(key, stores_.size(), group);
    stores_.push_back(store);
  }

  void add_op() {
    inputs_.clear();
    controls_.clear();
    outputs_.clear();
    key_ = new_key();
    group_.reset();
    const std::uint32_t pick = random_.below(100);
    if (pick < 10) return add_every();
    if (pick < 22 && !variables_.empty()) return add_read();
    if (pick < 32 && !variables_.empty()) return add_update();
    add_ordinary();
  }

  bool is_fresh(const Value& value) const { return value.epoch == stores_[value.store].epoch; }

  std::optional<std::size_t> pick_value(bool every_only) {
    for (int tries = 0; tries < 20 && !values_.empty(); ++tries) {
      // Late ones more often, so that graphs grow deep.
      const auto count = static_cast<std::uint32_t>(values_.size());
      const std::uint32_t at =
          chance(60) && count > 5 ? count - 1 - random_.below(5) : random_.below(count);
      const Value& value = values_[at];
      if (is_fresh(value) && (!every_only || value.is_every)) return at;
    }
    return std::nullopt;
  }

  // Reads a value as the next data input and answers its place among them.
  std::size_t read(std::size_t value, bool modifies = false) {
    inputs_.push_back({value, modifies});
    return inputs_.size() - 1;
  }

  void read_some(std::uint32_t most, bool every_only) {
    for (std::uint32_t n = random_.below(most + 1); n > 0; --n) {
      if (const auto value = pick_value(every_only)) read(*value);
    }
  }

  void wait_for_some() {
    while (chance(25) && !ops_.empty()) {
      controls_.insert(ops_[random_.below(static_cast<std::uint32_t>(ops_.size()))]);
    }
  }

  struct InputUse {
    std::size_t value = 0;
    bool modifies = false;
  };

  void own_output() {
    std::int64_t bytes = chance(10) ? 0 : random_.between(1, 64);
    std::string text;
    if (!inputs_.empty() && chance(40)) {
      const std::size_t from = random_.below(static_cast<std::uint32_t>(inputs_.size()));
      const Value& over = values_[inputs_[from].value];
      if (!inputs_[from].modifies) {
        if (chance(80)) bytes = over.bytes;
        text = "~" + std::to_string(from + variable_inputs_);
      }
    }
    stores_.push_back({});
    finish_output(std::to_string(bytes) + text, {"", bytes, stores_.size() - 1, 0, group_, false});
  }

  void alias_output() {
    const std::size_t from = random_.below(static_cast<std::uint32_t>(inputs_.size()));
    Value alias = values_[inputs_[from].value];
    std::string text = "=" + std::to_string(from + variable_inputs_);
    if (chance(40)) {
      alias.bytes = random_.between(0, 64);
      text += "/" + std::to_string(alias.bytes);
    }
    if (alias.group != group_) alias.group.reset();
    finish_output(text, alias);
  }

  void finish_output(std::string text, Value value) {
    if (!is_every_ && chance(8)) text += "*";
    value.text = key_ + (outputs_.empty() ? "" : ":" + std::to_string(outputs_.size()));
    value.is_every = is_every_;
    outputs_.push_back(std::move(text));
    made_.push_back(std::move(value));
  }

  void make_outputs(std::uint32_t most) {
    for (std::uint32_t n = random_.below(most + 1); n > 0; --n) {
      if (!inputs_.empty() && chance(35)) {
        alias_output();
      } else {
        own_output();
      }
    }
  }

  void add_every() {
    is_every_ = true;
    read_some(1, true);
    make_outputs(2);
    write("Const", " every=1");
    is_every_ = false;
  }

  // An alias of a variable as the last update left it.
  void add_read() {
    const auto& [name, store, group] =
        variables_[random_.below(static_cast<std::uint32_t>(variables_.size()))];
    group_ = group;
    variable_text_ = name;
    variable_inputs_ = 1;
    if (!stores_[store].last_update.empty()) controls_.insert(stores_[store].last_update);
    Value alias{"", stores_[store].bytes, store, stores_[store].epoch, group_, false};
    std::string text = "=0";
    if (chance(30)) {
      alias.bytes = random_.between(0, 64);
      text += "/" + std::to_string(alias.bytes);
    }
    finish_output(text, alias);
    stores_[store].users.push_back(key_);
    wait_for_some();
    write("Read", "");
  }

  // Everything that has used the store comes first, and what was read of it before is not read
  // again.
  void modify(std::size_t store) {
    for (const std::string& user : stores_[store].users) controls_.insert(user);
    ++stores_[store].epoch;
  }

  void add_update() {
    const auto& [name, store, group] =
        variables_[random_.below(static_cast<std::uint32_t>(variables_.size()))];
    group_ = group;
    variable_text_ = "!" + name;
    variable_inputs_ = 1;
    modify(store);
    read_some(2, false);
    if (chance(30)) own_output();
    stores_[store].last_update = key_;
    stores_[store].users.push_back(key_);
    wait_for_some();
    write("Update", attributes());
  }

  void add_ordinary() {
    if (chance(40)) group_ = static_cast<int>(random_.below(kGroups));
    read_some(3, false);
    std::optional<std::size_t> changed;
    const auto value = group_ && chance(60) ? pick_value(false) : std::nullopt;
    if (value && values_[*value].group == group_ && !values_[*value].is_every && !reads(*value)) {
      changed = read(*value, true);
      modify(values_[*value].store);
      stores_[values_[*value].store].last_update = key_;
    }
    make_outputs(3);
    if (changed && chance(70)) {
      Value after = values_[*value];
      after.epoch = stores_[after.store].epoch;
      after.group = group_;
      finish_output("=" + std::to_string(*changed), after);
    }
    wait_for_some();
    write("Op", attributes());
  }

  // Whether an input lies in the same store: an op that modifies a buffer reads it in one way only.
  bool reads(std::size_t value) const {
    for (const InputUse& input : inputs_) {
      if (values_[input.value].store == values_[value].store) return true;
    }
    return false;
  }

  std::string attributes() { return chance(30) ? " ws=" + number(1, 40) : ""; }

  std::string cost() {
    if (!has_kinds_ || chance(50)) return number(0, 20);
    if (group_ || chance(70)) return number(0, 20) + "," + number(0, 20);
    return chance(50) ? "-," + number(0, 20) : number(0, 20) + ",-";
  }

  void write(const std::string& type, const std::string& more) {
    text_ += "op " + key_ + " " + type + " " + (is_every_ ? "0" : cost());
    std::string in = variable_text_.empty() ? "" : " " + variable_text_;
    for (const InputUse& input : inputs_) {
      Store& store = stores_[values_[input.value].store];
      store.users.push_back(key_);
      in += (input.modifies ? " !" : " ") + values_[input.value].text;
    }
    if (!is_every_) {
      for (const std::string& before : controls_) {
        if (before != key_) in += " ^" + before;
      }
    }
    if (!in.empty()) text_ += " <" + in;
    for (std::size_t n = 0; n < outputs_.size(); ++n) text_ += (n == 0 ? " > " : " ") + outputs_[n];
    if (group_) text_ += " @g" + std::to_string(*group_);
    text_ += more;
    if (has_order_ && !is_every_) text_ += " at=" + std::to_string(3 * ops_.size() + 1);
    text_ += "\n";
    for (Value& value : made_) {
      stores_[value.store].users.push_back(key_);
      // What an op makes of a store that it modifies itself is fresh; other aliases are too old.
      values_.push_back(std::move(value));
    }
    made_.clear();
    variable_text_.clear();
    variable_inputs_ = 0;
    ops_.push_back(key_);
  }

  Random random_;
  bool has_kinds_ = false, has_order_ = false, is_every_ = false;
  std::string text_;
  std::set<std::string> keys_;
  std::vector<std::tuple<std::string, std::size_t, int>> variables_;  // key, store, group
  std::vector<Store> stores_;
  std::vector<Value> values_, made_;
  std::vector<std::string> ops_;

  // Of the op being made.
  std::string key_, variable_text_;
  std::size_t variable_inputs_ = 0;
  std::optional<int> group_;
  std::vector<InputUse> inputs_;
  std::set<std::string> controls_;
  std::vector<std::string> outputs_;
};

}  // namespace

std::shared_ptr<const Graph> make_tangle(std::size_t ops, std::uint64_t seed) {
  return read_pdg(Weaver(seed).weave(ops), "tangle " + std::to_string(seed));
}

}  // namespace pardnn::properties
