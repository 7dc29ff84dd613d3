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
      start_ns_(timeline.start_ns),
      finish_ns_(timeline.finish_ns),
      step_ns_(timeline.step_ns),
      took_over_(problem.graph().tensors().size(), 0),
      limit_bytes_(problem.device_count(), 0) {
  for (const DeviceId device : problem.devices()) {
    limit_bytes_[device] = problem.limit_bytes(device);
  }
  note_transfers(timeline);
  note_take_overs(lifetimes);
  choose_moments(timeline);
  profiles_ = Table<DeviceId, Profile>(problem.device_count(), Profile(moments_.size()));
  enter_everything();
}

void Books::note_transfers(const Timeline& timeline) {
  const Graph& graph = problem_.graph();
  std::vector<std::pair<TensorId, Sent>> all;
  for (const Transfer& transfer : timeline.transfers) {
    if (!transfer.output.has_value()) continue;
    all.emplace_back(graph.outputs(transfer.producer)[*transfer.output],
                     Sent{transfer.to, transfer.start_ns, transfer.arrival_ns});
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
void Books::note_take_overs(const std::vector<Buffer>& lifetimes) {
  const Graph& graph = problem_.graph();
  for (const TensorId tensor : graph.tensors()) {
    took_over_[tensor] = graph.tensor(tensor).takes_over.has_value();
  }
  for (const Buffer& buffer : lifetimes) {
    if (buffer.what == Buffer::What::kOutput) took_over_[*buffer.tensor] = 0;
  }
}

// Bytes only grow where an op or a transfer starts.
void Books::choose_moments(const Timeline& timeline) {
  moments_.push_back(0);
  for (const OpId op : problem_.graph().ops()) moments_.push_back(start_ns_[op]);
  for (const Transfer& transfer : timeline.transfers) moments_.push_back(transfer.start_ns);
  std::sort(moments_.begin(), moments_.end());
  moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
}

void Books::enter_everything() {
  const Graph& graph = problem_.graph();
  for (const DeviceId device : problem_.devices()) {
    profiles_[device].add(0, moments_.size(), problem_.reserve_bytes(device));
  }
  for (const UnitId unit : problem_.units()) enter_unit(unit, placement_[unit], +1);
  std::vector<DeviceId> devices;
  for (const TensorId tensor : graph.tensors()) {
    if (graph.is_every(graph.tensor(tensor).producer)) continue;
    devices.assign(1, home(tensor));
    for (const OpId reader : graph.readers(tensor)) devices.push_back(home(reader));
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    for (const DeviceId device : devices) {
      if (root(tensor, device) == tensor) enter({tensor, device}, +1);
    }
  }
}

std::int64_t Books::overflow_bytes(DeviceId device) const {
  const Profile& profile = profiles_[device];
  return std::max<std::int64_t>(0, profile.at(profile.fullest()) - limit_bytes_[device]);
}

std::optional<std::uint32_t> Books::shared_input(TensorId tensor) const {
  const Tensor& output = problem_.graph().tensor(tensor);
  return took_over_[tensor] ? output.takes_over : output.alias_of;
}

std::optional<TensorId> Books::root(TensorId tensor, DeviceId device) const {
  const Graph& graph = problem_.graph();
  while (true) {
    const OpId producer = graph.tensor(tensor).producer;
    if (graph.is_every(producer)) return std::nullopt;
    if (home(producer) != device) return tensor;
    const std::optional<std::uint32_t> input = shared_input(tensor);
    if (!input.has_value()) return tensor;
    if (graph.inputs(producer)[*input].is_variable()) return std::nullopt;
    tensor = graph.inputs(producer)[*input].tensor();
  }
}

Books::Sent Books::sent(TensorId tensor, DeviceId to) const {
  for (const Sent& known : sent_[tensor]) {
    if (known.to == to) return known;
  }
  const OpId producer = problem_.graph().tensor(tensor).producer;
  const std::int64_t request_ns = finish_ns_[producer];
  return {to, request_ns, saturating_add(request_ns, times_.mean_crossing_ns(tensor))};
}

// Calls visit(reader) for every op on the place's device that reads the buffer, and
// visit_tensor(tensor) for every tensor that lies in it.
template <class VisitReader, class VisitTensor>
void Books::walk(Place place, VisitReader visit_reader, VisitTensor visit_tensor) const {
  const Graph& graph = problem_.graph();
  std::vector<TensorId> open{place.tensor};
  while (!open.empty()) {
    const TensorId tensor = open.back();
    open.pop_back();
    visit_tensor(tensor);
    for (const OpId reader : graph.readers(tensor)) {
      if (home(reader) != place.device) continue;
      visit_reader(reader);
      for (const TensorId output : graph.outputs(reader)) {
        const std::optional<std::uint32_t> shared = shared_input(output);
        if (!shared.has_value()) continue;
        const Input& input = graph.inputs(reader)[*shared];
        if (!input.is_variable() && input.tensor() == tensor) open.push_back(output);
      }
    }
  }
}

std::optional<Books::Span> Books::life(Place place) const {
  const Graph& graph = problem_.graph();
  const OpId producer = graph.tensor(place.tensor).producer;
  const bool own = home(producer) == place.device;
  Span span;
  if (own) {
    span = {start_ns_[producer], finish_ns_[producer]};
  } else {
    const Sent copy = sent(place.tensor, place.device);
    span = {copy.start_ns, copy.start_ns};
  }
  bool read = false;
  walk(
      place,
      [&](OpId reader) {
        read = true;
        span.end_ns = std::max(span.end_ns, finish_ns_[reader]);
      },
      [&](TensorId tensor) {
        if (home(tensor) != place.device) return;  // the copy itself is sent from its home
        if (graph.tensor(tensor).fetched) span.end_ns = step_ns_;
        for (const OpId reader : graph.readers(tensor)) {
          if (home(reader) == place.device) continue;
          span.end_ns = std::max(span.end_ns, sent(tensor, home(reader)).arrival_ns);
        }
      });
  if (!own && !read) return std::nullopt;
  span.end_ns = std::max(span.end_ns, span.begin_ns + 1);
  return span;
}

// Rounded outwards to whole moments.
std::pair<std::size_t, std::size_t> Books::range(Span span) const {
  const auto position = [&](auto it) { return static_cast<std::size_t>(it - moments_.begin()); };
  const std::size_t first =
      position(std::upper_bound(moments_.begin(), moments_.end(), span.begin_ns)) - 1;
  const std::size_t last =
      position(std::lower_bound(moments_.begin(), moments_.end(), span.end_ns));
  return {first, std::max(last, first + 1)};
}

void Books::add(DeviceId device, Span span, std::int64_t bytes) {
  const auto [first, last] = range(span);
  profiles_[device].add(first, last, bytes);
}

void Books::enter(Place place, int sign) {
  if (const std::optional<Span> span = life(place)) {
    add(place.device, *span, sign * problem_.buffer_bytes(place.tensor));
  }
}

// What does not depend on where others are: variables, workspace, `every` values.
void Books::enter_unit(UnitId unit, DeviceId device, int sign) {
  const Graph& graph = problem_.graph();
  const Span step{0, step_ns_};
  for (const VariableId variable : problem_.variables(unit)) {
    add(device, step, sign * problem_.buffer_bytes(variable));
  }
  for (const OpId op : problem_.ops(unit)) {
    if (const std::int64_t bytes = problem_.workspace_bytes(op); bytes > 0) {
      add(device, {start_ns_[op], finish_ns_[op]}, sign * bytes);
    }
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      if (!graph.is_every(graph.tensor(input.tensor()).producer)) continue;
      const TensorId origin = *graph.origin(input.tensor()).tensor;
      const std::uint64_t key = std::uint64_t{index(origin)} * kMaxDevices + index(device);
      std::uint32_t& readers = every_readers_[key];
      const bool there = readers > 0;
      readers += static_cast<std::uint32_t>(sign);
      if (there != (readers > 0)) add(device, step, sign * problem_.buffer_bytes(origin));
    }
  }
}

// Every buffer whose life may change when the unit goes from one of the devices to the other.
std::vector<Books::Place> Books::touched(UnitId unit, DeviceId a, DeviceId b) const {
  const Graph& graph = problem_.graph();
  std::vector<Place> places;
  const auto note = [&](TensorId tensor, DeviceId device) {
    if (const auto first = root(tensor, device)) places.push_back({*first, device});
  };
  for (const OpId op : problem_.ops(unit)) {
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      const TensorId tensor = input.tensor();
      if (graph.is_every(graph.tensor(tensor).producer)) continue;
      note(tensor, a);
      note(tensor, b);
      note(tensor, home(tensor));
    }
    for (const TensorId tensor : graph.outputs(op)) {
      note(tensor, a);
      note(tensor, b);
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void Books::move(UnitId unit, DeviceId to) {
  const DeviceId from = placement_[unit];
  if (from == to) return;
  for (const Place& place : touched(unit, from, to)) enter(place, -1);
  enter_unit(unit, from, -1);
  placement_[unit] = to;
  for (const Place& place : touched(unit, from, to)) enter(place, +1);
  enter_unit(unit, to, +1);
}

std::int64_t Books::room_bytes(UnitId unit, DeviceId device) const {
  Span span{step_ns_, 0};
  if (!problem_.variables(unit).empty()) span = {0, step_ns_};
  for (const OpId op : problem_.ops(unit)) {
    span.begin_ns = std::min(span.begin_ns, start_ns_[op]);
    span.end_ns = std::max(span.end_ns, finish_ns_[op]);
    for (const TensorId tensor : problem_.graph().outputs(op)) {
      const auto first = root(tensor, home(op));
      if (!first.has_value()) continue;
      const auto alive = life({*first, home(op)});
      if (alive.has_value()) span.end_ns = std::max(span.end_ns, alive->end_ns);
    }
  }
  span.begin_ns = std::min(span.begin_ns, span.end_ns);
  const auto [first, last] = range(span);
  return limit_bytes_[device] - profiles_[device].most(first, last);
}

std::vector<Books::Leaving> Books::freeable(DeviceId device, std::size_t moment) const {
  const Graph& graph = problem_.graph();
  const std::int64_t now_ns = moments_[moment];
  Table<UnitId, std::int64_t> alone(problem_.units().size(), 0);
  std::map<std::vector<UnitId>, std::int64_t> together;
  Table<TensorId, char> seen(graph.tensors().size(), 0);
  const auto credit = [&](TensorId tensor) {
    const auto first = root(tensor, device);
    if (!first.has_value() || seen[*first]) return;
    seen[*first] = 1;
    std::vector<UnitId> units = holders({*first, device}, moment);
    const std::int64_t bytes = problem_.buffer_bytes(*first);
    if (units.size() == 1) {
      alone[units.front()] += bytes;
    } else if (!units.empty()) {
      together[std::move(units)] += bytes;
    }
  };
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op) || home(op) != device) continue;
    for (const Input& input : graph.inputs(op)) {
      if (!input.is_variable()) credit(input.tensor());
    }
    for (const TensorId tensor : graph.outputs(op)) credit(tensor);
    if (start_ns_[op] <= now_ns && now_ns < finish_ns_[op]) {
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
  const auto span = life(place);
  if (!span.has_value()) return {};
  const auto [first, last] = range(*span);
  if (moment < first || moment >= last) return {};
  const std::int64_t now_ns = moments_[moment];
  const OpId producer = graph.tensor(place.tensor).producer;
  const bool own = home(producer) == place.device;
  std::vector<UnitId> units;
  const auto hold = [&](UnitId unit) {
    if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  };
  if (own && finish_ns_[producer] > now_ns) hold(*problem_.unit(producer));
  walk(
      place,
      [&](OpId reader) {
        if (finish_ns_[reader] > now_ns && units.size() <= kMostHolders) {
          hold(*problem_.unit(reader));
        }
      },
      [&](TensorId tensor) {
        if (graph.tensor(tensor).fetched && home(tensor) == place.device) {
          hold(*problem_.unit(graph.tensor(tensor).producer));
        }
      });
  if (units.size() > kMostHolders) return {};
  if (units.empty() && own) units.push_back(*problem_.unit(producer));
  std::sort(units.begin(), units.end());
  return units;
}

}  // namespace pardnn
