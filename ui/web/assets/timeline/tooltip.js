/* What lies under the pointer, in words; from the numbers that the tile has. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const MODES = ["extend", "decode", "mixed"]; // by the codes of engine.batch.ForwardMode
  const OFFSET = 14; // pixels from the pointer

  /** Lines about the item of a track at an instant; none where there is nothing. */
  function describe(band, track, ns, slack) {
    if (!band?.tile || !track) return [];
    const { hit } = timeline;
    const { counters, strip } = band.tile;
    if (track.kind === "lane") return laneLines(track.lane, hit.laneItem(track.lane.items, ns, slack));
    if (track.kind === "strip") return forwardLines(strip, hit.stripItem(strip, ns, slack));
    if (track.kind === "kv") return pageLines(counters, ns);
    return [];
  }

  function laneLines(lane, i) {
    const { count, duration, isolate } = timeline.words;
    const name = isolate(lane.name.slice(0, 80));
    if (i < 0) return [name];
    const { KIND } = timeline.hit;
    const { items } = lane;
    const length = duration(items.end_ns[i] - items.start_ns[i]);
    const late = `before token ${count(items.number[i])}`;
    const many = items.count[i] > 1 ? `${count(items.count[i])} like it, the longest is shown` : "";
    const words = {
      [KIND.QUEUED]: [`${name} waits ${length}`],
      [KIND.CHUNK]: [
        `${name} chunk ${items.number[i]}${items.of[i] > 0 ? `/${items.of[i]}` : ""}`,
        `${count(items.tokens[i])} tokens, ${length}, forward ${count(items.forward_id[i])}`,
      ],
      [KIND.TOKEN]: [`${name} token ${count(items.number[i])}`, `forward ${count(items.forward_id[i])}`],
      [KIND.STALL_PREFILL]: [`${name} silent ${late}: others' prefill`, `${length}; click for what filled it`],
      [KIND.STALL_MIXED]: [`${name} slowed ${late}: mixed extra`, `${length}; click for what filled it`],
      [KIND.STALL_UNKNOWN]: [
        `${name} rode in a mixed forward ${late}`,
        `${length} in all; what the chunk beside it cost is not known`,
      ],
      [KIND.STALL_HELD]: [`${name} held back ${late}: no KV`, `${length}; click for what filled it`],
      [KIND.STALL_DEFERRED]: [`${name} deferred ${late}: interval`, `${length}; click for what filled it`],
    };
    return [...words[items.kind[i]], many].filter(Boolean);
  }

  function forwardLines(strip, i) {
    const { count, duration } = timeline.words;
    if (i < 0) return [];
    const lines = [
      `forward ${count(strip.forward_id[i])}, ${MODES[strip.mode[i]] ?? "mode unknown"}`,
      `${count(strip.extend_tokens[i])} prefill + ${count(strip.decode_tokens[i])} decode tokens`,
      `chunk budget ${count(strip.budget_tokens[i])}`,
    ];
    if (strip.count[i] === 1) lines.push(duration(strip.end_ns[i] - strip.start_ns[i]));
    else lines.push(`the longest of ${count(strip.count[i])} forwards here`);
    return lines;
  }

  function pageLines(counters, ns) {
    const i = timeline.hit.lastNotAbove(counters.t_ns, ns);
    if (i < 0) return [];
    const kinds = [["locked", "protected"], ["private", "private"], ["evictable", "evictable"], ["free", "free"]];
    return kinds.map(([word, kind]) => `${timeline.words.count(counters[`pages_${kind}`][i])} ${word}`);
  }

  /** Show lines beside a point of the parent element, or hide the element where there are none. */
  function place(element, lines, x, y, parent) {
    element.hidden = !lines.length;
    if (!lines.length) return;
    element.replaceChildren(...lines.map((line) => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }));
    const { offsetWidth: width, offsetHeight: height } = element;
    const left = x + OFFSET + width <= parent.clientWidth ? x + OFFSET : x - OFFSET - width;
    element.style.left = `${Math.max(0, left)}px`;
    element.style.top = `${y + OFFSET + height <= parent.clientHeight ? y + OFFSET : y - OFFSET - height}px`;
  }

  timeline.tooltip = { describe, place };
})();
