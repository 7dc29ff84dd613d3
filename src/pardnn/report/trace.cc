#include "pardnn/report/trace.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "pardnn/base/error.h"

namespace pardnn {

namespace json = boost::json;

namespace {

// The format counts in microseconds; three digits keep nanoseconds exact.
std::string microseconds(std::int64_t ns) {
  std::string digits = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
}

// One event a line; numbers with a fraction are written as text above, since a double would
// lose the nanoseconds of a long step.
class Events {
 public:
  void name_track(std::uint32_t process, std::uint32_t track, std::string_view name) {
    line("{\"ph\":\"M\",\"name\":\"thread_name\"" + ids(process, track) +
         ",\"args\":{\"name\":" + quoted(name) + "}}");
  }
  void name_process(std::uint32_t process, std::string_view name) {
    line("{\"ph\":\"M\",\"name\":\"process_name\"" + ids(process, 0) +
         ",\"args\":{\"name\":" + quoted(name) + "}}");
  }
  void span(std::uint32_t process, std::uint32_t track, std::string_view name,
            std::string_view category, std::int64_t begin_ns, std::int64_t end_ns,
            const json::object& more) {
    line("{\"ph\":\"X\",\"name\":" + quoted(name) + ",\"cat\":" + quoted(category) +
         ids(process, track) + ",\"ts\":" + microseconds(begin_ns) + ",\"dur\":" +
         microseconds(end_ns - begin_ns) + ",\"args\":" + json::serialize(more) + "}");
  }
  void counter(std::uint32_t process, std::string_view name, std::int64_t at_ns,
               std::int64_t value) {
    line("{\"ph\":\"C\",\"name\":" + quoted(name) + ids(process, 0) +
         ",\"ts\":" + microseconds(at_ns) + ",\"args\":{\"bytes\":" + std::to_string(value) + "}}");
  }
  std::string text() const {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + lines_ + "\n]}\n";
  }

 private:
  static std::string quoted(std::string_view text) { return json::serialize(json::string(text)); }
  static std::string ids(std::uint32_t process, std::uint32_t track) {
    return ",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(track);
  }
  void line(const std::string& event) {
    if (!lines_.empty()) lines_ += ",\n";
    lines_ += event;
  }
  std::string lines_;
};

constexpr std::uint32_t kDevices = 1, kChannels = 2, kMemory = 3;

void add_ops(Events& events, const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph();
  for (const DeviceId device : problem.devices()) {
    events.name_track(kDevices, index(device), problem.machine().devices[device].name);
    for (const OpId op : plan.sequences[device]) {
      const std::int64_t start = plan.prediction.start_ns[op];
      const auto& name = graph.notes(op).name;
      events.span(kDevices, index(device), name ? std::string_view(*name) : graph.key(op),
                  graph.type(op), start, start + problem.duration_ns(op, device),
                  {{"key", json::string(graph.key(op))}});
    }
  }
}

void add_transfers(Events& events, const Problem& problem, const Plan& plan) {
  const Machine& machine = problem.machine();
  for (const ChannelId channel : machine.channels.ids()) {
    events.name_track(kChannels, index(channel), machine.channels[channel]);
  }
  for (const Transfer& transfer : plan.prediction.transfers) {
    const std::string key(problem.graph().key(transfer.producer));
    const std::string name =
        transfer.output ? key + ":" + std::to_string(*transfer.output) : "^" + key;
    const std::int64_t free =
        transfer.start_ns + problem.busy_ns(transfer.bytes, transfer.from, transfer.to);
    for (const ChannelId channel : problem.link(transfer.from, transfer.to).channels) {
      events.span(kChannels, index(channel), name, "transfer", transfer.start_ns, free,
                  {{"bytes", transfer.bytes},
                   {"from", machine.devices[transfer.from].name},
                   {"to", machine.devices[transfer.to].name},
                   {"requested_ns", transfer.request_ns},
                   {"arrives_ns", transfer.arrival_ns}});
    }
  }
}

void add_memory(Events& events, const Problem& problem, const std::vector<Buffer>& buffers) {
  for (const DeviceId device : problem.devices()) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const Buffer& buffer : buffers) {
      if (buffer.device != device) continue;
      changes.emplace_back(buffer.begin_ns, buffer.bytes);
      changes.emplace_back(buffer.end_ns, -buffer.bytes);
    }
    std::sort(changes.begin(), changes.end());
    const std::string name = problem.machine().devices[device].name + " memory";
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      bytes += changes[i].second;
      const bool is_last = i + 1 == changes.size() || changes[i + 1].first != changes[i].first;
      if (is_last) events.counter(kMemory, name, changes[i].first, bytes);
    }
  }
}

}  // namespace

std::string trace_json(const Problem& problem, const Plan& plan) {
  Events events;
  events.name_process(kDevices, "devices");
  events.name_process(kChannels, "channels");
  events.name_process(kMemory, "memory");
  add_ops(events, problem, plan);
  add_transfers(events, problem, plan);
  Simulator simulator(problem);
  Sequences sequences = plan.sequences;
  PARDNN_CHECK(simulator.schedule(plan.placement, sequences) != nullptr);
  add_memory(events, problem, simulator.lifetimes());
  return events.text();
}

}  // namespace pardnn
