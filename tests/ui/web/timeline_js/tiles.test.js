"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { createStore } = require("./load.js");

const window = (t0) => ({ t0, t1: t0 + 100, columns: 10, lanes: [t0, t0 + 100] });

/** Answers each request when told to; `asked` are {url, answer(status, text), aborted}. */
function fakeServer(t) {
  const asked = [];
  t.mock.method(globalThis, "fetch", (url, { signal }) =>
    new Promise((resolve, reject) => {
      const request = { url, aborted: false };
      request.answer = (header) => resolve(response(200, header));
      request.refuse = (status, error) => resolve(response(status, { error }));
      signal.addEventListener("abort", () => {
        request.aborted = true;
        reject(new Error("aborted"));
      });
      asked.push(request);
    }));
  return asked;
}

function response(status, header) {
  const text = new TextEncoder().encode(JSON.stringify(header).padEnd(60));
  const buffer = new ArrayBuffer(4 + text.length);
  new DataView(buffer).setUint32(0, text.length, true);
  new Uint8Array(buffer, 4).set(text);
  return { ok: status < 400, status, arrayBuffer: async () => buffer, json: async () => header };
}

const arrived = () => new Promise((done) => setImmediate(done));

test("the last tile stays until the wanted one is here, and one that nobody wants any more is given up", async (t) => {
  const asked = fakeServer(t);
  const store = createStore("/api", () => {});
  assert.equal(store.tile(0, window(0), 14, []), null);
  assert.equal(store.tile(0, window(0), 14, []), null);
  assert.deepEqual(asked.map((a) => a.url), ["/api/0/tile?t0=0&t1=100&columns=10&lanes=14&lanes_t0=0&lanes_t1=100"]);
  asked[0].answer({ n: 1 });
  await arrived();
  assert.equal(store.tile(0, window(0), 14, []).n, 1);
  assert.equal(store.tile(0, window(50), 14, [3, 5]).n, 1);
  assert.ok(asked[1].url.endsWith("&keep=3,5"));
  assert.equal(store.tile(0, window(90), 14, []).n, 1);
  assert.ok(asked[1].aborted);
  asked[2].answer({ n: 3 });
  await arrived();
  assert.equal(store.tile(0, window(90), 14, []).n, 3);
  assert.equal(store.tile(0, window(0), 14, []).n, 1);
  assert.equal(asked.length, 3);
});

test("runs do not wait for one another", async (t) => {
  const asked = fakeServer(t);
  const store = createStore("/api", () => {});
  store.tile(0, window(0), 14, []);
  store.tile(1, window(0), 14, []);
  asked[1].answer({ n: 2 });
  await arrived();
  assert.equal(store.tile(1, window(0), 14, []).n, 2);
  assert.equal(asked[0].aborted, false);
});

test("few tiles are kept", async (t) => {
  const asked = fakeServer(t);
  const store = createStore("/api", () => {});
  for (let i = 0; i < 30; i++) {
    store.tile(0, window(i), 14, []);
    asked[i].answer({ n: i });
    await arrived();
  }
  store.tile(0, window(29), 14, []);
  store.tile(0, window(20), 14, []);
  assert.equal(asked.length, 30);
  store.tile(0, window(0), 14, []);
  assert.equal(asked.length, 31);
});

test("a grown run is asked for again, and drawn as it was meanwhile", async (t) => {
  const asked = fakeServer(t);
  const store = createStore("/api", () => {});
  store.tile(0, window(0), 14, []);
  asked[0].answer({ n: 1 });
  await arrived();
  store.outdate();
  assert.equal(store.tile(0, window(0), 14, []).n, 1);
  assert.equal(asked.length, 2);
});

test("a refusal is said with the server's words, and tried again", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = fakeServer(t);
  const store = createStore("/api", () => {});
  store.tile(0, window(0), 14, []);
  asked[0].refuse(400, "t0=x is not a whole number");
  await arrived();
  assert.match(store.error(0), /t0=x is not a whole number/);
  store.tile(0, window(0), 14, []);
  assert.equal(asked.length, 1);
  t.mock.timers.tick(2_000);
  store.tile(0, window(0), 14, []);
  assert.equal(asked.length, 2);
  asked[1].answer({ n: 2 });
  await arrived();
  assert.equal(store.error(0), null);
});
