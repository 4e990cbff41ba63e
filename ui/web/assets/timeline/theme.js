/* Colours and patterns of the canvas, read from the CSS custom properties of the element it lies in. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const COLOURS = [
    "page", "panel", "line", "hairline", "selected", "selection-edge", "text", "muted", "accent",
    "prefill", "decode", "stall-prefill", "stall-prefill-text",
    "stall-mixed", "stall-mixed-text", "kv-private", "kv-locked", "host",
  ];

  /** What the element's style says now; call again when the theme changes. */
  function readTheme(element, context, ratio) {
    const style = getComputedStyle(element);
    const colour = Object.fromEntries(
      COLOURS.map((name) => [camel(name), style.getPropertyValue(`--cs-${name}`).trim()]),
    );
    const [sans, mono] = ["sans", "mono"].map((name) => style.getPropertyValue(`--cs-${name}`).trim());
    const font = (size, weight = 400, family = sans) => `${weight} ${size}px ${family}`;
    return { colour, font, mono, pattern: patterns(context, ratio, colour) };
  }

  function camel(name) {
    return name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  }

  /** Fill styles by meaning; each tells itself apart without its colour. */
  function patterns(context, ratio, colour) {
    const tile = (size, paint) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = Math.round(size * ratio);
      const own = canvas.getContext("2d");
      own.scale(canvas.width / size, canvas.height / size);
      paint(own, size);
      const pattern = context.createPattern(canvas, "repeat");
      pattern.setTransform(new DOMMatrix().scale(size / canvas.width));
      return pattern;
    };
    return {
      stallPrefill: tile(8, (own, size) => hatch(own, size, colour.page, colour.stallPrefill, 0.3, 2.6)),
      stallHeld: tile(7, (own, size) => hatch(own, size, colour.page, colour.kvPrivate, 0.25, 2)),
      stallMixed: tile(4, (own, size) =>
        dots(own, size, colour.page, colour.stallMixed, 0.4, colour.stallMixedText, 1.4)),
      stallUnknown: tile(4, (own, size) =>
        dots(own, size, colour.page, colour.stallMixed, 0.12, colour.stallMixed, 1)),
      strip: tile(7, (own, size) => hatch(own, size, colour.prefill, "rgba(255, 255, 255, 0.5)", 1, 0.9, true)),
      kvPrivate: tile(5, (own, size) => hatch(own, size, colour.page, colour.kvPrivate, 0.45, 1.6)),
      kvEvictable: tile(4, (own, size) => dots(own, size, colour.page, colour.page, 1, colour.kvLocked, 1.3)),
    };
  }

  /** Diagonal stripes of one colour over a tint of it, or over a ground of its own. */
  function hatch(own, size, page, stripe, tint, width, grounded = false) {
    own.fillStyle = page;
    own.fillRect(0, 0, size, size);
    if (!grounded) {
      own.globalAlpha = tint;
      own.fillStyle = stripe;
      own.fillRect(0, 0, size, size);
      own.globalAlpha = 1;
    }
    own.strokeStyle = stripe;
    own.lineWidth = width;
    own.beginPath();
    for (const shift of [-size, 0, size]) {
      const [from, to] = grounded ? [-1, size + 1] : [size + 1, -1];
      own.moveTo(shift - 1, from);
      own.lineTo(shift + size + 1, to);
    }
    own.stroke();
  }

  /** One dot a tile over a tint. */
  function dots(own, size, page, tint, alpha, dot, width) {
    own.fillStyle = page;
    own.fillRect(0, 0, size, size);
    own.globalAlpha = alpha;
    own.fillStyle = tint;
    own.fillRect(0, 0, size, size);
    own.globalAlpha = 1;
    own.fillStyle = dot;
    own.fillRect((size - width) / 2, (size - width) / 2, width, width);
  }

  timeline.readTheme = readTheme;
})();
