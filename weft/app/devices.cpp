#include "weft/device/device.h"

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/context.h"
#include "weft/base/json_writer.h"

namespace weft {

int run_devices(const Session& session) {
  const std::vector<DeviceInfo> devices = session.context.get<DeviceTable>().probe();
  if (session.json) {
    JsonWriter json;
    json.begin_array();
    for (const DeviceInfo& device : devices) {
      json.begin_object().field("name", device.name).field("available", device.available);
      json.field("detail", device.detail).end_object();
    }
    session.print("{}\n", json.end_array().text());
    return kExitOk;
  }
  for (const DeviceInfo& device : devices) {
    const std::string mark = device.available ? session.green("yes") : session.yellow("no ");
    session.print("{}  {:<12}  {}\n", mark, device.name, device.detail);
  }
  session.print("\nDefault: {} (--device or WEFT_DEV choose another)\n",
                session.context.options().dev);
  return kExitOk;
}

std::string null_device(Context& context, std::string_view device) {
  std::string name;
  for (char c : device) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  for (const std::string_view host : {"CPU", "NULL", "SIM"}) {
    if (name == host) return "NULL";
    if (name.starts_with(std::string(host) + ":")) return "NULL" + name.substr(host.size());
  }
  return context.get<DeviceTable>().has("NULL:" + name) ? "NULL:" + name : name;
}

}  // namespace weft
