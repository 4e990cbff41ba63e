/* Runs the timeline's scripts as a page does, and hands over what they define. */
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const FOLDER = path.join(__dirname, "../../../../ui/web/assets/timeline");

for (const folder of [FOLDER, path.join(FOLDER, "draw")]) {
  for (const file of fs.readdirSync(folder).filter((name) => name.endsWith(".js")).sort().reverse()) {
    require(path.join(folder, file)); // in reverse: no script may need another one before it
  }
}

module.exports = globalThis.Chunkscope.timeline;
