import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { modelOf } from "./fold.js";
import { detailOf, passes, targetsOf } from "./eventtext.js";
import * as shell from "./shell.js";
import * as router from "./router.js";
import { Parser } from "./sse.js";
import { duration } from "./time.js";

test("server-sent events are read in any pieces", () => {
  const stream = ": hello\n\nid: 7\ndata: {\"events\":[]}\n\nevent: end\r\ndata: one\r\ndata:two\r\n\r\nid: 9\n\ndata\n\n";
  for (let size = 1; size < stream.length; ++size) {
    const messages = [];
    const parser = new Parser((message) => messages.push([message.event, message.id, message.data]));
    for (let at = 0; at < stream.length; at += size) parser.push(stream.slice(at, at + size));
    assert.deepEqual(messages, [["message", "7", '{"events":[]}'], ["end", undefined, "one\ntwo"], ["message", undefined, ""]]);
  }
});

test("an address leads to the place that wrote it", () => {
  for (const place of [
    { view: "map", argument: "", params: {} },
    { view: "node", argument: "rack/1 ?#%", params: { q: "a b&c=d", group: "name" } },
    { view: "events", argument: "", params: { names: "drain,undrain", text: "100%" } },
  ]) assert.deepEqual(router.parse(router.format(place)), place);
  assert.deepEqual(router.parse(""), { view: "map", argument: "", params: {} });
  assert.equal(router.parse("#/node/%E0%A4%A").argument, "");
});

test("durations have their two largest units", () => {
  const shown = [[0, "0 s"], [59.9, "59 s"], [60, "1 min"], [61, "1 min"], [3600, "1 h"], [3700, "1 h 1 min"], [90000, "1 d 1 h"], [86400 * 400, "400 d"], [-5, "0 s"]];
  for (const [seconds, text] of shown) assert.equal(duration(seconds), text);
});

const model = modelOf({ R: { execution: { R_lite: [{ rank: "0-9", children: { core: "0" } }], nodelist: ["node[0-9]"] } }, online: "0-9" });

test("events tell their nodes and details", () => {
  assert.equal(targetsOf(model, { name: "offline", context: { idset: "3-4" } }), "node[3-4]");
  assert.equal(targetsOf(model, { name: "restart", context: { ranks: "0-9", nodelist: "node[0-9]" } }), "node[0-9]");
  assert.equal(targetsOf(model, { name: "property-update", context: { "property-add": { a: "1" }, "property-remove": { b: "3" } } }), "node[1,3]");
  assert.equal(detailOf({ name: "free", context: { ids: ["a", "b"] } }), "a, b");
  assert.equal(detailOf({ name: "property-update", context: { "property-add": { a: "1" }, "property-remove": { b: "3" } } }), "+a, −b");
});

test("a filter is a host, or a part of what is shown", () => {
  const drain = { name: "drain", context: { idset: "2-4", nodelist: "node[2-4]", reason: "Bad Disk", by: { userid: 1000 } } };
  const filter = (text, ...names) => passes(model, drain, { names: new Set(names), text });
  assert.ok(filter("node3") && filter("disk") && filter("user 1000") && filter("", "drain", "undrain"));
  assert.ok(!filter("node5") && !filter("", "undrain") && !filter("fan"));
});

test("what is printed for copying is one argument for a shell, whatever a node is called", () => {
  for (const word of ["node7", "rack-1.node_2", "a b", "$(touch /tmp/x)", "a'b", "`id`", "a;b", "n\\o", '"', "*", "~root", "#x", "é", ""]) {
    const out = execFileSync("/bin/sh", ["-c", `printf '<%s>' ${shell.quoted(word)}`], { encoding: "utf8", cwd: "/" });
    assert.equal(out, `<${word}>`);
  }
  assert.equal(shell.quoted("node7"), "node7");
  assert.equal(shell.quoted("-oProxyCommand=x"), "-- '-oProxyCommand=x'");
  assert.equal(shell.hostTarget("0003"), "host:0003");
  assert.equal(shell.hostTarget("node 3"), "'node 3'");
});

test("an event is found by each of its ids", () => {
  const ids = ["a", "b", "c", "d", "e", "hidden"];
  assert.ok(passes(model, { name: "free", context: { ids, nodelist: "node1" } }, { names: new Set(), text: "hidden" }));
});
