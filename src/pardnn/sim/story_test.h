// Story: a graph as text, a machine and a plan in one line, and what the simulator says of it, as
// text that a test can compare. For tests only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pardnn/io/pdg_reader.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

// Devices d0, d1, ... with 1000 bytes each. A byte needs a nanosecond on every link.
struct StoryMachine {
  std::size_t devices = 2;
  std::int64_t capacity_bytes = 1000, reserve_bytes = 0, granularity_bytes = 1;
  std::int64_t bytes_per_second = 1'000'000'000;
  std::int64_t overhead_ns = 0, latency_ns = 0;
  std::string kind = "any";

  Machine build() const {
    return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(devices, capacity_bytes),
                             .kind = kind,
                             .bytes_per_second = bytes_per_second,
                             .overhead_ns = overhead_ns,
                             .latency_ns = latency_ns,
                             .granularity_bytes = granularity_bytes,
                             .reserve_bytes = reserve_bytes});
  }
};

// The same machine with one egress channel per sender and one ingress channel per receiver.
inline Machine with_ports(Machine machine) {
  machine.channels.clear();
  std::vector<ChannelId> out, in;
  for (const Device& device : machine.devices) {
    out.push_back(machine.channels.push(device.name + " out"));
  }
  for (const Device& device : machine.devices) {
    in.push_back(machine.channels.push(device.name + " in"));
  }
  for (std::size_t from = 0; from < out.size(); ++from) {
    for (std::size_t to = 0; to < in.size(); ++to) {
      auto& link = machine.links[from * in.size() + to];
      if (link) link->channels = {out[from], in[to]};
    }
  }
  return machine;
}

class Story {
 public:
  explicit Story(const std::string& graph, const Machine& machine = StoryMachine{}.build(),
                 Rules rules = {})
      : problem(read_pdg("pdg 1\n" + graph, "story"), machine, rules), simulator(problem) {
    placement.ops.resize(problem.graph().ops().size());
    placement.variables.assign(problem.graph().variables().size(), DeviceId{0});
    sequences.resize(problem.device_count());
  }

  // "d0: a b w | d1: c": ops in the order of their device's sequence, and variables. Those that are
  // not named stay on d0. False when the simulator finds no plan in it.
  bool run(const std::string& plan) {
    std::istringstream words(plan);
    DeviceId device{0};
    for (std::string word; words >> word;) {
      if (word == "|") continue;
      if (word.back() == ':') {
        device = *problem.machine().find(word.substr(0, word.size() - 1));
      } else if (const auto op = problem.graph().find_op(word)) {
        placement.ops[*op] = device;
        sequences[device].push_back(*op);
      } else {
        placement.variables[*problem.graph().find_variable(word)] = device;
      }
    }
    timeline = simulator.schedule(placement, sequences);
    return timeline != nullptr;
  }

  std::int64_t start(const std::string& op) const {
    return timeline->start_ns[*problem.graph().find_op(op)];
  }

  // "a=0 b=10", in the order of ids, without `every` ops.
  std::string starts() const {
    std::string text;
    for (OpId op : problem.graph().ops()) {
      if (problem.graph().is_every(op)) continue;
      add(text, key(op) + "=" + std::to_string(timeline->start_ns[op]));
    }
    return text;
  }

  // "a:0>d1 10+2..17": asked for at 10, started 2 later, there at 17. A control edge is "^a>d1".
  std::string transfers() const {
    std::string text;
    for (const Transfer& t : timeline->transfers) {
      add(text,
          (t.output ? key(t.producer) + ":" + std::to_string(*t.output) : "^" + key(t.producer)) +
              ">" + device_name(t.to) + " " + std::to_string(t.request_ns) + "+" +
              std::to_string(t.start_ns - t.request_ns) + ".." + std::to_string(t.arrival_ns),
          ", ");
    }
    return text;
  }

  // "d0=12@5": 12 bytes, first at 5.
  std::string peaks() {
    std::string text;
    const Table<DeviceId, Peak> peaks = simulator.peaks(false);
    for (DeviceId device : problem.devices()) {
      add(text, device_name(device) + "=" + std::to_string(peaks[device].bytes) + "@" +
                    std::to_string(peaks[device].at_ns));
    }
    return text;
  }

  std::string any_timing_peaks() {
    std::string text;
    const Table<DeviceId, Peak> peaks = simulator.peaks(true);
    for (DeviceId device : problem.devices()) {
      add(text, device_name(device) + "=" + std::to_string(peaks[device].any_timing_bytes));
    }
    return text;
  }

  // "a 4 [0,15)": a tensor in its own buffer; copies are "a' ", `every` buffers "a* ", variables
  // and the workspace of an op "ws(a) " likewise; "reserve".
  std::string buffers(const std::string& device) {
    std::string text;
    for (const Buffer& buffer : simulator.lifetimes()) {
      if (buffer.device != *problem.machine().find(device)) continue;
      add(text,
          name(buffer) + " " + std::to_string(buffer.bytes) + " [" +
              std::to_string(buffer.begin_ns) + "," + std::to_string(buffer.end_ns) + ")",
          ", ");
    }
    return text;
  }

  Problem problem;
  Simulator simulator;
  Placement placement;
  Sequences sequences;
  const Timeline* timeline = nullptr;

 private:
  static void add(std::string& text, const std::string& more, const char* between = " ") {
    text += (text.empty() ? "" : between) + more;
  }
  std::string key(OpId op) const { return std::string(problem.graph().key(op)); }
  std::string device_name(DeviceId device) const { return problem.machine().devices[device].name; }
  std::string name(const Buffer& buffer) const {
    std::string text;
    if (buffer.tensor) {
      const Tensor& tensor = problem.graph().tensor(*buffer.tensor);
      text = key(tensor.producer);
      if (tensor.number > 0) text += ":" + std::to_string(tensor.number);
    }
    switch (buffer.what) {
      case Buffer::What::kOutput:
        return text;
      case Buffer::What::kCopy:
        return text + "'";
      case Buffer::What::kEvery:
        return text + "*";
      case Buffer::What::kVariable:
        return std::string(problem.graph().key(*buffer.variable));
      case Buffer::What::kWorkspace:
        return "ws(" + key(*buffer.op) + ")";
      case Buffer::What::kReserve:
        return "reserve";
    }
    return text;
  }
};

}  // namespace pardnn
