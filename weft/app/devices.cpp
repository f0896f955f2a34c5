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

}  // namespace weft
