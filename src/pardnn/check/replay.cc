#include "pardnn/check/replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace pardnn::checking {

namespace {

// What an op waits for: data producers and control edges that are not `every` ops, each once.
std::set<OpId> awaited(const Graph& graph, OpId op) {
  std::set<OpId> ops(graph.controls(op).begin(), graph.controls(op).end());
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const OpId producer = graph.tensor(input.tensor()).producer;
    if (!graph.is_every(producer)) ops.insert(producer);
  }
  return ops;
}

class Loop {
 public:
  Loop(const Problem& problem, const Plan& plan)
      : problem_(problem),
        graph_(problem.graph()),
        plan_(plan),
        fifo_(problem.rules().dispatch == Dispatch::kFifo),
        waiting_for_(graph_.ops().size()),
        ready_ns_(graph_.ops().size(), 0),
        started_(graph_.ops().size(), 0),
        running_(problem.device_count()),
        channel_free_ns_(problem.machine().channels.size(), 0),
        position_(problem.device_count(), 0),
        ready_(problem.device_count()) {
    replay_.start_ns.assign(graph_.ops().size(), 0);
    replay_.finish_ns.assign(graph_.ops().size(), 0);
    replay_.sequences.resize(problem.device_count());
  }

  ReplayResult run() {
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      ++unfinished_;
      waiting_for_[op] = awaits_of(op);
      if (waiting_for_[op] == 0) ready_[device(op)].emplace(0, op);
    }
    instants_.insert(0);
    while (!instants_.empty() && problem_text_.empty()) {
      const std::int64_t now = *instants_.begin();
      instants_.erase(instants_.begin());
      finish_ops(now);
      grant_transfers(now);
      take_arrivals(now);
      start_ops(now);
    }
    if (problem_text_.empty() && unfinished_ > 0) problem_text_ = describe_wait();
    if (!problem_text_.empty()) return {std::nullopt, problem_text_};
    return {std::move(replay_), ""};
  }

 private:
  DeviceId device(OpId op) const { return *plan_.placement.ops[op]; }

  // How many signals an op waits for: one per local op, one per tensor copy and one per remote
  // control edge.
  std::size_t awaits_of(OpId op) const {
    std::set<OpId> local;
    std::set<TensorId> copies;
    std::size_t signals = 0;
    for (const Input& input : graph_.inputs(op)) {
      if (input.is_variable()) continue;
      const OpId producer = graph_.tensor(input.tensor()).producer;
      if (graph_.is_every(producer)) continue;
      if (device(producer) == device(op)) {
        local.insert(producer);
      } else {
        copies.insert(input.tensor());
      }
    }
    for (const OpId before : graph_.controls(op)) {
      if (device(before) == device(op)) {
        local.insert(before);
      } else {
        ++signals;
      }
    }
    return local.size() + copies.size() + signals;
  }

  void signal(OpId op, std::int64_t now) {
    ready_ns_[op] = std::max(ready_ns_[op], now);
    if (--waiting_for_[op] == 0) ready_[device(op)].emplace(ready_ns_[op], op);
  }

  void finish_ops(std::int64_t now) {
    for (const DeviceId at : problem_.devices()) {
      const auto op = running_[at];
      if (!op || replay_.finish_ns[*op] != now) continue;
      running_[at].reset();
      --unfinished_;
      replay_.step_ns = std::max(replay_.step_ns, now);
      std::set<OpId> local;
      for (const TensorId tensor : graph_.outputs(*op)) {
        for (const OpId reader : graph_.readers(tensor)) {
          if (device(reader) == at) {
            local.insert(reader);
          } else {
            request(*op, graph_.tensor(tensor).number, device(reader));
          }
        }
      }
      for (const OpId reader : graph_.control_readers(*op)) {
        if (device(reader) == at) {
          local.insert(reader);
        } else {
          request(*op, std::nullopt, device(reader));
        }
      }
      for (const OpId reader : local) signal(reader, now);
    }
  }

  // Requests of one instant in the order in which they are granted (rule T3); a control edge comes
  // after the tensors of its op (rule T7), and what several readers want is sent once (rule T1).
  void request(OpId producer, std::optional<std::uint32_t> output, DeviceId to) {
    requests_.emplace(producer, !output, output.value_or(0), to);
  }

  void grant_transfers(std::int64_t now) {
    for (const auto& [producer, is_control, number, to] : requests_) {
      const DeviceId from = device(producer);
      const auto& link = problem_.machine().link(from, to);
      if (!link) {
        problem_text_ = "op " + std::string(graph_.key(producer)) + " is read on " +
                        problem_.machine().devices[to].name + ", and " +
                        problem_.machine().devices[from].name + " has no link to it";
        return;
      }
      Transfer transfer{producer, std::nullopt, from, to};
      if (!is_control) {
        transfer.output = number;
        transfer.bytes = problem_.bytes(graph_.outputs(producer)[number]);
      }
      transfer.request_ns = transfer.start_ns = now;
      const std::int64_t busy = problem_.busy_ns(transfer.bytes, from, to);
      if (problem_.rules().contention) {
        for (const ChannelId channel : link->channels) {
          transfer.start_ns = std::max(transfer.start_ns, channel_free_ns_[channel]);
        }
        for (const ChannelId channel : link->channels) {
          channel_free_ns_[channel] = transfer.start_ns + busy;
        }
      }
      transfer.arrival_ns = transfer.start_ns + busy + link->latency_ns;
      replay_.bytes_sent += transfer.bytes;
      replay_.transfers.push_back(transfer);
      arrivals_[transfer.arrival_ns].push_back(transfer);
      instants_.insert(transfer.arrival_ns);
    }
    requests_.clear();
  }

  void take_arrivals(std::int64_t now) {
    const auto found = arrivals_.find(now);
    if (found == arrivals_.end()) return;
    for (const Transfer& transfer : found->second) {
      const auto readers = transfer.output
                               ? graph_.readers(graph_.outputs(transfer.producer)[*transfer.output])
                               : graph_.control_readers(transfer.producer);
      for (const OpId reader : readers) {
        if (device(reader) == transfer.to) signal(reader, now);
      }
    }
    arrivals_.erase(found);
  }

  void start_ops(std::int64_t now) {
    for (const DeviceId at : problem_.devices()) {
      if (running_[at]) continue;
      const auto op = fifo_ ? first_ready(at) : next_of_sequence(at);
      if (!op) continue;
      started_[*op] = 1;
      running_[at] = op;
      replay_.sequences[at].push_back(*op);
      replay_.start_ns[*op] = now;
      replay_.finish_ns[*op] = now + problem_.duration_ns(*op, at);
      instants_.insert(replay_.finish_ns[*op]);
    }
  }

  std::optional<OpId> first_ready(DeviceId at) {
    auto& ready = ready_[at];
    if (ready.empty()) return std::nullopt;
    const OpId op = ready.begin()->second;
    ready.erase(ready.begin());
    return op;
  }

  std::optional<OpId> next_of_sequence(DeviceId at) {
    const auto& sequence = plan_.sequences[at];
    if (position_[at] == sequence.size()) return std::nullopt;
    const OpId op = sequence[position_[at]];
    if (waiting_for_[op] > 0) return std::nullopt;
    ++position_[at];
    return op;
  }

  // Follows what each op waits for until an op comes up twice: the cycle of rule D4.
  std::string describe_wait() const {
    Table<OpId, std::optional<OpId>> before(graph_.ops().size());
    for (const DeviceId at : problem_.devices()) {
      const auto& sequence = plan_.sequences[at];
      for (std::size_t i = 1; i < sequence.size(); ++i) before[sequence[i]] = sequence[i - 1];
    }
    std::optional<OpId> at;
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op) && !started_[op]) {
        at = op;
        break;
      }
    }
    std::vector<OpId> path;
    std::map<OpId, std::size_t> seen;
    while (at && seen.emplace(*at, path.size()).second) {
      path.push_back(*at);
      std::optional<OpId> cause;
      for (const OpId op : awaited(graph_, *at)) {
        if (!started_[op]) cause = op;
      }
      if (!cause && before[*at] && !started_[*before[*at]]) cause = before[*at];
      at = cause;
    }
    std::string text = "sequences and edges form a cycle:";
    for (std::size_t i = at ? seen.at(*at) : 0; i < path.size(); ++i) {
      text += " " + std::string(graph_.key(path[i])) + " waits for";
    }
    return at ? text + " " + std::string(graph_.key(*at)) : text;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  const bool fifo_;
  Replay replay_;
  std::string problem_text_;
  std::size_t unfinished_ = 0;
  Table<OpId, std::size_t> waiting_for_;
  Table<OpId, std::int64_t> ready_ns_;
  Table<OpId, char> started_;
  Table<DeviceId, std::optional<OpId>> running_;
  Table<ChannelId, std::int64_t> channel_free_ns_;
  Table<DeviceId, std::size_t> position_;
  Table<DeviceId, std::set<std::pair<std::int64_t, OpId>>> ready_;
  std::set<std::tuple<OpId, bool, std::uint32_t, DeviceId>> requests_;
  std::map<std::int64_t, std::vector<Transfer>> arrivals_;
  std::set<std::int64_t> instants_;
};

}  // namespace

ReplayResult replay(const Problem& problem, const Plan& plan) { return Loop(problem, plan).run(); }

}  // namespace pardnn::checking
