// Books: the memory of every device over time while units are moved, without simulating again.
#include "pardnn/partition/books.h"

#include <algorithm>
#include <map>

#include "pardnn/base/error.h"

namespace pardnn {
namespace {

constexpr std::size_t kMostHolders = 8;  // of a buffer that is to leave

}  // namespace

Books::Books(const Problem& problem, const Times& times, UnitPlacement placement,
             const Timeline& timeline, const std::vector<Buffer>& lifetimes)
    : problem_(problem),
      times_(times),
      placement_(std::move(placement)),
      finish_ns_(timeline.finish_ns),
      device_(problem.graph().ops().size()),
      runs_(problem.graph().ops().size()),
      producer_(problem.graph().tensors().size()),
      shared_input_(problem.graph().tensors().size()),
      shares_(problem.graph().ops().size(), 0),
      lives_(problem.graph().tensors().size() * problem.device_count()),
      limit_bytes_(problem.device_count(), 0) {
  for (const DeviceId device : problem.devices()) {
    limit_bytes_[device] = problem.limit_bytes(device);
  }
  choose_moments(timeline);
  note_transfers(timeline);
  note_shared_inputs(lifetimes);
  profiles_ = Table<DeviceId, Profile>(problem.device_count(), Profile(moments_.size()));
  enter_everything();
}

// Bytes only grow where an op or a transfer starts.
void Books::choose_moments(const Timeline& timeline) {
  moments_.push_back(0);
  for (const OpId op : problem_.graph().ops()) moments_.push_back(timeline.start_ns[op]);
  for (const Transfer& transfer : timeline.transfers) moments_.push_back(transfer.start_ns);
  std::sort(moments_.begin(), moments_.end());
  moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
  step_ = {0, std::max(1U, moment_after(timeline.step_ns))};
  for (const OpId op : problem_.graph().ops()) {
    const std::uint32_t start = moment_before(timeline.start_ns[op]);
    runs_[op] = {start, std::max(start + 1, moment_after(timeline.finish_ns[op]))};
  }
}

std::uint32_t Books::moment_before(std::int64_t time_ns) const {
  return static_cast<std::uint32_t>(std::upper_bound(moments_.begin(), moments_.end(), time_ns) -
                                    moments_.begin() - 1);
}

std::uint32_t Books::moment_after(std::int64_t time_ns) const {
  return static_cast<std::uint32_t>(std::lower_bound(moments_.begin(), moments_.end(), time_ns) -
                                    moments_.begin());
}

void Books::note_transfers(const Timeline& timeline) {
  const Graph& graph = problem_.graph();
  std::vector<std::pair<TensorId, Sent>> all;
  for (const Transfer& transfer : timeline.transfers) {
    if (!transfer.output.has_value()) continue;
    all.emplace_back(
        graph.outputs(transfer.producer)[*transfer.output],
        Sent{transfer.to, moment_before(transfer.start_ns), moment_after(transfer.arrival_ns)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.to) < std::pair(b.first, b.second.to);
  });
  auto at = all.begin();
  for (const TensorId tensor : graph.tensors()) {
    for (; at != all.end() && at->first == tensor; ++at) sent_.add(at->second);
    sent_.close();
  }
}

// A tensor that may take over a buffer and is not the first in any did take one over.
void Books::note_shared_inputs(const std::vector<Buffer>& lifetimes) {
  const Graph& graph = problem_.graph();
  Table<TensorId, char> is_first(graph.tensors().size(), 0);
  for (const Buffer& buffer : lifetimes) {
    if (buffer.what == Buffer::What::kOutput) is_first[*buffer.tensor] = 1;
  }
  for (const TensorId tensor : graph.tensors()) {
    const Tensor& output = graph.tensor(tensor);
    producer_[tensor] = output.producer;
    const bool took_over = output.takes_over.has_value() && !is_first[tensor];
    shared_input_[tensor] = took_over ? output.takes_over : output.alias_of;
    if (shared_input_[tensor].has_value()) shares_[output.producer] = 1;
  }
}

void Books::enter_everything() {
  const Graph& graph = problem_.graph();
  for (const DeviceId device : problem_.devices()) {
    profiles_[device].add(0, moments_.size(), problem_.reserve_bytes(device));
  }
  for (const UnitId unit : problem_.units()) put(unit, placement_[unit], +1);
  std::vector<DeviceId> devices;
  for (const TensorId tensor : graph.tensors()) {
    if (graph.is_every(producer_[tensor])) continue;
    devices.assign(1, home(tensor));
    for (const OpId reader : graph.readers(tensor)) devices.push_back(home(reader));
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    for (const DeviceId device : devices) {
      if (root(tensor, device) == tensor) set_life({tensor, device}, life({tensor, device}));
    }
  }
  forget_marks();
}

std::int64_t Books::overflow_bytes(DeviceId device) const {
  return std::max<std::int64_t>(0, profiles_[device].most() - limit_bytes_[device]);
}

std::optional<TensorId> Books::root(TensorId tensor, DeviceId device) const {
  const Graph& graph = problem_.graph();
  while (true) {
    const OpId producer = producer_[tensor];
    if (graph.is_every(producer)) return std::nullopt;
    if (home(producer) != device) return tensor;
    const std::optional<std::uint32_t> input = shared_input_[tensor];
    if (!input.has_value()) return tensor;
    if (graph.inputs(producer)[*input].is_variable()) return std::nullopt;
    tensor = graph.inputs(producer)[*input].tensor();
  }
}

Books::Sent Books::sent(TensorId tensor, DeviceId to) const {
  for (const Sent& known : sent_[tensor]) {
    if (known.to == to) return known;
  }
  const OpId producer = producer_[tensor];
  const std::int64_t request_ns = finish_ns_[producer];
  return {to, moment_before(request_ns),
          moment_after(saturating_add(request_ns, times_.mean_crossing_ns(tensor)))};
}

// Calls visit(reader) for every op on the place's device that reads the buffer, and
// visit_tensor(tensor) for every tensor that lies in it.
template <class VisitReader, class VisitTensor>
void Books::walk(Place place, VisitReader visit_reader, VisitTensor visit_tensor) const {
  const Graph& graph = problem_.graph();
  std::vector<TensorId> open;
  TensorId tensor = place.tensor;
  while (true) {
    visit_tensor(tensor);
    for (const OpId reader : graph.readers(tensor)) {
      if (home(reader) != place.device) continue;
      visit_reader(reader);
      if (!shares_[reader]) continue;
      for (const TensorId output : graph.outputs(reader)) {
        const std::optional<std::uint32_t> shared = shared_input_[output];
        if (!shared.has_value()) continue;
        const Input& input = graph.inputs(reader)[*shared];
        if (!input.is_variable() && input.tensor() == tensor) open.push_back(output);
      }
    }
    if (open.empty()) return;
    tensor = open.back();
    open.pop_back();
  }
}

Books::Span Books::life(Place place) const {
  const Graph& graph = problem_.graph();
  const OpId producer = producer_[place.tensor];
  const bool own = home(producer) == place.device;
  Span span;
  if (own) {
    span = runs_[producer];
  } else {
    span.begin = span.end = sent(place.tensor, place.device).begin;
  }
  ++work_;
  bool read = false;
  walk(
      place,
      [&](OpId reader) {
        read = true;
        span.end = std::max(span.end, runs_[reader].end);
      },
      [&](TensorId tensor) {
        if (home(tensor) != place.device) return;  // the copy itself is sent from its home
        if (graph.tensor(tensor).fetched) span.end = std::max(span.end, step_.end);
        for (const OpId reader : graph.readers(tensor)) {
          if (home(reader) == place.device) continue;
          span.end = std::max(span.end, sent(tensor, home(reader)).end);
        }
      });
  if (!own && !read) return {};
  span.end = std::max(span.end, span.begin + 1);
  return span;
}

void Books::set_life(Place place, Span span) {
  Span& known = lives_[slot(place)];
  if (known == span) return;
  lives_before_.push_back({place, known});
  const std::int64_t bytes = problem_.buffer_bytes(place.tensor);
  Profile& profile = profiles_[place.device];
  // Only what differs: ends of a life change more often than the whole.
  if (known.begin < span.end && span.begin < known.end) {
    profile.add(known.begin, span.begin, -bytes);
    profile.add(span.begin, known.begin, bytes);
    profile.add(known.end, span.end, bytes);
    profile.add(span.end, known.end, -bytes);
  } else {
    profile.add(known.begin, known.end, -bytes);
    profile.add(span.begin, span.end, bytes);
  }
  known = span;
}

// The unit comes (+1) or goes, with what does not depend on where others are: variables,
// workspace, `every` values.
void Books::put(UnitId unit, DeviceId device, int sign) {
  const Graph& graph = problem_.graph();
  Profile& profile = profiles_[device];
  for (const VariableId variable : problem_.variables(unit)) {
    profile.add(step_.begin, step_.end, sign * problem_.buffer_bytes(variable));
  }
  for (const OpId op : problem_.ops(unit)) {
    device_[op] = device;
    if (const std::int64_t bytes = problem_.workspace_bytes(op); bytes > 0) {
      profile.add(runs_[op].begin, runs_[op].end, sign * bytes);
    }
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      if (!graph.is_every(producer_[input.tensor()])) continue;
      const TensorId origin = *graph.origin(input.tensor()).tensor;
      const std::uint64_t key = std::uint64_t{index(origin)} * kMaxDevices + index(device);
      std::uint32_t& readers = every_readers_[key];
      const bool there = readers > 0;
      readers += static_cast<std::uint32_t>(sign);
      if (there != (readers > 0)) {
        profile.add(step_.begin, step_.end, sign * problem_.buffer_bytes(origin));
      }
    }
  }
}

// Every buffer whose life may change when the unit goes from one of the devices to the other.
void Books::note_touched(UnitId unit, DeviceId a, DeviceId b) {
  const Graph& graph = problem_.graph();
  const auto note = [&](TensorId tensor, DeviceId device) {
    if (const auto first = root(tensor, device)) touched_.push_back({*first, device});
  };
  for (const OpId op : problem_.ops(unit)) {
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      const TensorId tensor = input.tensor();
      if (graph.is_every(producer_[tensor])) continue;
      note(tensor, a);
      note(tensor, b);
      const DeviceId where = home(tensor);
      if (where != a && where != b) note(tensor, where);
    }
    for (const TensorId tensor : graph.outputs(op)) {
      note(tensor, a);
      note(tensor, b);
    }
  }
}

void Books::move(UnitId unit, DeviceId to) {
  const DeviceId from = placement_[unit];
  if (from == to) return;
  places_before_.emplace_back(unit, from);
  touched_.clear();
  note_touched(unit, from, to);
  put(unit, from, -1);
  placement_[unit] = to;
  put(unit, to, +1);
  note_touched(unit, from, to);
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const Place& place : touched_) {
    const bool is_first = root(place.tensor, place.device) == place.tensor;
    set_life(place, is_first ? life(place) : Span{});
  }
}

void Books::forget_marks() {
  lives_before_.clear();
  places_before_.clear();
}

void Books::undo(Mark mark) {
  while (places_before_.size() > mark.places) {
    const auto [unit, device] = places_before_.back();
    places_before_.pop_back();
    put(unit, placement_[unit], -1);
    placement_[unit] = device;
    put(unit, device, +1);
  }
  for (std::size_t n = lives_before_.size(); n-- > mark.lives;) {
    const Before before = lives_before_[n];
    set_life(before.place, before.span);
  }
  lives_before_.resize(mark.lives);
}

Books::Span Books::alive(UnitId unit) const {
  if (!problem_.variables(unit).empty() || problem_.ops(unit).empty()) return step_;
  Span span = runs_[problem_.ops(unit).front()];
  for (const OpId op : problem_.ops(unit)) {
    span.begin = std::min(span.begin, runs_[op].begin);
    span.end = std::max(span.end, runs_[op].end);
    for (const TensorId tensor : problem_.graph().outputs(op)) {
      const auto first = root(tensor, home(op));
      if (!first.has_value()) continue;
      span.end = std::max(span.end, lives_[slot({*first, home(op)})].end);
    }
  }
  return span;
}

std::vector<Books::Leaving> Books::freeable(DeviceId device, std::size_t moment) const {
  const Graph& graph = problem_.graph();
  Table<UnitId, std::int64_t> alone(problem_.units().size(), 0);
  std::map<std::vector<UnitId>, std::int64_t> together;
  work_ += (graph.ops().size() + graph.tensors().size()) / 8;
  for (const TensorId tensor : graph.tensors()) {
    const Span span = lives_[slot({tensor, device})];
    if (moment < span.begin || moment >= span.end) continue;
    std::vector<UnitId> units = holders({tensor, device}, moment);
    const std::int64_t bytes = problem_.buffer_bytes(tensor);
    if (units.size() == 1) {
      alone[units.front()] += bytes;
    } else if (!units.empty()) {
      together[std::move(units)] += bytes;
    }
  }
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op) || home(op) != device) continue;
    if (runs_[op].begin <= moment && moment < runs_[op].end) {
      alone[*problem_.unit(op)] += problem_.workspace_bytes(op);
    }
  }
  std::vector<Leaving> answer;
  for (const UnitId unit : problem_.units()) {
    if (placement_[unit] != device) continue;
    for (const VariableId variable : problem_.variables(unit)) {
      alone[unit] += problem_.buffer_bytes(variable);
    }
    if (alone[unit] > 0) answer.push_back({{unit}, alone[unit]});
  }
  for (const auto& [units, bytes] : together) {
    answer.push_back({units, bytes});
    for (const UnitId unit : units) answer.back().bytes += alone[unit];
  }
  return answer;
}

// The units because of which the buffer is there at that moment; none when they are too many.
std::vector<UnitId> Books::holders(Place place, std::size_t moment) const {
  const Graph& graph = problem_.graph();
  const OpId producer = producer_[place.tensor];
  const bool own = home(producer) == place.device;
  std::vector<UnitId> units;
  const auto hold = [&](UnitId unit) {
    if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  };
  ++work_;
  if (own && runs_[producer].end > moment) hold(*problem_.unit(producer));
  walk(
      place,
      [&](OpId reader) {
        if (runs_[reader].end > moment && units.size() <= kMostHolders) {
          hold(*problem_.unit(reader));
        }
      },
      [&](TensorId tensor) {
        if (graph.tensor(tensor).fetched && home(tensor) == place.device) {
          hold(*problem_.unit(producer_[tensor]));
        }
      });
  if (units.size() > kMostHolders) return {};
  if (units.empty() && own) units.push_back(*problem_.unit(producer));
  std::sort(units.begin(), units.end());
  return units;
}

}  // namespace pardnn
