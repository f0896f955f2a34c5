// Who may see a session, and what a request can ask of it.
#include "weft/viz/site.h"

#include <map>
#include <regex>
#include <set>

#include "tests/serve/client.h"
#include "tests/viz/recorded.h"
#include "weft/viz/page.h"
#include "weft/viz/server.h"

namespace weft::viz {
namespace {

using http::HttpRequest, http::HttpResponse;

constexpr const char* kToken = "0123456789abcdef";

HttpRequest request(const std::string& target, const std::string& token = kToken) {
  HttpRequest made{
      .method = "GET", .target = target, .fields = {{"Host", "127.0.0.1:8080"}}, .body = ""};
  if (!token.empty()) made.fields.emplace_back("Authorization", "Bearer " + token);
  return made;
}

class SiteTest : public RecordedTest {
 protected:
  void SetUp() override {
    RecordedTest::SetUp();
    compute_little(recording_to(file()));
    site = std::make_unique<Site>(file(), kToken);
  }
  HttpResponse ask(const std::string& target) { return site->answer(request(target)); }
  Json json(const std::string& target) {
    const HttpResponse response = ask(target);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    return Json::parse(response.body);
  }
  std::string refusal(const HttpRequest& asked) {
    const HttpResponse response = site->answer(asked);
    return strformat("{} {}", response.status,
                     Json::parse(response.body)["error"].value("message", ""));
  }

  /// The first pass whose state is a graph of several nodes.
  int64_t a_pass_with_a_graph() const {
    const Json passes = RecordedTest::ask("passes", {{"changed", "1"}});
    for (const Json& pass : passes["passes"]) {
      const std::string id = std::to_string(int64_t{pass["pass"]});
      if (RecordedTest::ask("pass", {{"pass", id}})["form"] == "graph" && pass["size_after"] > 4)
        return pass["pass"];
    }
    return -1;
  }

  std::unique_ptr<Site> site;
};

std::string query(const Parameters& parameters) {
  std::string out = "?";
  for (const auto& [name, value] : parameters.values()) out += strformat("{}={}&", name, value);
  return out;
}

/// Every view, with what it asks for: one that is added has to have its sample.
TEST_F(SiteTest, ViewsAreWhatTheTerminalPrints) {
  const auto session = Session::open(file());
  for (const View& view : views()) {
    const Parameters some = sample_of(view, *session);
    const HttpResponse response = ask(strformat("/api/{}{}", view.name, query(some)));
    EXPECT_EQ(response.status, 200) << view.name << ": " << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(response.body, view_json(*session, view.name, some)) << view.name;
  }
}

/// What a box says, against the node of the view `graph`, which the terminal prints.
void expect_box(const Json& box, const Json& node, const std::string& what) {
  for (const char* field : {"label", "text", "line", "dtype", "shape", "mark"})
    EXPECT_EQ(box[field], node[field]) << what << " " << field;
  if (node.contains("kernel")) {
    EXPECT_EQ(box["kernel"], node["kernel"].is_null() ? Json(-1) : node["kernel"]) << what;
    for (const char* field : {"bytes", "ns"}) EXPECT_EQ(box[field], node[field]) << what << field;
  }
}

TEST_F(SiteTest, DrawingsShowWhatTheTerminalPrints) {
  const std::string pass = std::to_string(a_pass_with_a_graph());
  for (const Parameters& asked :
       {Parameters{{"pass", pass}, {"side", "before"}},
        Parameters{{"pass", pass}, {"side", "both"}}, Parameters{{"realization", "0"}}}) {
    const std::string of = query(asked);
    const Json graph = json("/api/graph" + of), drawing = json("/api/drawing" + of);
    ASSERT_EQ(drawing["boxes"], graph["total"]);
    ASSERT_EQ(drawing["nodes"], graph["nodes"].size());
    EXPECT_EQ(drawing["title"], graph["title"]);
    EXPECT_EQ(drawing["form"], graph["form"]);
    std::map<uint32_t, std::set<std::string>> sources, users;
    for (const Json& e : graph["edges"]) {
      sources[e[1]].insert(graph["nodes"][e[0].get<size_t>()]["label"]);
      users[e[0]].insert(graph["nodes"][e[1].get<size_t>()]["label"]);
    }
    for (uint32_t i = 0; i < graph["nodes"].size(); ++i) {
      const Json box = json(strformat("/api/box{}node={}", of, i));
      expect_box(box, graph["nodes"][i], strformat("node {} of {}", i, of));
      for (const auto& [name, all] : {std::pair("sources", &sources), std::pair("users", &users)}) {
        std::set<std::string> shown;
        for (const Json& other : box[name]) shown.insert(other["label"]);
        EXPECT_EQ(shown, (*all)[i]) << name << " of node " << i;
      }
    }
  }
}

/// Whatever the page asks for is a view, or a drawing of one.
TEST_F(SiteTest, ThePageAsksForViews) {
  const std::regex call("view\\(\"([a-z_]+)\"");
  std::set<std::string> names;
  for (const http::EmbeddedFile& file : page_files()) {
    const std::string text(reinterpret_cast<const char*>(file.bytes), file.size);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), call);
         at != std::sregex_iterator(); ++at)
      names.insert((*at)[1]);
  }
  for (const View& view : views()) {
    const std::string name = view.name;
    if (name == "views" || name == "graph") continue;  // graphs are drawn
    EXPECT_EQ(names.erase(name), 1u) << "no pane shows the view " << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"drawing", "box", "tile"}));
}

TEST_F(SiteTest, TheTokenIsAskedForWhereDataAre) {
  for (const char* target : {"/api/session", "/api/tile?pass=0", "/api/nothing"})
    for (const char* token : {"", "0123456789abcde", "0123456789abcdef0", "wrong"})
      EXPECT_EQ(site->answer(request(target, token)).status, 401) << target << " " << token;
  EXPECT_EQ(site->answer(request("/", "")).status, 200);
  EXPECT_EQ(site->answer(request("/app.js", "")).status, 200);
  EXPECT_EQ(refusal(request("/api/session?token=0123456789abcdef", "")),
            "400 the address has a key in it, where it would be logged; send it as 'Authorization: "
            "Bearer KEY'");
}

TEST_F(SiteTest, OtherNamesAndOriginsAreRefused) {
  HttpRequest rebound = request("/api/session");
  rebound.fields[0].second = "evil.example:8080";
  EXPECT_EQ(refusal(rebound),
            "421 the server does not answer to the name 'evil.example:8080'; use its address");
  HttpRequest elsewhere = request("/api/session");
  elsewhere.fields.emplace_back("Origin", "https://evil.example");
  EXPECT_EQ(refusal(elsewhere), "403 pages from 'https://evil.example' may not ask");
  HttpRequest own = request("/api/session");
  own.fields.emplace_back("Origin", "http://127.0.0.1:8080");
  EXPECT_EQ(site->answer(own).status, 200);
}

TEST_F(SiteTest, OnlyGet) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    HttpRequest asked = request("/api/session");
    asked.method = method;
    EXPECT_EQ(refusal(asked), strformat("405 only GET is taken, not {}", method));
  }
}

TEST_F(SiteTest, ThePageIsItsOwnFilesOnly) {
  const HttpResponse page = ask("/");
  EXPECT_NE(page.body.find("<title>weft viz</title>"), std::string::npos);
  std::string policy;
  for (const auto& [name, value] : page.fields)
    if (name == "Content-Security-Policy") policy = value;
  EXPECT_NE(policy.find("default-src 'none'; script-src 'self'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  for (const char* target : {"/../site.cpp", "/%2e%2e/etc/passwd", "/etc/passwd", "//index.html",
                             "/page/app.js", "/index.html/", "*", ""})
    EXPECT_EQ(ask(target).status, 404) << target;
}

TEST_F(SiteTest, QuestionsThatMakeNoSense) {
  EXPECT_EQ(refusal(request("/api/../../etc/passwd")).substr(0, 3), "404");
  EXPECT_EQ(refusal(request("/api/")).substr(0, 3), "404");
  EXPECT_EQ(refusal(request("/api/<script>alert(1)</script>")).substr(0, 3), "404");
  for (const char* target :
       {"/api/pass?pass=-1", "/api/pass?pass=999999999", "/api/pass?pass=x", "/api/pass",
        "/api/pass?passs=1", "/api/tile?pass=0&level=99&x=0&y=0",
        "/api/tile?pass=0&level=9999999999999999999999&x=0&y=0", "/api/box?pass=0&box=99999999",
        "/api/box?pass=0&node=99999999", "/api/drawing?pass=0&group=colour",
        "/api/drawing?pass=0&group=line&open=1,,2", "/api/drawing?pass=0&side=left",
        "/api/search?text=%", "/api/search?text=%zz", "/api/search?text=%ff"})
    EXPECT_EQ(refusal(request(target)).substr(0, 3), "400") << target;
  EXPECT_EQ(refusal(request("/api/drawing?pass=0&group=line&open=1,,2")),
            "400 open is '1,,2'; it has to be numbers of groups, as 0,3");
  EXPECT_EQ(refusal(request("/api/drawing?pass=0&group=colour")),
            "400 group is 'colour'; it has to be line, layer or kernel");
  EXPECT_EQ(refusal(request("/api/search?text=%zz")), "400 '%zz' has a % that is no byte");
  EXPECT_EQ(refusal(request("/api/search?text=%ff")), "400 '\xef\xbf\xbd' is no UTF-8");
  EXPECT_EQ(refusal(request("/api/statistics?history=/etc/passwd")),
            "400 requests name no files; start the server with --history FILE");
  std::string many = "/api/search?text=a";
  for (int i = 0; i < 40; ++i) many += "&a=b";
  EXPECT_EQ(refusal(request(many)), "400 there are more than 32 parameters");
}

TEST_F(SiteTest, ADrawingItsTilesAndItsBoxes) {
  const int64_t pass = a_pass_with_a_graph();
  const std::string asked = strformat("pass={}&side=after", pass);
  const Json drawing = json("/api/drawing?" + asked);
  EXPECT_GT(drawing["boxes"], 1);
  EXPECT_TRUE(drawing["fine"]);
  const Json tile = json("/api/tile?" + asked + "&level=0&x=0&y=0");
  ASSERT_GE(tile["boxes"].size(), 7u);
  EXPECT_EQ(tile["boxes"].size() / 7, tile["labels"].size());
  const int64_t box = tile["boxes"][0];
  const Json shown = json(strformat("/api/box?{}&box={}", asked, box));
  EXPECT_EQ(shown["label"], tile["labels"][0]);
  for (const Json& user : shown["users"])
    EXPECT_EQ(json(strformat("/api/box?{}&box={}", asked, int64_t{user["box"]}))["label"],
              user["label"]);
  EXPECT_EQ(json("/api/tile?" + asked + "&level=0&x=-5&y=-1")["boxes"].size(), 0u);
}

TEST_F(SiteTest, BoxesOfWhatARealizationRuns) {
  const Json drawing = json("/api/drawing?realization=0");
  for (int64_t box = 0; box < drawing["boxes"]; ++box)
    EXPECT_GE(json(strformat("/api/box?realization=0&box={}", box))["kernel"], -1);
}

TEST_F(SiteTest, GroupsOfADrawing) {
  const std::string asked = strformat("pass={}&side=after&group=line", a_pass_with_a_graph());
  const Json closed = json("/api/drawing?" + asked);
  ASSERT_FALSE(closed["groups"].empty());
  EXPECT_LT(closed["boxes"], closed["nodes"]);
  std::string open = "&open=0";
  for (size_t i = 1; i < closed["groups"].size(); ++i) open += strformat(",{}", i);
  EXPECT_EQ(json("/api/drawing?" + asked + open)["boxes"], closed["nodes"]);
}

TEST_F(SiteTest, ServesOnASocketOfThisMachine) {
  Server server(file(), {.token = kToken});
  EXPECT_EQ(server.address(), strformat("http://127.0.0.1:{}/#token={}", server.port(), kToken));
  std::thread thread([&] { server.run(); });
  const auto ask = [&](const std::string& fields, const std::string& target = "/api/session") {
    serve::Client client(server.port());
    client.send(strformat("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n", target, fields));
    return client.read_answer();
  };
  EXPECT_EQ(ask("Authorization: Bearer 0123456789abcdef\r\n").json()["version"], 1);
  EXPECT_EQ(ask("").status, 401);
  EXPECT_EQ(ask("", "/").status, 200);
  EXPECT_EQ(ask("", "/../../etc/passwd").status, 404);
  EXPECT_EQ(ask("X: " + std::string(20000, 'x') + "\r\n").status, 431);
  EXPECT_EQ(ask("Content-Length: 5000\r\n").status, 413);
  server.stop();
  thread.join();
}

TEST_F(SiteTest, TokensAreRandom) {
  const Server one(file()), other(file());
  EXPECT_EQ(one.token().size(), 32u);
  EXPECT_NE(one.token(), other.token());
}

TEST(SiteErrors, NoFile) {
  EXPECT_EQ(error_of([] { Server server("/nowhere/at.all"); }).substr(0, 13), "file.missing:");
}

}  // namespace
}  // namespace weft::viz
