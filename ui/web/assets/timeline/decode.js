/* A tile's bytes as objects of typed arrays; ui/web/tile_bytes.py writes them. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const ARRAYS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

  /** The header of a tile, each of its array entries replaced by the array. */
  function decode(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    return withArrays(header, buffer, 4 + length);
  }

  function withArrays(value, buffer, data) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((item) => withArrays(item, buffer, data));
    if (value.dtype !== undefined) return new ARRAYS[value.dtype](buffer, data + value.offset, value.length);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withArrays(item, buffer, data)]));
  }

  timeline.decode = decode;
})();
