#include "pardnn/io/machine_json.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "pardnn/base/quantity.h"
#include "pardnn/io/json.h"

namespace pardnn {

namespace json = boost::json;

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kBytes = "bytes such as 700MiB or 16GiB";
constexpr std::string_view kTime = "a time such as 5us";
constexpr std::string_view kRate = "a rate such as 12GB/s";

Device read_device(const JsonObject& object) {
  object.only({"name", "kind", "memory", "reserve", "address"});
  Device device;
  device.name = object.text("name");
  device.kind = object.text("kind", "any");
  device.capacity_bytes = object.quantity("memory", parse_bytes, kBytes);
  if (object.has("reserve")) device.reserve_bytes = object.quantity("reserve", parse_bytes, kBytes);
  device.address = object.text("address", "");
  return device;
}

// The devices that `from` or `to` names: one name, a list of names, or "*".
std::vector<DeviceId> read_ends(const JsonObject& link, std::string_view member,
                                const Machine& machine) {
  std::vector<DeviceId> ends;
  const auto add = [&](const json::value& value) {
    if (value.is_string() && value.get_string() == "*") {
      for (const DeviceId device : machine.devices.ids()) ends.push_back(device);
      return;
    }
    const auto device =
        value.is_string() ? machine.find(std::string_view(value.get_string())) : std::nullopt;
    if (!device) link.fail(member, describe(value), "the name of a device, or \"*\"");
    ends.push_back(*device);
  };
  const json::value& value = link.at(member);
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) add(item);
  } else {
    add(value);
  }
  return ends;
}

class LinkReader {
 public:
  explicit LinkReader(Machine& machine) : machine_(machine) {}

  void read_channels(const JsonObject& file) {
    for (const json::value& item : file.array("channels")) {
      if (!item.is_string()) file.fail("channels", describe(item), "names");
      const std::string name(item.get_string());
      if (!shared_.emplace(name, machine_.channels.push(name)).second) {
        file.fail("channels", "\"" + name + "\" twice", "each name once");
      }
    }
  }

  // Later links replace earlier ones of the same pair, so a rule for "*" can come first.
  void read(const JsonObject& object) {
    object.only({"from", "to", "bandwidth", "overhead", "latency", "channels"});
    Link link;
    link.bytes_per_second = object.quantity("bandwidth", parse_bytes_per_second, kRate);
    if (link.bytes_per_second == 0) object.fail("bandwidth", "0", "more than 0");
    if (object.has("overhead")) link.overhead_ns = object.quantity("overhead", parse_ns, kTime);
    if (object.has("latency")) link.latency_ns = object.quantity("latency", parse_ns, kTime);
    if (object.has("channels")) link.channels = channels_of(object);
    for (const DeviceId from : read_ends(object, "from", machine_)) {
      for (const DeviceId to : read_ends(object, "to", machine_)) {
        if (from != to) slot(from, to) = link;
      }
    }
  }

  // Links that name no channel get one of their own (rule T5), under a name that no other has, so
  // that the machine can be written and read again.
  void finish() {
    std::set<std::string> names(machine_.channels.begin(), machine_.channels.end());
    for (const DeviceId from : machine_.devices.ids()) {
      for (const DeviceId to : machine_.devices.ids()) {
        auto& link = slot(from, to);
        if (!link || !link->channels.empty()) continue;
        std::string name = machine_.devices[from].name + ">" + machine_.devices[to].name;
        while (!names.insert(name).second) name += '\'';
        link->channels = {machine_.channels.push(std::move(name))};
      }
    }
  }

 private:
  std::optional<Link>& slot(DeviceId from, DeviceId to) {
    return machine_.links[index(from) * machine_.devices.size() + index(to)];
  }

  std::vector<ChannelId> channels_of(const JsonObject& link) const {
    std::set<ChannelId> channels;
    for (const json::value& item : link.array("channels")) {
      const auto found =
          item.is_string() ? shared_.find(std::string(item.get_string())) : shared_.end();
      if (found == shared_.end()) {
        link.fail("channels", describe(item), "a name that the file lists under \"channels\"");
      }
      channels.insert(found->second);
    }
    if (channels.empty()) link.fail("channels", "an empty list", "at least one name");
    return {channels.begin(), channels.end()};
  }

  Machine& machine_;
  std::map<std::string, ChannelId> shared_;
};

json::object link_object(const Machine& machine, DeviceId from, DeviceId to, const Link& link) {
  json::object object{{"from", machine.devices[from].name},
                      {"to", machine.devices[to].name},
                      {"bandwidth", link.bytes_per_second},
                      {"overhead", link.overhead_ns},
                      {"latency", link.latency_ns}};
  json::array channels;
  for (const ChannelId channel : link.channels) channels.emplace_back(machine.channels[channel]);
  object["channels"] = std::move(channels);
  return object;
}

}  // namespace

Machine read_machine(std::string_view text, std::string_view source) {
  const json::value value = parse_json(text, source);
  const JsonObject file(value, source, "");
  file.only({"pardnn_machine", "name", "about", "granularity", "devices", "channels", "links"});
  if (file.integer("pardnn_machine") != kVersion) {
    file.fail("pardnn_machine", describe(file.at("pardnn_machine")), "1, the version of this file");
  }
  Machine machine;
  machine.name = file.text("name", "");
  if (file.has("granularity")) {
    machine.granularity_bytes = file.quantity("granularity", parse_bytes, kBytes);
  }
  std::size_t number = 0;
  for (const json::value& item : file.array("devices")) {
    const std::string where = "devices[" + std::to_string(number++) + "]";
    machine.devices.push(read_device(JsonObject(item, source, where)));
  }
  if (machine.devices.size() > kMaxDevices) {
    file.fail("devices", std::to_string(machine.devices.size()) + " devices",
              "at most " + std::to_string(kMaxDevices));
  }
  machine.links.resize(machine.devices.size() * machine.devices.size());
  LinkReader links(machine);
  if (file.has("channels")) links.read_channels(file);
  number = 0;
  if (file.has("links")) {
    for (const json::value& item : file.array("links")) {
      links.read(JsonObject(item, source, "links[" + std::to_string(number++) + "]"));
    }
  }
  links.finish();
  try {
    machine.validate();
  } catch (const Error& error) {
    throw Error(std::string(source) + ": " + error.what());
  }
  return machine;
}

std::string write_machine(const Machine& machine) {
  json::object file{{"pardnn_machine", kVersion}, {"name", machine.name}};
  file["granularity"] = machine.granularity_bytes;
  json::array devices;
  for (const Device& device : machine.devices) {
    json::object object{{"name", device.name},
                        {"kind", device.kind},
                        {"memory", device.capacity_bytes},
                        {"reserve", device.reserve_bytes}};
    if (!device.address.empty()) object["address"] = device.address;
    devices.push_back(std::move(object));
  }
  file["devices"] = std::move(devices);
  json::array channels;
  for (const std::string& channel : machine.channels) channels.emplace_back(channel);
  file["channels"] = std::move(channels);
  json::array links;
  for (const DeviceId from : machine.devices.ids()) {
    for (const DeviceId to : machine.devices.ids()) {
      const auto& link = machine.link(from, to);
      if (link) links.push_back(link_object(machine, from, to, *link));
    }
  }
  file["links"] = std::move(links);
  return format_json(file);
}

}  // namespace pardnn
