// Names of users: requested once they are needed, and shown once the daemon knows them.
import assert from "node:assert/strict";
import { test } from "node:test";

const asked = [];
let answers = [];
globalThis.sessionStorage = { getItem: () => null };
globalThis.fetch = (url) => {
  asked.push(url);
  return Promise.resolve({ ok: true, json: () => Promise.resolve({ names: answers.shift() ?? {} }) });
};

const users = await import("./users.js");
const { actorText } = await import("./model.js");

test("an actor has the name of its user once it is known", async () => {
  assert.equal(actorText({ userid: 7 }), "user 7"); // the page asks for no names before it has started
  answers = [{ 7: "lp" }];
  await new Promise((changed) => {
    users.start(changed);
    assert.equal(actorText({ userid: 7 }), "user 7");
    assert.equal(actorText({ userid: 3 }), "user 3");
    assert.equal(actorText({ userid: 7 }), "user 7");
  });
  assert.deepEqual(asked, ["api/resource.user-names?userids=3%2C7"]);
  assert.equal(actorText({ userid: 7 }), "lp");
  assert.equal(actorText({ userid: 3 }), "user 3");
  answers = [{ 3: "sys" }];
  await new Promise((changed) => users.start(changed));
  assert.equal(asked[1], "api/resource.user-names?userids=3");
  assert.equal(actorText({ userid: 3 }), "sys");
  assert.equal(actorText({ host: "node7" }), "host node7");
});
