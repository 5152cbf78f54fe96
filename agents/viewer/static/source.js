// Where the page gets its data: from the server it came from, or from itself.
"use strict";

class Served {
  constructor() { this.live = true; }

  async get(path, query) {
    const answer = await fetch(`/api/${path}?${new URLSearchParams(query)}`);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  runs() { return this.get("runs", {}); }
  run(run) { return this.get("run", {run}); }
  report(run) { return this.get("report", {run}); }
  tables(run, segments) { return this.get("tables", segments ? {run, segments: segments.join(",")} : {run}); }
  group(run, segment, row) { return this.get("group", {run, segment, row}); }
  search(run, words) { return this.get("search", {run, words}); }
  picture(run, segment, row) { return `/api/picture?${new URLSearchParams({run, segment, row})}`; }
}

class Embedded {
  constructor(data) {
    this.live = false;
    this.data = data;
  }

  find(run) { return this.data.runs.find((one) => one.name === run); }
  async runs() { return this.data.runs; }
  async run(run) {
    const found = this.find(run);
    return {...found, stamps: found.tables};
  }

  async report(run) { return this.find(run).report; }

  async tables(run, segments) {
    const {tables} = this.find(run);
    return Object.fromEntries(segments.map((segment) => [segment, tables[segment]]));
  }

  async group(run, segment, row) {
    const found = (this.find(run).groups[segment] || []).find((group) => group.rows.includes(row));
    if (!found) throw new Error("This rollout was left out of the page to keep it small: open the run with `tokengym view`.");
    return found;
  }

  async search(run, words) {
    const wanted = words.toLowerCase(), found = {};
    for (const [segment, groups] of Object.entries(this.find(run).groups)) {
      found[segment] = [];
      for (const {rows, records} of groups) {
        records.forEach((record, at) => {
          const has = record.turns.some((turn) => `${turn.read}\n${turn.said || ""}`.toLowerCase().includes(wanted));
          if (has) found[segment].push(rows[at]);
        });
      }
    }
    return found;
  }

  picture() { return null; }
}

// What a page that is one file leaves out.
function sampleOf(run) {
  const counts = {evaluation: [0, 0], training: [0, 0]};
  for (const [segment, all] of Object.entries(run.all_rows)) {
    const kind = counts[segment.startsWith("train_") ? "training" : "evaluation"];
    kind[0] += segment in run.tables ? run.tables[segment].return.length : 0;
    kind[1] += all;
  }
  const parts = Object.entries(counts).filter(([, [, all]]) => all)
    .map(([kind, [held, all]]) => held === all ? `all ${plural(all, `${kind} rollout`)}` : `${held.toLocaleString("en")} of ${plural(all, `${kind} rollout`)}, the extremes and others evenly spaced`);
  return `This file holds ${parts.join("; ")}. \`tokengym view\` shows all.`;
}

function openSource() {
  const data = document.getElementById("data");
  return data ? new Embedded(JSON.parse(data.textContent)) : new Served();
}
