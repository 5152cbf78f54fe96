// The same Tasks on two sides, before and after training or in two runs: what changed, Task by Task.
"use strict";

const SHOWN_PAIRS = 10;
const ORDERS = {
  "gains and losses": (a, b) => b.change - a.change,
  "largest change": (a, b) => Math.abs(b.change) - Math.abs(a.change),
  "largest gain": (a, b) => b.change - a.change,
  "largest loss": (a, b) => a.change - b.change,
  "farthest from the oracle": (a, b) => gapOf(b) - gapOf(a),
  "order of Tasks": () => 0,
};

function gapOf(pair) {
  const best = pair.sides[1].best_return;
  return best === null || best === undefined ? -Infinity : best - pair.sides[1].earned;
}

// Pairs of rows of the same Task and role; of several rollouts of a Task the first.
function pairsOf(left, right) {
  const key = (row) => [row.world, row.level, row.role, row.fingerprint].join("\n");
  const firsts = (rows) => new Map([...rows].reverse().map((row) => [key(row), row]));
  const there = firsts(right);
  return [...firsts(left).values()].reverse().filter((row) => there.has(key(row))).map((row) => {
    const sides = [row, there.get(key(row))];
    return {sides, change: sides[1].earned - sides[0].earned};
  });
}

function pairPlace(pair) {
  return pair.sides.map((row) => row.row).join(",");
}

// The segment that two runs are compared in: the last evaluation.
function lastEvaluation(stamps) {
  const names = Object.keys(stamps).filter((name) => name.startsWith("evaluation"));
  return ["evaluation_after", "evaluation_warm", "evaluation_before"].find((name) => names.includes(name)) || names.pop();
}

const SMALL_T = [12.706, 4.303, 3.182, 2.776];

// The mean of values and its 95 % interval by Student's t, whose quantile is Cornish and Fisher's.
function meanInterval(values) {
  const count = values.length, mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (count < 2) return [mean, NaN, NaN];
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1) / count);
  const f = count - 1, z = 1.959963985, powers = (...terms) => terms.reduce((sum, [factor, power]) => sum + factor * z ** power, 0);
  const t = SMALL_T[f - 1] || z + powers([1, 3], [1, 1]) / 4 / f + powers([5, 5], [16, 3], [3, 1]) / 96 / f ** 2
    + powers([3, 7], [19, 5], [17, 3], [-15, 1]) / 384 / f ** 3 + powers([79, 9], [776, 7], [1482, 5], [-1920, 3], [-945, 1]) / 92160 / f ** 4;
  return [mean, mean - t * spread, mean + t * spread];
}

function signed(value) {
  const shown = value.toFixed(Math.abs(value) < 100 ? 3 : 0);
  return Number(shown) === 0 ? "0" : `${value > 0 ? "+" : ""}${shown}`;
}

// names: of the two sides; state: {order, all}, kept by the caller; open(pair) shows one; whole: whether all Tasks are here.
function changesTable(pairs, names, state, open, redraw, whole = true) {
  const better = pairs.filter((pair) => pair.change > TIE).length, worse = pairs.filter((pair) => pair.change < -TIE).length;
  const [mean, low, high] = meanInterval(pairs.map((pair) => pair.change));
  const several = new Set(pairs.map((pair) => pair.sides[0].role)).size > 1;
  const best = pairs.some((pair) => pair.sides[1].best_return !== null && pair.sides[1].best_return !== undefined);
  const order = [...pairs].sort(ORDERS[state.order] || ORDERS["largest change"]);
  const half = SHOWN_PAIRS / 2, both = state.order === "gains and losses" && order.length > SHOWN_PAIRS;
  const seen = state.all ? order : both ? [...order.slice(0, half), ...order.slice(-half)] : order.slice(0, SHOWN_PAIRS);
  const said = (row) => [h("b", {}, show(row.earned)), h("span", {class: "reply"}, row.said || "no reply"),
    row.malformed > 0 && h("span", {class: "mark malformed"}, "malformed")];
  const heads = ["Task", ...(best ? ["oracle"] : []), ...names, "change"];
  return h("section", {class: "changes"},
    h("p", {class: "verdict"}, whole ? [h("b", {}, `${signed(mean)} on average`), Number.isFinite(low) && ` (95 % interval ${signed(low)} to ${signed(high)})`] : "In this file, not the whole,",
      ` on ${plural(pairs.length, "Task")} that both played: ${better} better, ${worse} worse, ${pairs.length - better - worse} alike.`),
    h("label", {class: "order"}, h("span", {}, "sorted by "), h("select", {"aria-label": "order", onchange: (event) => { state.order = event.target.value; redraw(); }},
      Object.keys(ORDERS).filter((name) => best || !name.includes("oracle")).map((name) => h("option", {value: name, selected: name === state.order}, name)))),
    h("table", {class: "pairs"}, h("thead", {}, h("tr", {}, heads.map((name) => h("th", {scope: "col", class: name === "change" ? "number" : ""}, name)))),
      h("tbody", {}, seen.map((pair) => {
        const [left, right] = pair.sides;
        return h("tr", {onclick: () => open(pair)},
          h("td", {class: "asked"}, h("button", {type: "button"}, `${left.index}${several ? `, ${left.role}` : ""}`), h("span", {}, left.question)),
          best && h("td", {"data-name": "oracle"}, h("b", {}, show(right.best_return)), h("span", {class: "reply"}, right.best)),
          h("td", {"data-name": names[0]}, said(left)), h("td", {"data-name": names[1]}, said(right)),
          h("td", {"data-name": "change", class: `number ${pair.change > TIE ? "more" : pair.change < -TIE ? "less" : ""}`}, signed(pair.change)));
      }))),
    seen.length < order.length && h("button", {type: "button", name: "more", onclick: () => { state.all = true; redraw(); }}, `Show all ${order.length}`));
}

function compareView(runs, pairs, state, open, redraw) {
  const [left, right] = runs;
  return h("section", {class: "compare"},
    h("h2", {}, `${left.name} and ${right.name}`),
    pairs.length ? changesTable(pairs, [left.name, right.name], state, open, redraw) : h("p", {class: "verdict"}, "No held-out Task was played by both."),
    settingsTable(runs));
}

// The settings of a run, or those in which two differ.
function settingsTable(runs) {
  const facts = runs.map((run) => ({state: run.state, "return before": estimate(run.before), "return after": estimate(run.after),
    ...Object.fromEntries(Object.entries(run.config || {}).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]))}));
  const shown = Object.keys(Object.assign({}, ...facts)).filter((name, at) => at < 3 || facts.length < 2 || facts[0][name] !== facts[1][name]);
  return h("table", {class: "settings"},
    h("thead", {}, h("tr", {}, ["", ...runs.map((run) => run.name)].map((name) => h("th", {scope: "col"}, name)))),
    h("tbody", {}, shown.map((name) => h("tr", {}, h("th", {scope: "row"}, name.replaceAll("_", " ")), facts.map((of) => h("td", {}, of[name] || ""))))));
}

function estimate(found) {
  if (!found) return "";
  const [value, low, high] = found;
  const lopsided = Math.abs(high + low - 2 * value) > 1e-6 * (high - low);
  return lopsided ? `${show(value)} (${show(low)} to ${show(high)})` : `${show(value)} ± ${show((high - low) / 2)}`;
}

// One Task as both sides played it, and what the oracle replies.
function pairView(names, pair, records, pictures) {
  const best = pair.sides[1].best_return, first = records[0].turns[0];
  return h("article", {class: "group"}, h("h2", {}, titleOf(records[0])),
    first && h("details", {class: "prompt", open: true}, h("summary", {}, "What both read first"), h("div", {class: "text"}, first.read)),
    h("div", {class: records.some((record) => record.turns.length > 1) ? "members" : "members wrapped"},
      records.map((record, side) => memberCard(record, names[side])),
      best !== null && best !== undefined && h("section", {class: "member"}, h("h3", {}, "oracle"),
        h("p", {class: "facts"}, h("b", {}, `earns ${show(best, 4)}`)), h("div", {class: "text"}, pair.sides[1].best || "Its replies are not on record."))),
    legend(records[0]), pictures.map((address, side) => address && pictureOf(address, names[side])));
}
