// Two runs beside each other: what was asked for, what came of it, Task by Task.
"use strict";

function compareView(runs, found, open) {
  const [left, right] = runs;
  const difference = found.difference;
  const verdict = difference
    ? `${right.name} less ${left.name} on ${plural(found.pairs.length, "Task")} that both played: ${show(difference[0], 4)} (95 % interval ${show(difference[1], 4)} to ${show(difference[2], 4)})`
    : "No held-out Task was played by both.";
  const order = [...found.pairs].sort((a, b) => Math.abs(b.returns[1] - b.returns[0]) - Math.abs(a.returns[1] - a.returns[0]));
  return h("section", {class: "compare"},
    h("h2", {}, `${left.name} and ${right.name}`),
    h("p", {class: "verdict"}, verdict),
    settingsTable(left, right),
    found.pairs.length > 0 && h("div", {class: "scrolled"}, h("table", {class: "pairs"},
      h("thead", {}, h("tr", {}, ["Task", "role", left.name, right.name, "difference"].map((name) => h("th", {scope: "col"}, name)))),
      h("tbody", {}, order.slice(0, 500).map((pair) => h("tr", {},
        h("td", {}, h("button", {type: "button", onclick: () => open(pair)}, `test ${pair.index}`)), h("td", {}, pair.role),
        h("td", {class: "number"}, show(pair.returns[0], 4)), h("td", {class: "number"}, show(pair.returns[1], 4)),
        h("td", {class: `number ${pair.returns[1] > pair.returns[0] ? "more" : pair.returns[1] < pair.returns[0] ? "less" : ""}`},
          show(pair.returns[1] - pair.returns[0], 4))))))));
}

function settingsTable(left, right) {
  const facts = (run) => ({state: run.state, "return before": estimate(run.before), "return after": estimate(run.after),
    ...Object.fromEntries(Object.entries(run.config || {}).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]))});
  const [ours, theirs] = [facts(left), facts(right)];
  const names = Object.keys({...ours, ...theirs});
  const shown = names.filter((name, at) => at < 3 || ours[name] !== theirs[name]);
  return h("table", {class: "settings"},
    h("thead", {}, h("tr", {}, ["", left.name, right.name].map((name) => h("th", {scope: "col"}, name)))),
    h("tbody", {}, shown.map((name) => h("tr", {}, h("th", {scope: "row"}, name.replaceAll("_", " ")), h("td", {}, ours[name] || ""), h("td", {}, theirs[name] || "")))));
}

function estimate(found) {
  return found ? `${show(found[0])} ± ${show((found[2] - found[1]) / 2)}` : "";
}

// One Task as both runs played it.
function pairView(runs, groups, rows) {
  return h("article", {class: "group"}, h("h2", {}, titleOf(groups[0].records[0])),
    h("div", {class: "members"}, groups.map((group, side) => {
      const record = group.records[group.rows.indexOf(rows[side])];
      return h("section", {class: "member"}, h("h3", {}, runs[side].name), factsOf(record, null, false), conversation(record));
    })));
}
