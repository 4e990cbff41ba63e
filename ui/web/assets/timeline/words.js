/* Numbers, times and names as the canvas writes them; the rules are those of ui/words.py. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const UNKNOWN = "–";
  const ISOLATE = "\u2068";
  const ISOLATE_END = "\u2069";
  const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu;

  /** A whole number with thousands separated, a dash for what the trace does not know. */
  function count(value) {
    return value === null || value < 0 ? UNKNOWN : grouped(value, 0);
  }

  /** Rounded as Python rounds, unlike toLocaleString. */
  function grouped(value, decimals) {
    const [whole, fraction] = value.toFixed(decimals).split(".");
    const commas = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return fraction === undefined ? commas : `${commas}.${fraction}`;
  }

  /** Milliseconds below one second (0.42 ms, 24.6 ms, 653 ms), else seconds with two decimals (1.53 s). */
  function duration(ns) {
    const ms = ns / 1e6;
    if (Math.round(ms) >= 1000) return `${grouped(ns / 1e9, 2)} s`;
    return `${ms.toFixed(ms >= 99.95 ? 0 : ms >= 0.995 ? 1 : 2)} ms`;
  }

  /** An instant, with as many decimals as tell it from one `stepNs` later: 1.2 s, 412.5 ms, 3.25 µs. */
  function instant(ns, stepNs) {
    const inSeconds = Math.abs(ns) >= 1e9 || stepNs >= 1e8;
    const [unit, name] = inSeconds ? [1e9, "s"] : stepNs >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
    const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(stepNs / unit) - 1e-9)));
    return `${grouped(ns / unit, decimals)} ${name}`;
  }

  /** A name on one line: control and format characters as escapes, its direction kept to itself. */
  function isolate(name) {
    return ISOLATE + escaped(name) + ISOLATE_END;
  }

  /** A text with its control and format characters as escapes. */
  function escaped(text) {
    return text.replace(UNSHOWN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  }

  /** The longest start of a name that fits `width`, an ellipsis after it where it was cut; "" if none does. */
  function fitted(name, width, measure) {
    const characters = Array.from(escaped(name.slice(0, 400)));
    const whole = ISOLATE + characters.join("") + ISOLATE_END;
    if (measure(whole) <= width) return whole;
    let [least, most] = [0, characters.length];
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (measure(cut(characters, middle)) <= width) least = middle;
      else most = middle - 1;
    }
    return least > 0 ? cut(characters, least) : "";
  }

  function cut(characters, length) {
    return ISOLATE + characters.slice(0, length).join("") + ISOLATE_END + "…";
  }

  timeline.words = { UNKNOWN, count, duration, instant, isolate, fitted };
})();
