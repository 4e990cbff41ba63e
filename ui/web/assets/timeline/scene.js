/* The elements of a timeline, and how one frame is drawn on them. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const TICK_PIXELS = 90;
  const LEAST_WIDTH = 320;

  /** Builds the canvases inside `element`; `label` says to those who do not see it what it is. */
  function createScene(element, label) {
    const root = child(element, "div", "cs-timeline");
    const headBox = child(root, "div", "cs-timeline-head");
    const bodyBox = child(root, "div", "cs-timeline-body");
    const head = canvasIn(headBox, "Minimap of the whole run, and the time axis");
    const base = canvasIn(bodyBox, null);
    const over = canvasIn(bodyBox, label);
    over.canvas.tabIndex = 0;
    const tooltip = child(bodyBox, "div", "cs-timeline-tooltip");
    tooltip.hidden = true;
    const live = child(root, "div", "cs-timeline-live");
    live.setAttribute("aria-live", "polite");
    const { SIZES } = timeline.layout;
    let width = 0;
    let ratio = 0;

    /** Read colours and sizes anew; returns whether there is room to draw on. */
    function measure(force = false) {
      const [now, density] = [Math.floor(root.clientWidth), globalThis.devicePixelRatio || 1];
      if (now !== width || density !== ratio || force) {
        [width, ratio] = [now, density];
        for (const { brush } of [head, base, over]) brush.theme = timeline.readTheme(root, brush.context, ratio);
      }
      return width >= LEAST_WIDTH;
    }

    /** Scales of the plot: of a range, and of the whole extent. */
    function scaleOf(range) {
      return timeline.viewport.scale(range, SIZES.gutter, plotWidth());
    }

    function plotWidth() {
      return Math.max(1, width - SIZES.gutter - SIZES.margin);
    }

    /** Draw what changed: the bands only when `everything`; `model` is what the timeline knows. */
    function draw(model, everything) {
      const scale = scaleOf(model.range);
      const ticks = timeline.viewport.ticks(model.range, scale.right - scale.left, TICK_PIXELS);
      const view = { ...model, scale, ticks, whole: scaleOf(model.extent) };
      if (everything) {
        const height = model.bands.reduce((sum, band) => sum + band.height, 0);
        clear(base, height);
        for (const band of model.bands) {
          clipped(base.brush, scale, band, () => timeline.draw.band(base.brush, band, view));
        }
        bodyBox.style.height = `${height}px`;
      }
      view.height = bodyBox.clientHeight;
      clear(over, view.height);
      timeline.draw.overlay(over.brush, model.bands, view);
      clear(head, SIZES.minimap + SIZES.axis);
      timeline.draw.header(head.brush, view);
    }

    function clear({ canvas, brush }, height) {
      const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
      }
      brush.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      brush.fill(brush.theme.colour.page, 0, 0, width, height);
      if (canvas === over.canvas) brush.context.clearRect(0, 0, width, height);
    }

    return {
      root, head: head.canvas, over: over.canvas, bodyBox, tooltip, live,
      measure, scaleOf, plotWidth, draw,
      remove: () => root.remove(),
    };
  }

  /** Nothing of a band is drawn on another. */
  function clipped(brush, scale, band, paint) {
    const { context } = brush;
    context.save();
    context.beginPath();
    context.rect(0, band.y, scale.right + timeline.layout.SIZES.margin, band.height);
    context.clip();
    paint();
    context.restore();
  }

  function child(parent, tag, className) {
    const element = document.createElement(tag);
    element.className = className;
    return parent.appendChild(element);
  }

  function canvasIn(parent, label) {
    const canvas = child(parent, "canvas", "cs-timeline-canvas");
    if (label) {
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", label);
    } else {
      canvas.setAttribute("aria-hidden", "true");
    }
    return { canvas, brush: timeline.draw.createBrush(canvas.getContext("2d")) };
  }

  timeline.createScene = createScene;
})();
