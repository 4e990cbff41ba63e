"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { test } = require("node:test");
const { decode } = require("./load.js");

test("a tile that Python packed is read as it was meant", { skip: !process.env.CHUNKSCOPE_TILE }, () => {
  const bytes = fs.readFileSync(process.env.CHUNKSCOPE_TILE);
  const expected = JSON.parse(fs.readFileSync(`${process.env.CHUNKSCOPE_TILE}.json`, "utf8"));
  const tile = decode(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  assert.deepEqual(plain(tile), expected);
  assert.ok(tile.arrays.times instanceof Float64Array);
  assert.ok(tile.arrays.codes instanceof Uint8Array);
  assert.ok(tile.arrays.counts instanceof Int32Array);
});

function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}
