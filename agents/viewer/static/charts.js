// Charts as SVG: curves over training steps, where a click on a step filters the table to it, and those of a report.
"use strict";

const CHART = {width: 320, height: 150, left: 38, right: 56, top: 8, bottom: 22};
const WIDE = {...CHART, width: 760, height: 230, right: 190};
const SMOOTHING = 0.85;
const RETURNS = "Pale: each step; bold: smoothed; points: held-out Tasks, 95 % intervals. Click a step for its rollouts.";

// Which series share axes: [title, names, whether the axis is 0 to 1, hint for a click].
const PANELS = [
  ["Return", ["return"], false, RETURNS],
  ["Ties", ["dead groups", "tied pairs"], true, "Click a step for its dead groups."],
  ["Replies", ["malformed", "cut off", "copied"], true, "Click a step for its malformed replies."],
  ["Entropy", ["entropy"], false, "Nats per sampled token."],
  ["Loss", ["loss"], false, "Of a step's demonstrations or preferences."],
];

// runs: [{name, curves, total}], the first in colour 0, one to compare with in colour 1.
// wide: whether the first panel goes across the page.
function drawCharts(runs, chosen, choose, wide = false) {
  const known = Object.keys(runs[0].curves.series);
  const returns = known.filter((name) => /^return (in|of) /.test(name)), shares = known.filter((name) => name.startsWith("share in "));
  const several = returns.map((name) => [name.replace("return", "Return"), [name], false, RETURNS]);
  if (shares.length) several.push(["Worlds", shares, true, "Share of the groups."]);
  const single = PANELS.filter(([title]) => title !== "Return" || !returns.length);
  const panels = [...several.slice(0, returns.length), ...single, ...several.slice(returns.length)];
  const last = Math.max(...runs.flatMap((run) => [...run.curves.steps, (run.total || 1) - 1]), 1);
  const there = panels.filter(([, names]) => runs.some((run) => names.some((name) => run.curves.series[name])));
  const flat = ([, names]) => runs.every((run) => names.every((name) => (run.curves.series[name] || []).every((value) => !value)));
  const none = there.filter(flat).flatMap(([, names]) => names);
  const drawn = there.filter((panel) => !flat(panel)).map(([title, names, share, hint], at) =>
    chartPanel({title, share, ticks: [], wide: wide && !at, levels: runs[0].curves.lines[names[0]] || {}, x: [0, last],
      series: runs.flatMap((run, which) => names.flatMap((name, at) => curve(run.curves, name, at, which)))},
    hint, runs[1] && `dashed: ${runs[1].name}`, chosen, (step) => choose(title, step)));
  return none.length ? [...drawn, h("p", {class: "hint"}, `0 at every step: ${none.join(", ")}.`)] : drawn;
}

// A series of a run; returns smoothed over the pale steps, with what was earned on held-out Tasks.
function curve(curves, name, colour, run) {
  const y = curves.series[name];
  if (!y) return [];
  const line = {name, colour, run, kind: "line", x: curves.steps, y};
  if (!name.startsWith("return")) return [line];
  let sum = 0, weight = 0;
  const smooth = y.map((value) => {
    if (value !== null) [sum, weight] = [SMOOTHING * sum + value, SMOOTHING * weight + 1];
    return weight ? sum / weight : null;
  });
  const points = (curves.points || {})[name] || [], column = (at) => points.map((point) => point[at]);
  return [{...line, pale: true}, {...line, name: "", y: smooth},
    {name: "", colour, run, kind: "dots", x: column(0), y: column(1), low: column(2), high: column(3), held: true}];
}

function chartPanel(spec, hint, note = null, chosen = null, choose = null) {
  const named = spec.series.filter((one) => one.name && !one.run && one.kind !== "band"), place = (one) => one.colour ?? spec.series.indexOf(one);
  const keys = named.length > 1 && named.map((one) => h("span", {class: "key"}, h("i", {class: `swatch series${place(one) % 4}`}), one.name));
  return h("figure", {class: spec.wide ? "panel wide" : "panel"},
    h("figcaption", {}, h("b", {}, spec.title), keys, note && h("span", {class: "key"}, note), h("span", {class: "readout"})),
    plot(spec, chosen, choose), h("p", {class: "hint"}, hint));
}

// spec: as `Chart` of a report says, `x` the ends of the axis if they are known.
function plot(spec, chosen, choose) {
  const {width, height, left, right, top, bottom} = spec.wide ? WIDE : CHART, levels = Object.entries(spec.levels);
  const shown = spec.series.filter((one) => !one.pale), known = (values) => values.filter((value) => value !== null && value !== undefined);
  const values = known([...shown.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]), ...levels.map(([, level]) => level)]);
  const places = spec.series.flatMap((one) => one.x);
  const [first, last] = spec.x ? [spec.x[0], Math.max(spec.x[1], ...places)] : spec.ticks.length ? [-0.4, spec.ticks.length - 0.6] : [Math.min(...places), Math.max(...places)];
  let low = spec.share ? 0 : Math.min(...values), high = spec.share ? Math.min(1, Math.max(...values, 0.1)) : Math.max(...values);
  if (!spec.share && low >= 0 && low < 0.3 * high) low = 0;
  if (high - low < 1e-9) high = low + 1;
  const x = (at) => left + (width - left - right) * (at - first) / (last - first || 1);
  const y = (value) => top + (height - top - bottom) * (1 - (Math.min(Math.max(value, low), high) - low) / (high - low));
  const svg = s("svg", {viewBox: `0 0 ${width} ${height}`, class: choose ? "chart chosen-by-click" : "chart", role: "img",
    "aria-label": `${spec.title}: ${spec.series.map((one) => one.name).filter(Boolean).join(", ")}`});
  for (const tick of ticks(low, high)) {
    svg.append(s("line", {class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
      s("text", {class: "tick", x: left - 5, y: y(tick) + 3, "text-anchor": "end"}, shortTick(tick)));
  }
  const marks = spec.ticks.length ? spec.ticks.map((name, at) => [at, name]) : ticks(first, last).filter((tick) => !spec.x || Number.isInteger(tick)).map((tick) => [tick, shortTick(tick)]);
  for (const [at, name] of marks) svg.append(s("text", {class: "tick", x: x(at), y: height - 7, "text-anchor": "middle"}, name));
  let place = -2, inside = -2;
  for (const [name, level] of levels.sort((a, b) => b[1] - a[1])) {
    const fits = spec.wide || name.length <= 9;
    if (fits) place = Math.max(y(level) + 3, place + 11);
    else inside = Math.max(y(level) - 3, inside + 10);
    svg.append(s("line", {class: "reference", x1: left, x2: width - right, y1: y(level), y2: y(level)}),
      // A name that does not fit beside the panel stands in it, above its line.
      fits ? s("text", {class: "tick", x: width - right + 4, y: place}, name)
        : s("text", {class: "tick", x: width - right - 2, y: inside, "text-anchor": "end"}, name));
  }
  spec.series.forEach((one, at) => svg.append(...drawSeries(one, `series${(one.colour ?? at) % 4} run${one.run || 0}`, x, y)));
  if (chosen !== null) svg.append(s("line", {class: "chosen", x1: x(chosen), x2: x(chosen), y1: top, y2: height - bottom}));
  const read = spec.series.filter((one) => one.name && one.kind === "line" && !one.run);
  if (read.length) follow(svg, read, x, top, height - bottom, spec.x ? "step " : "", choose);
  return svg;
}

function drawSeries(one, colours, x, y) {
  if (one.kind === "band") {
    const edge = (values) => one.x.map((at, n) => `${x(at).toFixed(1)},${y(values[n]).toFixed(1)}`);
    return [s("polygon", {class: "band", points: [...edge(one.low), ...edge(one.high).reverse()].join(" ")})];
  }
  const drawn = [], there = one.x.map((_, n) => n).filter((n) => one.y[n] !== null);
  if (one.kind === "line" && there.length > 1) {
    drawn.push(s("polyline", {class: `line ${colours}${one.pale ? " pale" : ""}`, points: there.map((n) => `${x(one.x[n]).toFixed(1)},${y(one.y[n]).toFixed(1)}`).join(" ")}));
  }
  const largest = Math.max(...(one.sizes || []), 0);
  for (const n of there) {
    const ends = one.low && one.low.length && one.low[n] !== null && [one.low[n], one.high[n]];
    if (ends) drawn.push(s("line", {class: `error ${one.held ? "held" : colours}`, x1: x(one.x[n]), x2: x(one.x[n]), y1: y(ends[0]), y2: y(ends[1])}));
    if (one.kind === "dots" || there.length === 1) {
      drawn.push(s("circle", {class: `dot ${one.held ? "held" : colours}`, cx: x(one.x[n]), cy: y(one.y[n]), r: largest ? 6 * Math.sqrt(one.sizes[n] / largest) : 2.5}));
    }
  }
  return drawn;
}

// Read the values under the pointer; a click chooses the place.
function follow(svg, read, x, top, bottom, word, choose) {
  const cross = s("line", {class: "cross", y1: top, y2: bottom, visibility: "hidden"}), places = read[0].x;
  const readout = (text) => { svg.parentNode.querySelector(".readout").textContent = text; };
  svg.append(cross);
  const nearest = (event) => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    return places.reduce((best, place) => Math.abs(x(place) - at) < Math.abs(x(best) - at) ? place : best, places[0]);
  };
  svg.addEventListener("pointermove", (event) => {
    const place = nearest(event);
    cross.setAttribute("x1", x(place)); cross.setAttribute("x2", x(place)); cross.setAttribute("visibility", "visible");
    readout(`${word}${show(place)}: ${read.map((one) => show(one.y[one.x.indexOf(place)])).filter(Boolean).join(" · ")}`);
  });
  svg.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); readout(""); });
  if (choose) svg.addEventListener("click", (event) => choose(nearest(event)));
}

function ticks(low, high) {
  const rough = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const pace = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough);
  const found = [];
  for (let k = Math.ceil(low / pace - 1e-9); k * pace <= high + 1e-9; k++) found.push(Number((k * pace).toPrecision(12)));
  return found;
}

function shortTick(value) {
  return Math.abs(value) >= 1000 ? `${value / 1000}k` : String(value);
}
