/* Keys, wheel and pointer turned into what the timeline does; the rest of the page's keys are not looked at. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const DRAGGED = 4; // pixels from which a press is a drag
  const EDGE = 5; // pixels beside the minimap's box that resize it
  const TAP_PIXELS = 50; // a tap of A or D, then pixels a second while held, growing
  const TAP_ZOOM = 1.15; // a tap of W or S, then e-folds a second while held, growing
  const HELD_PIXELS = 500;
  const HELD_ZOOM = 1.2;
  const GROWTH = 2.5; // a second of holding adds this many times the first speed
  const MOST_TIMES = 6;
  const WHEEL_ZOOM = 0.0015;
  const LINE_PIXELS = 16;
  const MOVES = { KeyW: ["zoom", -1], KeyS: ["zoom", 1], KeyA: ["pan", -1], KeyD: ["pan", 1] };
  const ACTS = { KeyF: "fit", KeyM: "mark", Escape: "clear" };

  /**
   * Listen on the head and the body canvas and on the document's keys; `actions` does things.
   * Returns {held, step, stop}: whether keys are down, what they do in some milliseconds, and the end of it all.
   */
  function listen(head, body, actions) {
    const stopping = new AbortController();
    const on = (target, type, handler, options = {}) =>
      target.addEventListener(type, handler, { ...options, signal: stopping.signal });
    const keys = heldKeys(actions);
    on(document, "keydown", (event) => keys.down(event));
    on(document, "keyup", (event) => keys.up(event));
    on(globalThis, "blur", () => keys.clear());
    for (const canvas of [head, body]) {
      on(canvas, "wheel", (event) => wheel(event, canvas, actions), { passive: false });
    }
    const dragBody = bodyDrag(actions);
    const dragHead = headDrag(actions);
    for (const [canvas, drag] of [[body, dragBody], [head, dragHead]]) {
      on(canvas, "pointerdown", (event) => {
        if (event.button !== 0) return;
        canvas.setPointerCapture(event.pointerId);
        drag.down(point(event, canvas), event);
      });
      on(canvas, "pointermove", (event) => drag.move(point(event, canvas), event));
      on(canvas, "pointerup", (event) => drag.up(point(event, canvas), event));
      on(canvas, "pointercancel", () => drag.cancel());
      on(canvas, "pointerleave", () => actions.leave());
    }
    return { held: keys.held, step: keys.step, stop: () => stopping.abort() };
  }

  function point(event, canvas) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** Physical keys, so that they lie alike on every keyboard layout. */
  function heldKeys(actions) {
    const down = new Map(); // code -> milliseconds held
    return {
      held: () => down.size > 0,
      clear: () => down.clear(),
      up: (event) => down.delete(event.code),
      down(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
        if (ACTS[event.code] && !event.repeat && !event.shiftKey) return actions[ACTS[event.code]]();
        const move = MOVES[event.code];
        if (!move || (event.repeat && down.has(event.code))) return;
        event.preventDefault();
        if (actions.eased()) down.set(event.code, 0);
        const [what, sign] = move;
        if (what === "zoom") actions.zoomBy(TAP_ZOOM ** sign);
        else actions.panPixels(sign * TAP_PIXELS);
      },
      step(elapsedMs) {
        for (const [code, before] of down) {
          const ms = before + elapsedMs;
          down.set(code, ms);
          const [what, sign] = MOVES[code];
          const amount = (sign * Math.min(MOST_TIMES, 1 + (GROWTH * ms) / 1000) * elapsedMs) / 1000;
          if (what === "zoom") actions.zoomBy(Math.exp(amount * HELD_ZOOM));
          else actions.panPixels(amount * HELD_PIXELS);
        }
      },
    };
  }

  function typing(target) {
    return target instanceof Element && target.closest("input, textarea, select, dialog, [contenteditable]") !== null;
  }

  /** The wheel pans over the plot and zooms with ctrl; over the labels it scrolls the page. */
  function wheel(event, canvas, actions) {
    const at = point(event, canvas);
    if (at.x < actions.plotLeft()) return;
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    const [dx, dy] = [event.deltaX * pixels, event.deltaY * pixels];
    if (event.ctrlKey) actions.zoomBy(Math.exp(dy * WHEEL_ZOOM), at.x);
    else actions.panPixels(Math.abs(dx) > Math.abs(dy) ? dx : dy);
  }

  /** A click picks, a drag selects, a drag with shift pans. */
  function bodyDrag(actions) {
    let from = null;
    let mode = "click";
    return {
      down(at, event) {
        from = at;
        mode = event.shiftKey ? "pan" : "click";
      },
      move(at) {
        actions.hover(at.x, at.y);
        if (!from) return;
        if (mode === "click" && Math.abs(at.x - from.x) > DRAGGED && from.x >= actions.plotLeft()) mode = "select";
        if (mode === "select") actions.select(from.x, at.x, false);
        if (mode === "pan") {
          actions.panPixels(from.x - at.x, true);
          from = at;
        }
      },
      up(at) {
        if (!from) return;
        if (mode === "click") actions.click(from.x, from.y);
        if (mode === "select") actions.select(from.x, at.x, true);
        from = null;
      },
      cancel: () => (from = null),
    };
  }

  /** On the minimap: an edge of the box resizes it, its inside moves it, elsewhere centres it. */
  function headDrag(actions) {
    let grip = null;
    const gripAt = (x) => {
      const [x0, x1] = actions.boxPixels();
      if (Math.abs(x - x0) <= EDGE && Math.abs(x - x0) <= Math.abs(x - x1)) return { edge: 0 };
      if (Math.abs(x - x1) <= EDGE) return { edge: 1 };
      return x > x0 && x < x1 ? { inside: x - x0 } : { inside: (x1 - x0) / 2 };
    };
    const apply = (x) => {
      const [x0, x1] = actions.boxPixels();
      if (grip.edge === 0) actions.showBox(Math.min(x, x1 - 1), x1);
      else if (grip.edge === 1) actions.showBox(x0, Math.max(x, x0 + 1));
      else actions.showBox(x - grip.inside, x - grip.inside + (x1 - x0));
    };
    return {
      down(at) {
        if (at.x < actions.plotLeft()) return;
        grip = gripAt(at.x);
        if (grip.edge === undefined) apply(at.x);
      },
      move(at, event) {
        event.target.style.cursor = gripAt(at.x).edge === undefined ? "grab" : "ew-resize";
        if (grip) apply(at.x);
      },
      up: () => (grip = null),
      cancel: () => (grip = null),
    };
  }

  timeline.listen = listen;
})();
