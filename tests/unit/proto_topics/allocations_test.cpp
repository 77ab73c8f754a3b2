// resource.alloc, resource.free and resource.allocations, encoded and decoded, and the events of the ledger.
#include "proto/topics/allocations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "payload_errors.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

module::LedgerCommand parse_alloc(const json& payload) {
  const std::string text = payload.dump();
  json_text::JsonReader reader(text, max_json_depth, json_text::JsonManners::lenient);
  module::LedgerCommand command;
  const bool is_read = read_alloc(reader, command);
  REQUIRE(is_read);
  return command;
}

TEST_CASE("notes and ids count for the size of a response with allocations") {
  module::Allocation allocation{{"", "j"}, {}, std::make_shared<const std::string>("{}")};
  // A quotation mark takes two bytes.
  allocation.note = std::string(1000, '"');
  const std::vector<module::SharedAllocation> all(5, std::make_shared<const module::Allocation>(allocation));
  std::span<const module::SharedAllocation> left = all;
  const auto take = [&](std::size_t most) {
    const std::string page = take_allocations(left, WallTime{}, most);
    CHECK((page.size() <= most || json::parse(page).size() == 1));
    return json::parse(page).size();
  };
  CHECK(take(5000) == 2);
  CHECK(take(100) == 1);
  CHECK(take(100000) == 2);
  CHECK(take(100) == 0);
}

TEST_CASE("a free names the partition of its ids, or leaves it to the daemon") {
  module::LedgerCommand command{{{"1", "night", text::IdSet{3}}}};
  CHECK(encode_free(command) == json::parse(R"({"id":"1","ranks":"3","partition":"night"})"));
  CHECK(parse_free(encode_free(command)).frees.at(0).partition == "night");
  const auto ids = parse_free(json::parse(R"({"ids":["1","2"],"partition":""})")).frees;
  REQUIRE(ids.size() == 2);
  CHECK(ids[1].id == "2");
  CHECK(ids[1].partition == "");
  CHECK_FALSE(parse_free(json::parse(R"({"id":"1"})")).frees.at(0).partition);
  CHECK(refusal(parse_free, R"({"id":"1","partition":5})") == "71 partition must be a string");
}

TEST_CASE("a request makes and frees 2,000 allocations at most") {
  const json ids = {{"ids", std::vector<std::string>(2001, "1")}};
  CHECK(refusal(parse_free, ids.dump().c_str()) ==
        "90 the request names 2001 allocations, more than 2000: send several requests");
  const rset::ResourceSet resources({{text::IdSet{0}, text::IdSet{0}, {}}}, text::Hostlist::parse("a"));
  const auto request = [&](std::size_t made, std::size_t freed) {
    return json{{"allocations", std::vector<json>(made, json{{"id", "1"}, {"R", resources.to_json()}})},
                {"free", std::vector<json>(freed, json{{"id", "2"}})}};
  };
  for (const std::size_t made : {0U, 1000U, 2001U}) {
    CAPTURE(made);
    CHECK(refusal(parse_alloc, request(made, 2001 - made).dump().c_str()) ==
          "90 the request names 2001 allocations, more than 2000: send several requests");
  }
  const json frees(2000, json{{"id", "2"}});
  CHECK(refusal(parse_alloc, json{{"id", "1"}, {"R", resources.to_json()}, {"free", frees}}.dump().c_str())
            .starts_with("90 the request names 2001 "));
  CHECK(refusal(parse_free, json{{"id", "1"}, {"free", frees}}.dump().c_str())
            .starts_with("90 the request names 2001 "));
  CHECK(refusal(parse_free, json{{"ids", {"1"}}, {"free", frees}}.dump().c_str())
            .starts_with("90 the request names 2001 "));
  const module::LedgerCommand most = parse_alloc(request(1000, 1000));
  CHECK(most.allocations.size() == 1000);
  CHECK(most.frees.size() == 1000);
}

TEST_CASE("an alloc of several allocations has their keys in each of them, and an empty note is none") {
  for (const char* key :
       {R"("id":"1")", R"("R":{})", R"("expiration":5)", R"("note":"n")", R"("partition":"a")"}) {
    const std::string payload = fmt::format(R"({{"allocations":[],{}}})", key);
    CAPTURE(payload);
    CHECK(refusal(parse_alloc, payload.c_str()).ends_with("into each of them, not beside them"));
  }
  const rset::ResourceSet resources({{text::IdSet{0}, text::IdSet{0}, {}}}, text::Hostlist::parse("a"));
  json one = encode_alloc({{}, {{"1", resources}}});
  one["note"] = "";
  CHECK_FALSE(parse_alloc(one).allocations.at(0).note);
}

TEST_CASE(
    "an alloc is read whatever the order of its keys, and of a key that comes twice the last one counts") {
  const auto read = [](const std::string& text) {
    json_text::JsonReader reader(text, max_json_depth, json_text::JsonManners::lenient);
    module::LedgerCommand command;
    return read_alloc(reader, command) && reader.at_end() ? std::optional(command) : std::nullopt;
  };
  const auto refused = [&](const std::string& text) {
    try {
      (void)read(text);
    } catch (const Error& error) {
      return fmt::format("{} {}", error.errnum(), error.what());
    }
    return std::string();
  };
  const auto r = [](text::IdSet::Id rank) {
    return rset::ResourceSet({{text::IdSet::range(rank, rank), text::IdSet{0}, {}}},
                             text::Hostlist::parse(fmt::format("n{}", rank)))
        .encode();
  };
  const std::string entry =
      fmt::format(R"({{"note":"x","R":5,"R":{{}},"R":{},"id":5,"id":"1","other":[{{}}],"note":"n"}})", r(3));
  for (const std::string& text : {entry, fmt::format(R"({{"allocations":[{}]}})", entry)}) {
    CAPTURE(text);
    const auto command = read(text);
    REQUIRE(command);
    REQUIRE(command->allocations.size() == 1);
    CHECK(command->allocations[0].id == "1");
    CHECK(command->allocations[0].note == "n");
    CHECK(command->allocations[0].resources.ranks() == text::IdSet{3});
  }
  const auto twice = read(fmt::format(R"({{"allocations":[{0},{0}],"allocations":[{0}]}})", entry));
  REQUIRE(twice);
  CHECK(twice->allocations.size() == 1);

  // The id is named also where it comes after the R.
  CHECK(refused(R"({"R":{"version":2},"id":"7"})") == "22 R of allocation 7: version: is not the integer 1");
  CHECK(refused(R"({"allocations":[{"R":{"version":2},"id":"7"}]})") ==
        "22 R of allocation 7: version: is not the integer 1");
  CHECK(refused(R"({"R":{"version":2}})") == "71 missing key: id");
  CHECK(refused(R"({"id":"7","R":[]})") == "71 R must be an object");
  CHECK(refused(R"({"id":7,"R":{}})") == "71 id must be a string");
  CHECK(refused(R"({"id":"7","R":{},"R":{"version":2}})") ==
        "22 R of allocation 7: version: is not the integer 1");
  CHECK(refused(R"({"allocations":5})") == "71 allocations must be an array");
  CHECK(refused(R"({"allocations":[5]})") == "71 an allocation must be an object");
  for (const char* const broken : {R"({"id":"1","R":{"version":1,}})", R"({"id":"1","R":{"version")", "[]",
                                   R"({"allocations":[{"id":"1",}]})", R"({"allocations":[)", "5", "{} x"}) {
    CAPTURE(broken);
    CHECK_FALSE(read(broken));
  }
}

TEST_CASE("several frees are a list, each with its partition and ranks, beside the other keys too") {
  const module::LedgerCommand command{{{"1", "night", text::IdSet{3}}, {"2"}}, {}, true};
  const json payload = encode_free(command);
  CHECK(payload ==
        json::parse(R"({"free":[{"id":"1","ranks":"3","partition":"night"},{"id":"2"}],"repeat":true})"));
  for (const char* keys : {R"("id":"0","ranks":"1",)", R"("ids":["0"],)", ""}) {
    CAPTURE(keys);
    const auto read =
        parse_free(json::parse(fmt::format(R"({{{}"free":{}}})", keys, payload["free"].dump())));
    REQUIRE(read.frees.size() == (*keys == 0 ? 2 : 3));
    CHECK(read.frees[0].id == "1");
    CHECK(read.frees[0].ranks == text::IdSet{3});
    CHECK_FALSE(read.frees[1].partition);
    CHECK(read.frees.back().id == (*keys == 0 ? "2" : "0"));
    CHECK_FALSE(read.repeat);
  }
  CHECK(refusal(parse_free, "{}") == "71 missing key: id");
  CHECK(refusal(parse_free, R"({"free":"1"})") == "71 free must be an array");
  CHECK(refusal(parse_free, R"({"free":["1"]})") == "71 free must have objects");
  CHECK(
      refusal(parse_free, R"({"free":[{"id":"1","ranks":"x"}]})").starts_with("22 ranks of allocation 1: "));
  CHECK(refusal(parse_free, R"({"free":[],"repeat":1})") == "71 repeat must be true or false");
  // Nobody frees the job of another partition, or a whole one, by a key in the wrong place.
  for (const char* key : {R"("partition":"night")", R"("ranks":"0")"}) {
    CHECK(refusal(parse_free, fmt::format(R"({{{},"free":[{{"id":"1"}}]}})", key).c_str()) ==
          "71 partition and ranks stand beside the id that they belong to");
  }
}

TEST_CASE("an alloc may free first, and makes at least one allocation") {
  const rset::ResourceSet resources({{text::IdSet{3}, text::IdSet{0}, {}}}, text::Hostlist::parse("n3"));
  module::LedgerCommand command{{{"1"}}, {{"2", resources}}, true};
  json payload = encode_alloc(command);
  CHECK(payload.at("id") == "2");
  CHECK(payload.at("free") == json::parse(R"([{"id":"1"}])"));
  CHECK(parse_alloc(payload).frees.at(0).id == "1");
  CHECK(parse_alloc(payload).repeat);
  command.allocations.push_back({"3", resources});
  payload = encode_alloc(command);
  CHECK(payload.at("allocations").size() == 2);
  CHECK(parse_alloc(payload).allocations.at(1).id == "3");
  CHECK(parse_alloc(payload).frees.size() == 1);
  CHECK(refusal(parse_alloc, R"({"free":[{"id":"1"}]})") == "71 missing key: id");
}

TEST_CASE("an update has an expiration, a note or an addition") {
  const rset::ResourceSet resources({{text::IdSet{3}, text::IdSet{0}, {}}}, text::Hostlist::parse("n3"));
  const module::UpdateRequest update{"1", "night", wall_time(5), "", resources};
  const auto read = parse_alloc_update(encode_alloc_update(update, true));
  REQUIRE(read.update);
  CHECK(read.repeat);
  CHECK(read.update->id == "1");
  CHECK(read.update->partition == "night");
  CHECK(read.update->expiration == wall_time(5));
  CHECK(read.update->note == "");
  CHECK(read.update->add == resources);
  CHECK(refusal(parse_alloc_update, R"({"id":"1"})") == "71 missing key: expiration, note or add");
  CHECK(refusal(parse_alloc_update, R"({"note":"x"})") == "71 missing key: id");
  CHECK(refusal(parse_alloc_update, R"({"id":"1","add":1})") == "71 add must be an object");
  CHECK(refusal(parse_alloc_update, R"({"id":"1","add":{}})").starts_with("22 add of allocation 1: "));
}

TEST_CASE("the event of an update has only what changes, and the hosts of the allocation") {
  const auto text_of_event = [](const module::AllocUpdateEvent& event) {
    return encode_event({wall_time(1), event});
  };
  const auto hosts = text::Hostlist::parse("n3");
  const module::AllocUpdateEvent terms{{"night", "1"}, WallTime{}, "x", {}, {}, hosts};
  CHECK(json::parse(text_of_event(terms)).at("context") ==
        json::parse(R"({"id":"1","partition":"night","expiration":0.0,"note":"x","nodelist":"n3"})"));
  module::AllocUpdateEvent grows{{"", "1"}, {}, {}, {}, {}, hosts};
  grows.added = rset::ResourceSet({{text::IdSet{3}, text::IdSet{0}, {}}}, hosts);
  for (const module::AllocUpdateEvent& event : {terms, grows}) {
    const auto read = decode_event(json::parse(text_of_event(event))).value();
    CHECK(encode_event(read) == text_of_event(event));
  }
}

TEST_CASE("the next of a response names its last allocation, whatever the partition is called") {
  for (const module::AllocationName& last :
       {module::AllocationName{"", "j1"}, module::AllocationName{"5:night", "j1:2"}}) {
    const auto page = parse_allocations(json::parse(encode_allocations("[]", last)));
    REQUIRE(page.next);
    CHECK(parse_after(*page.next) == last);
  }
  CHECK_FALSE(parse_allocations(json::parse(encode_allocations("[]", std::nullopt))).next);
  for (const char* after : {"j1", "x:j1", ":j1", "4:abc", "-1:j1"}) {
    CAPTURE(after);
    CHECK_THROWS_AS((void)parse_after(after), Error);
  }
}

TEST_CASE("the partition stands beside each id of the ledger, and events of earlier versions may lack it") {
  const auto context_of = [](const module::EventBody& body) {
    const json event = json::parse(encode_event({wall_time(1), body}));
    return event.at("context");
  };
  const auto decoded = [](const char* name, json context) {
    return decode_event(json{{"timestamp", 1.0}, {"name", name}, {"context", std::move(context)}})
        .value()
        .body;
  };
  const auto hosts = text::Hostlist::parse("n3");
  json context = context_of(module::FreeEvent{{"1"}, {}, hosts, false, "night"});
  CHECK(context == json::parse(R"({"ids":["1"],"partition":"night","nodelist":"n3"})"));
  CHECK(std::get<module::FreeEvent>(decoded("free", context)).partition == "night");
  context.erase("partition");
  CHECK_FALSE(std::get<module::FreeEvent>(decoded("free", context)).partition);

  module::Allocation allocation;
  allocation.name.id = "1";
  allocation.resources = rset::ResourceSet({{text::IdSet{3}, text::IdSet{0}, {}}}, hosts);
  allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
  context = context_of(module::AllocEvent{{std::make_shared<const module::Allocation>(allocation)}});
  CHECK(context.at("allocations").at(0).at("partition") == "");
  context.at("allocations").at(0).erase("partition");
  const auto read = decoded("alloc", context);
  CHECK(std::get<module::AllocEvent>(read).allocations.at(0)->name == allocation.name);
}

}  // namespace
}  // namespace resourced::proto::test
