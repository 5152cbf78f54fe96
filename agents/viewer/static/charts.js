// Curves over training steps, as SVG. A click on a step filters the table to it.
"use strict";

const CHART = {width: 320, height: 150, left: 38, right: 46, top: 8, bottom: 22};

// Which series share axes: [title, names, whether the axis is 0 to 1, hint for a click].
const PANELS = [
  ["Return", ["return"], false, "Click a step for its rollouts."],
  ["Ties", ["dead groups", "tied pairs"], true, "Click a step for its dead groups."],
  ["Replies", ["malformed", "cut off"], true, "Click a step for its malformed replies."],
  ["Entropy", ["entropy"], false, "Nats a sampled token."],
  ["Loss", ["loss"], false, "Nats a demonstrated token."],
];

// runs: [{name, curves, total}], the first in colour 0, one to compare with in colour 1.
function drawCharts(runs, chosen, choose) {
  const worlds = Object.keys(runs[0].curves.series).filter((name) => name.startsWith("return in "));
  const shares = Object.keys(runs[0].curves.series).filter((name) => name.startsWith("share in "));
  const mixed = worlds.map((name) => [name.replace("return", "Return"), [name], false, "Click a step for its rollouts."]);
  if (shares.length) mixed.push(["Worlds", shares, true, "Share of the groups."]);
  const panels = [...PANELS, ...mixed].filter(([, names]) => runs.some((run) => names.some((name) => run.curves.series[name])));
  return panels.map(([title, names, share, hint]) => {
    const drawn = chart(runs, title, names, share, chosen, (step) => choose(title, step));
    const several = names.length > 1;
    const keys = names.filter((name) => runs[0].curves.series[name]).map((name, at) =>
      h("span", {class: "key"}, h("i", {class: `swatch series${at}`}), name));
    return h("figure", {class: "panel"},
      h("figcaption", {}, h("b", {}, title), several && keys, runs[1] && h("span", {class: "key"}, `dashed: ${runs[1].name}`), h("span", {class: "readout"})),
      drawn, h("p", {class: "hint"}, hint));
  });
}

function chart(runs, title, names, share, chosen, choose) {
  const {width, height, left, right, top, bottom} = CHART;
  const steps = runs.flatMap((run) => run.curves.steps);
  const last = Math.max(...steps, ...runs.map((run) => (run.total || 1) - 1), 1);
  const lines = Object.entries(runs[0].curves.lines[names[0]] || {});
  const values = runs.flatMap((run) => names.flatMap((name) => run.curves.series[name] || [])).filter((v) => v !== null);
  const levels = lines.map(([, level]) => level);
  let low = share ? 0 : Math.min(...values, ...levels), high = share ? 1 : Math.max(...values, ...levels);
  if (!share && low >= 0 && low < 0.3 * high) low = 0;
  if (high - low < 1e-9) high = low + 1;
  const x = (step) => left + (width - left - right) * step / last;
  const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (high - low));
  const svg = s("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
    "aria-label": `${title} by step: ${names.join(", ")}`});
  for (const tick of ticks(low, high)) {
    svg.append(s("line", {class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
      s("text", {class: "tick", x: left - 5, y: y(tick) + 3, "text-anchor": "end"}, shortTick(tick)));
  }
  for (const tick of ticks(0, last).filter(Number.isInteger)) {
    svg.append(s("text", {class: "tick", x: x(tick), y: height - 7, "text-anchor": "middle"}, tick));
  }
  let place = Infinity;
  for (const [name, level] of lines.sort((a, b) => a[1] - b[1])) {
    place = Math.min(y(level) + 3, place - 11);
    svg.append(s("line", {class: "reference", x1: left, x2: width - right, y1: y(level), y2: y(level)}),
      s("text", {class: "tick", x: width - right + 4, y: place}, name));
  }
  runs.forEach((run, which) => names.forEach((name, at) => {
    const series = run.curves.series[name];
    if (!series) return;
    const points = series.map((value, n) => value === null ? null : `${x(run.curves.steps[n]).toFixed(1)},${y(value).toFixed(1)}`);
    svg.append(s("polyline", {class: `line series${at} run${which}`, points: points.filter(Boolean).join(" ")}));
    if (points.length === 1 && points[0]) {
      svg.append(s("circle", {class: `dot series${at} run${which}`, cx: points[0].split(",")[0], cy: points[0].split(",")[1], r: 2.5}));
    }
  }));
  if (chosen !== null && chosen !== undefined) {
    svg.append(s("line", {class: "chosen", x1: x(chosen), x2: x(chosen), y1: top, y2: height - bottom}));
  }
  const cross = s("line", {class: "cross", y1: top, y2: height - bottom, visibility: "hidden"});
  svg.append(cross);
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) * width / box.width;
    return runs[0].curves.steps.reduce((best, step) => Math.abs(x(step) - at) < Math.abs(x(best) - at) ? step : best, runs[0].curves.steps[0]);
  };
  svg.addEventListener("pointermove", (event) => {
    const step = nearest(event), n = runs[0].curves.steps.indexOf(step);
    cross.setAttribute("x1", x(step)); cross.setAttribute("x2", x(step)); cross.setAttribute("visibility", "visible");
    const read = names.filter((name) => runs[0].curves.series[name]).map((name) => show(runs[0].curves.series[name][n]));
    const readout = svg.parentNode.querySelector(".readout");
    readout.textContent = `step ${step}: ${read.join(" · ")}`;
  });
  svg.addEventListener("pointerleave", () => {
    cross.setAttribute("visibility", "hidden");
    svg.parentNode.querySelector(".readout").textContent = "";
  });
  svg.addEventListener("click", (event) => choose(nearest(event)));
  return svg;
}

function ticks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const pace = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough);
  const found = [];
  for (let k = Math.ceil(low / pace - 1e-9); k * pace <= high + 1e-9; k++) found.push(Number((k * pace).toPrecision(12)));
  return found;
}

function shortTick(value) {
  return Math.abs(value) >= 1000 ? `${value / 1000}k` : String(value);
}
