#include "weft/run/compile_report.h"

#include "weft/base/format.h"

namespace weft {
namespace {

std::string at(const std::string& lines) {
  return lines.empty() ? lines : strformat(" at {}", lines);
}

}  // namespace

std::string text(const DecisionReport& d) {
  return strformat("  {} {}: {}{}", d.staged ? "stage" : "fuse ", d.value, d.reason, at(d.lines));
}

std::string text(const KernelReport& k) {
  std::string all = strformat("kernel {} on {}{}", k.name, k.device, at(k.lines));
  for (const std::string& line : k.applied) append_format(all, "\n  {}", line);
  return all;
}

std::string text(const SearchReport& s) {
  const BeamResult& r = s.result;
  return strformat(
      "beam {}{}: {:.2f} us -> {:.2f} us in {:.1f} s, {} rounds, {} plans, {} samples; {}",
      s.kernel, at(s.lines), r.analytic_seconds * 1e6, r.best_seconds * 1e6, s.seconds, r.rounds,
      r.compiled, r.timed, text(r.best));
}

std::string text(const CommandReport& c) {
  return strformat(
      "*** {:<12} {:4} {:<40} arg {:2} mem {:7.3f} GB tm {:9.2f} us ({:8.1f} GFLOPS {:7.1f} GB/s) "
      "{}",
      c.device, c.step, c.name, c.buffers, static_cast<double>(c.live_bytes) * 1e-9,
      c.seconds * 1e6, c.flops / c.seconds * 1e-9, c.bytes / c.seconds * 1e-9, c.lines);
}

std::string text(const PassRecord& p) {
  return strformat("  {} {}: {} -> {}{}, {} rules, {:.1f} us", p.pass, p.subject, p.before.size,
                   p.after.size, p.changed() ? "" : " unchanged", p.firings,
                   static_cast<double>(p.ns) / 1e3);
}

}  // namespace weft
