// Lines over time as SVG. Series differ by dashes and signs, not by colour alone; values are read
// with the pointer or the arrow keys, and stand in the legend.

import { h, s, text } from "./dom.js";

const MARGIN = { top: 10, right: 14, bottom: 24, left: 74 };
const SIGNS = { circle: "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0", square: "M-3,-3h6v6h-6z", triangle: "M0,-4l4,7h-8z", diamond: "M0,-4l4,4l-4,4l-4,-4z" };

/** Round numbers from zero to at least `max`; of bytes, powers of two are round. */
function ticks(max, wanted, inBytes) {
  if (!(max > 0)) return [0, 1];
  const rough = max / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = inBytes ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 2.5, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const all = [];
  for (let value = 0; value < max + step * 0.999; value += step) all.push(Number(value.toPrecision(6)));
  return all;
}

/** Powers of a base around these values. */
function logTicks(base, min, max) {
  const power = (value) => Math.log(value) / Math.log(base);
  const all = [];
  for (let step = Math.floor(power(min)); step <= Math.ceil(power(max)); step += 1) all.push(base ** step);
  return all;
}

const ago = (span) => (span === 0 ? "now" : span < 60 ? `−${span} s` : `−${Number((span / 60).toPrecision(2))} min`);

/**
 * A chart. `log`: the base of a logarithmic scale, if it has one; `inBytes`: values are bytes. `series`: [{ key, label, sign, tone }]; `format` shows a value; `target` names a line across.
 * `update({ lines: { key: [[t, v], …] }, target, marks: [t, …], now, span })` draws it.
 */
export function chart({ label, series, format, target, marksLabel, height = 190, log = false, inBytes = false }) {
  const canvas = s("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": label, height });
  const legend = h("ul", { class: "legend" });
  const element = h("figure", { class: "chart-figure" }, canvas, legend);
  const parts = {
    grid: s("g", { class: "grid" }), marks: s("g", { class: "marks" }), target: s("g", { class: "target" }),
    lines: s("g"), cursor: s("line", { class: "cursor", visibility: "hidden" }),
  };
  canvas.append(...Object.values(parts));
  const drawn = series.map((one) => {
    const line = s("path", { class: `line ${one.tone} ${one.sign}` });
    const signs = s("path", { class: `signs ${one.tone}` });
    parts.lines.append(line, signs);
    const value = h("b");
    legend.append(h("li", null, swatch(one), `${one.label} `, value));
    return { ...one, line, signs, value };
  });
  let targetValue = null;
  if (target) {
    targetValue = h("b");
    legend.append(h("li", null, s("svg", { class: "swatch", width: 28, height: 12, "aria-hidden": "true" }, s("line", { class: "target-line", x1: 0, x2: 28, y1: 6, y2: 6 })), `${target} `, targetValue));
  }
  if (marksLabel) {
    legend.append(h("li", null, s("svg", { class: "swatch", width: 28, height: 12, "aria-hidden": "true" }, s("line", { class: "mark", x1: 14, x2: 14, y1: 0, y2: 12 })), marksLabel));
  }
  let state = null;
  let cursor = null;

  function scales() {
    const width = Math.max(canvas.clientWidth, 240);
    const { lines, now, span } = state;
    const values = drawn.flatMap(({ key }) => (lines[key] ?? []).filter(([t]) => t >= now - span).map((point) => point[1]));
    const most = Math.max(0, ...values, state.target ?? 0);
    const bottom = height - MARGIN.bottom;
    const x = (t) => MARGIN.left + ((t - (now - span)) / span) * (width - MARGIN.left - MARGIN.right);
    if (log) {
      const positive = values.filter((value) => value > 0);
      const all = positive.length ? logTicks(log, Math.min(...positive), Math.max(...positive) * 1.01) : [1, log];
      const [low, high] = [Math.log10(all[0]), Math.log10(all.at(-1))];
      const y = (v) => bottom - ((Math.log10(Math.max(v, all[0])) - low) / Math.max(high - low, 1e-9)) * (bottom - MARGIN.top);
      return { width, x, y, values: all, bottom };
    }
    const all = ticks(most * 1.08, 3, inBytes);
    const y = (v) => bottom - (v / all.at(-1)) * (bottom - MARGIN.top);
    return { width, x, y, values: all, bottom };
  }

  function draw() {
    if (!state || canvas.clientWidth === 0) return;
    const { width, x, y, values, bottom } = scales();
    const { lines, now, span } = state;
    canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const grid = values.map((value) => [
      s("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      s("text", { x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    ]);
    const steps = width < 360 ? 2 : span === 300 ? 5 : 4;
    for (let step = 0; step <= steps; step += 1) {
      const before = (span * step) / steps;
      const anchor = step === 0 ? "end" : step === steps ? "start" : "middle";
      grid.push(s("text", { x: x(now - before), y: height - 6, "text-anchor": anchor }, ago(Math.round(before))));
    }
    parts.grid.replaceChildren(...grid.flat());
    const from = now - span;
    const marks = (state.marks ?? []).filter((t) => t >= from);
    parts.marks.replaceChildren(...marks.map((t) => s("line", { class: "mark", x1: x(t), x2: x(t), y1: bottom - 7, y2: bottom })));
    parts.target.replaceChildren();
    if (state.target !== null && state.target !== undefined) {
      parts.target.append(s("line", { class: "target-line", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(state.target), y2: y(state.target) }));
    }
    for (const one of drawn) {
      const points = (lines[one.key] ?? []).filter(([t]) => t >= from);
      let path = "";
      let signs = "";
      let previous = null;
      const every = Math.max(1, Math.floor(points.length / 6));
      points.forEach(([t, v], place) => {
        const [px, py] = [x(t).toFixed(1), y(v).toFixed(1)];
        // A gap in time is a gap in the line.
        path += `${previous !== null && t - previous < 5 ? "L" : "M"}${px},${py}`;
        previous = t;
        if (place % every === every >> 1) signs += SIGNS[one.sign].replace("M", `M${px},${py}m`);
      });
      one.line.setAttribute("d", path);
      one.signs.setAttribute("d", signs);
    }
    readout(x, bottom);
  }

  function readout(x, bottom) {
    const at = cursor === null ? state.now : cursor;
    for (const one of drawn) {
      const points = state.lines[one.key] ?? [];
      let nearest = null;
      for (const point of points) {
        if (nearest === null || Math.abs(point[0] - at) < Math.abs(nearest[0] - at)) nearest = point;
      }
      const known = nearest !== null && Math.abs(nearest[0] - at) < 5;
      text(one.value, known ? format(nearest[1]) : "no data");
    }
    if (targetValue) text(targetValue, state.target === null || state.target === undefined ? "none" : format(state.target));
    parts.cursor.setAttribute("visibility", cursor === null ? "hidden" : "visible");
    if (cursor !== null) {
      for (const [name, value] of [["x1", x(cursor)], ["x2", x(cursor)], ["y1", MARGIN.top], ["y2", bottom]]) parts.cursor.setAttribute(name, value);
    }
  }

  function timeAt(event) {
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    return state.now - state.span * (1 - Math.min(1, Math.max(0, share)));
  }
  const move = (to) => {
    cursor = to;
    draw();
  };
  canvas.addEventListener("pointermove", (event) => state && move(timeAt(event)));
  canvas.addEventListener("pointerleave", () => state && move(null));
  canvas.addEventListener("blur", () => state && move(null));
  canvas.addEventListener("keydown", (event) => {
    if (!state || !["ArrowLeft", "ArrowRight", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Escape") return move(null);
    const step = (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1);
    move(Math.min(state.now, Math.max(state.now - state.span, (cursor ?? state.now) + step)));
  });
  new ResizeObserver(draw).observe(canvas);
  return {
    element,
    update(next) {
      state = { span: 300, target: null, ...next };
      draw();
    },
  };
}

function swatch({ sign, tone }) {
  return s("svg", { class: "swatch", width: 28, height: 12, viewBox: "0 0 28 12", "aria-hidden": "true" },
    s("path", { class: `line ${tone} ${sign}`, d: "M0,6L28,6" }),
    s("path", { class: `signs ${tone}`, d: SIGNS[sign].replace("M", "M14,6m") }));
}

/** A bar of a share of a whole, with the share in words beside. */
export function bar(share, tone) {
  const width = share > 0 ? Math.max(0.5, 100 * Math.min(1, share)) : 0;
  return s("svg", { class: "bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "bar-ground", width: 100, height: 6 }),
    s("rect", { class: `bar-fill ${tone ?? ""}`, width, height: 6 }));
}
