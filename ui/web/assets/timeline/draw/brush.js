/* A canvas context with the few ways in which the timeline draws: whole pixels, merged runs, plates, fitted text. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const WIDTHS_KEPT = 4_000;

  /** Draws on `context` with a theme's colours; one brush lives as long as its canvas. */
  function createBrush(context) {
    const widths = new Map();
    const brush = {
      context,
      theme: null,

      /** Width of a text in the font that is set. */
      measure(text) {
        const key = `${context.font}|${text}`;
        let width = widths.get(key);
        if (width === undefined) {
          if (widths.size > WIDTHS_KEPT) widths.clear();
          width = context.measureText(text).width;
          widths.set(key, width);
        }
        return width;
      },

      font(size, weight = 400, family = undefined) {
        context.font = brush.theme.font(size, weight, family);
      },

      fill(style, x, y, width, height) {
        context.fillStyle = style;
        context.fillRect(x, y, width, height);
      },

      /** A line of one pixel, or a dashed one. */
      line(style, x0, y0, x1, y1, dash = []) {
        context.strokeStyle = style;
        context.lineWidth = 1;
        context.setLineDash(dash);
        context.beginPath();
        context.moveTo(x0, y0);
        context.lineTo(x1, y1);
        context.stroke();
        context.setLineDash([]);
      },

      /** The outline of a rectangle, its line inside it. */
      outline(style, x, y, width, height, thickness = 1, dash = []) {
        context.strokeStyle = style;
        context.lineWidth = thickness;
        context.setLineDash(dash);
        context.strokeRect(x + thickness / 2, y + thickness / 2, width - thickness, height - thickness);
        context.setLineDash([]);
      },

      /** Text at its left end, or around or before x; y is its middle. */
      text(text, x, y, style, align = "left") {
        context.fillStyle = style;
        context.textAlign = align;
        context.textBaseline = "middle";
        context.direction = "ltr";
        context.fillText(text, x, y + 0.5);
      },

      /** Text on an opaque plate that starts at x. */
      plate(text, x, y, height, style, ground) {
        brush.fill(ground, x, y, brush.measure(text) + 6, height);
        brush.text(text, x + 3, y + height / 2, style);
      },

      /** Bars over runs of items that touch or overlap in pixels, so that a crowd costs as much as one. */
      runs() {
        let [from, to] = [0, -Infinity];
        let paint = null;
        return {
          add(x0, x1, painter) {
            if (x0 <= to && painter === paint) {
              to = Math.max(to, x1);
              return;
            }
            this.end();
            [from, to, paint] = [x0, x1, painter];
          },
          end() {
            if (to > from && paint) paint(from, to);
            [from, to] = [0, -Infinity];
          },
        };
      },
    };
    return brush;
  }

  /** The pixels of an interval inside the plot: whole ones, at least one; null when it lies outside. */
  function span(scale, start, end) {
    if (end < scale.ns(scale.left) || start > scale.ns(scale.right)) return null;
    const x0 = Math.max(scale.left, Math.round(scale.x(start)));
    const x1 = Math.min(scale.right, Math.max(x0 + 1, Math.round(scale.x(end))));
    return x1 > x0 ? [x0, x1] : null;
  }

  draw.createBrush = createBrush;
  draw.span = span;
})();
