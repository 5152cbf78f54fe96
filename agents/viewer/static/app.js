// The page: what is open, what is filtered, keys, and what changes while a run trains.
"use strict";

const POLL = 2000;
const KEYS = [["j k ↓ ↑", "next and previous rollout"], ["Enter", "open the rollout"], ["g", "its group, or back"],
  ["Esc", "back to the table"], ["/", "search"], ["x", "clear the filters"], ["?", "these keys"]];
const FIRST_BATCH = 3, BATCH = 16;
const DETAILED = ["at", "row", "tab", "pair", "view"];
const ENDS = [["largest return", "return", 1], ["smallest return", "return", -1], ["largest advantage", "advantage", 1], ["smallest advantage", "advantage", -1]];
const SIDES = ["evaluation_before", "evaluation_after"];

class App {
  constructor(root, source) {
    this.root = root;
    this.source = source;
    this.sort = {name: "", down: false};
    this.filters = this.noFilters();
    this.pairState = {order: "gains and losses", all: false};
    this.table = new RolloutTable((row) => this.go({at: row.segment, row: row.row, tab: row.inGroup.size > 1 ? "group" : "rollout"}),
      (name) => { this.sort = {name, down: this.sort.name === name && !this.sort.down}; this.apply(); });
    window.addEventListener("hashchange", () => this.route());
    document.addEventListener("keydown", (event) => this.press(event));
  }

  noFilters() {
    return {segment: "", world: "", level: "", role: "", policy: "", stop: "", flags: new Set(), low: null, high: null, found: null};
  }

  async start() {
    this.runs = await this.source.runs();
    this.frame();
    await this.route();
    if (this.source.live) setInterval(() => this.refresh(), POLL);
  }

  // The address holds what is open, so that "back" works and a link leads to the same place.
  get place() {
    const found = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(found);
  }

  go(change) {
    const place = {...this.place, ...change};
    for (const [name, value] of Object.entries(place)) if (value === "" || value === null || value === undefined) delete place[name];
    location.hash = new URLSearchParams(place).toString();
  }

  async route() {
    const place = this.place, name = place.run || this.runs[0].name;
    try {
      if (!this.run || this.run.name !== name) await this.load(name);
      this.other = place.with ? await this.source.run(place.with) : null;
      await this.paint(place);
      this.fail("");
    } catch (error) {
      this.fail(error.message);
    }
  }

  async load(name) {
    this.run = await this.source.run(name);
    this.rows = [];
    this.tables = {};
    this.filters = this.noFilters();
    this.table.set([], this.sort, []);
    this.header();
    this.charts();
    this.findReport(name).catch((error) => this.fail(error.message));
    // Curves are there before the rollouts are read.
    requestAnimationFrame(() => setTimeout(() => this.read(name)));
  }

  async findReport(name) {
    this.report = null;
    const found = await this.source.report(name);
    if (this.run.name !== name || !found) return;
    this.report = found;
    await this.paint(this.place);
  }

  // Rollouts come in batches, so that the first are there before the last are read.
  async read(name) {
    this.root.setAttribute("aria-busy", true);
    // Evaluations first: what changed is what the page opens on.
    const left = this.ordered(Object.keys(this.run.stamps));
    left.sort((a, b) => b.startsWith("evaluation") - a.startsWith("evaluation"));
    for (let size = FIRST_BATCH; left.length; size = BATCH) {
      const tables = await this.source.tables(name, left.splice(0, size));
      if (this.run.name !== name) return;
      this.take(tables);
      if (this.showsReport(this.place)) await this.paint(this.place);
    }
    this.root.removeAttribute("aria-busy");
    this.apply();
  }

  get paired() {
    return SIDES.every((name) => name in this.run.stamps);
  }

  // Whether the page shows what was found and what changed: by default where there is either.
  showsReport(place) {
    return (this.report || this.paired) && !this.other && place.at === undefined && place.pair === undefined && place.view !== "rollouts";
  }

  ordered(segments) {
    return [...segments].sort((a, b) => this.number(a) - this.number(b) || (a < b ? -1 : 1));
  }

  take(tables) {
    this.tables = {...this.tables, ...tables};
    for (const segment of Object.keys(this.tables)) if (this.source.live && !(segment in this.run.stamps)) delete this.tables[segment];
    const order = this.ordered(Object.keys(this.tables));
    this.rows = rowsOf(Object.fromEntries(order.map((segment) => [segment, this.tables[segment]])));
    this.choices();
    this.apply(true);
  }

  number(segment) {
    const step = /^train_(\d+)$/.exec(segment);
    return step ? Number(step[1]) : segment.startsWith("evaluation_before") ? -2 : segment.startsWith("evaluation_warm") ? -1 : Infinity;
  }

  async refresh() {
    if (document.hidden || this.busy || !this.run || this.root.hasAttribute("aria-busy")) return;
    this.busy = true;
    try {
      const before = this.run.stamps, run = await this.source.run(this.run.name);
      if (run.name !== this.run.name) return;
      const changed = Object.keys(run.stamps).filter((segment) => run.stamps[segment] !== before[segment]);
      const gone = Object.keys(before).some((segment) => !(segment in run.stamps));
      const moved = run.curves.steps.length !== this.run.curves.steps.length || run.state !== this.run.state;
      this.run = run;
      if (moved) { this.header(); this.charts(); await this.findReport(run.name); }
      if (changed.length || gone) this.take(changed.length ? await this.source.tables(run.name, changed) : {});
      this.fail("");
    } catch (error) {
      this.fail(`The viewer does not respond: ${error.message}`);
    } finally {
      this.busy = false;
    }
  }

  // Building blocks of the page

  frame() {
    this.top = h("header", {});
    this.curves = h("section", {class: "panels", "aria-label": "curves"});
    this.opening = h("section", {class: "opening", hidden: true});
    this.bar = h("form", {class: "filters", onsubmit: (event) => event.preventDefault()});
    this.count = h("p", {class: "count", "aria-live": "polite"});
    this.views = h("nav", {class: "views tabs", hidden: true});
    this.ends = h("p", {class: "ends"});
    this.list = h("section", {class: "list", "aria-label": "rollouts"}, this.bar, this.count, this.ends, this.table.view);
    this.detail = h("section", {class: "detail", hidden: true});
    this.rest = h("section", {class: "rest", hidden: true});
    this.problem = h("p", {class: "problem", role: "alert", hidden: true});
    this.help = h("dialog", {}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, KEYS.map(([keys, what]) =>
      h("tr", {}, h("td", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("td", {}, what))))),
      h("form", {method: "dialog"}, h("button", {}, "Close")));
    replace(this.root, this.top, this.problem, this.views, this.opening, this.curves, this.list, this.detail, this.rest, this.help);
  }

  header() {
    const run = this.run;
    const pick = (label, value, options, change) => h("label", {}, h("span", {}, label),
      h("select", {onchange: (event) => change(event.target.value)}, options.map(([name, title]) =>
        h("option", {value: name, selected: name === value}, title))));
    const names = this.runs.map((one) => [one.name, one.name]);
    const done = run.curves.steps.length;
    const clear = Object.fromEntries(DETAILED.map((name) => [name, ""]));
    replace(this.top,
      h("h1", {}, run.config ? `${run.config.world.split("/").pop()} ${run.config.level}`
        : this.report ? `${this.report.title} (${run.name})` : run.name),
      run.state && h("span", {class: `state ${run.state}`}, run.state, run.config && ` · ${done} of ${plural(run.config.steps, "step")}`),
      run.before && h("span", {class: "score"}, `held-out return ${show(run.before[0])}`, run.after && ` → ${show(run.after[0])}`),
      h("span", {class: "space"}),
      names.length > 1 && pick("run", run.name, names, (name) => this.go({...clear, run: name, with: ""})),
      names.length > 1 && pick("compare with", this.place.with || "", [["", "none"], ...names.filter(([name]) => name !== run.name)],
        (name) => this.go({...clear, with: name})),
      h("button", {type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: () => this.help.showModal()}, "?"));
    if (run.collapse && !this.report) this.top.append(h("p", {class: "collapse"}, `Collapsed at step ${run.collapse.since}: ${run.collapse.reason}. Try: ${run.collapse.advice}.`));
    if (run.all_rows && Object.keys(run.all_rows).length) this.top.append(h("p", {class: "hint"}, sampleOf(run)));
    for (const note of run.notes) this.top.append(h("p", {class: "collapse"}, note));
    document.title = `${run.name} · Tokengym`;
  }

  charts() {
    const shown = [this.run, ...(this.other ? [this.other] : [])].map((run) => ({name: run.name, curves: run.curves, total: run.config?.steps}));
    const step = /^train_0*(\d+)$/.exec(this.filters.segment);
    this.curves.hidden = !this.run.curves.steps.length;
    const drawn = this.curves.hidden ? [] : drawCharts(shown, step ? Number(step[1]) : null, (title, at) => {
      this.filters = {...this.noFilters(), segment: `train_${String(at).padStart(6, "0")}`};
      // The step's rollouts may not be there yet: the curve knows whether any group is dead.
      const there = this.rows.filter((row) => row.segment === this.filters.segment);
      const dead = (this.run.curves.series["dead groups"] || [])[this.run.curves.steps.indexOf(at)] > 0;
      if (title === "Ties" && (there.length ? there.some((row) => row.dead) : dead)) this.filters.flags.add("dead");
      if (title === "Replies") this.filters.flags.add("malformed");
      this.charts();
      this.choices();
      this.apply();
      this.go({...Object.fromEntries(DETAILED.map((name) => [name, ""])), view: "rollouts"});
    }, !this.opening.hidden && innerWidth > 640);
    // A report opens with its picture; the other curves stand below what changed.
    replace(this.curves, this.opening.hidden ? drawn : drawn.slice(1));
    replace(this.opening, this.opening.hidden ? null : drawn.slice(0, 1), this.report ? reportHead(this.report) : h("section", {class: "report"}, h("p", {class: "hint"}, "Reading the report…")));
  }

  choices() {
    const filters = this.filters, words = this.bar.elements.words ? this.bar.elements.words.value : "";
    const values = (name) => [...new Set(this.rows.map((row) => row[name]))];
    const pick = (name, title, shown = (value) => value) => {
      const found = values(name);
      if (found.length < 2) return null;
      return h("select", {"aria-label": title, onchange: (event) => { filters[name] = event.target.value; this.charts(); this.apply(); }},
        h("option", {value: ""}, title), found.map((value) => h("option", {value, selected: value === filters[name]}, shown(value))));
    };
    const bound = (name, title) => h("input", {type: "number", step: "any", placeholder: title, "aria-label": title,
      value: filters[name], oninput: (event) => { filters[name] = event.target.value === "" ? null : Number(event.target.value); this.apply(); }});
    replace(this.bar,
      h("input", {type: "search", name: "words", placeholder: "Search what was read and said", "aria-label": "Search", value: words,
        oninput: (event) => this.search(event.target.value)}),
      pick("segment", "all steps", segmentTitle), pick("world", "all worlds"), pick("level", "all levels"), pick("role", "all roles"),
      this.rows.every((row) => row.step === null) && pick("policy", "all policies"),
      pick("stop", "any end", (value) => value.replaceAll("_", " ")),
      h("span", {class: "bounds"}, bound("low", "return from"), bound("high", "to")),
      h("span", {class: "flags"}, FLAGS.filter((flag) => this.rows.some(flag.has)).map((flag) => h("label", {class: "flag"},
        h("input", {type: "checkbox", name: flag.name, checked: filters.flags.has(flag.name), onchange: (event) => {
          event.target.checked ? filters.flags.add(flag.name) : filters.flags.delete(flag.name);
          this.apply();
        }}), flag.mark))),
      h("button", {type: "button", name: "clear", onclick: () => this.clear()}, "Clear"));
  }

  clear() {
    this.filters = this.noFilters();
    this.bar.elements.words.value = "";
    this.charts();
    this.choices();
    this.apply();
  }

  search(words) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      const begun = performance.now();
      const found = words ? await this.source.search(this.run.name, words) : null;
      if (this.bar.elements.words.value !== words) return;
      this.filters.found = found && new Map(Object.entries(found).map(([segment, rows]) => [segment, new Set(rows)]));
      this.apply();
      this.searched = performance.now() - begun;
    }, this.source.live ? 80 : 0);
  }

  apply(all = false) {
    const begun = performance.now();
    const found = sortRows(filterRows(this.rows, this.filters), this.sort);
    this.table.set(found, this.sort, all ? this.rows : null);
    const mean = found.length ? found.reduce((sum, row) => sum + row.return, 0) / found.length : null;
    const groups = new Set(found.map((row) => row.groupNumber)).size;
    replace(this.count, found.length === this.rows.length ? plural(found.length, "rollout") : `${found.length.toLocaleString("en")} of ${plural(this.rows.length, "rollout")}`,
      this.root.hasAttribute("aria-busy") ? " so far" : "", ` in ${plural(groups, "group")}`, mean !== null && ` · mean return ${show(mean)}`, commonestReply(found));
    replace(this.ends, ENDS.map(([title, name, sign]) => {
      const known = found.filter((row) => row[name] !== null);
      const end = known.length > 1 && known.reduce((best, row) => sign * row[name] > sign * best[name] ? row : best);
      return end && h("button", {type: "button", onclick: () => this.go({at: end.segment, row: end.row, tab: "rollout"})}, `${title} ${show(end[name])}`);
    }));
    this.filtered = performance.now() - begun;
  }

  // What is open

  async paint(place) {
    const open = place.at !== undefined && place.row !== undefined;
    const paired = !open && place.pair !== undefined, report = this.showsReport(place);
    this.opening.hidden = !report;
    this.header();
    this.charts();
    this.tabs(place, report);
    this.list.hidden = open || paired || report || Boolean(this.other);
    this.curves.hidden = this.curves.hidden || open || paired;
    this.detail.hidden = !this.list.hidden;
    this.rest.hidden = !report;
    if (report) this.curves.before(this.detail);
    else this.list.after(this.detail);
    if (open) await this.showRollout(place);
    else if (report) await this.showReport();
    else if (this.other || paired) await this.showPairs(place);
    if (!this.list.hidden) this.table.draw();
  }

  tabs(place, report) {
    const hidden = !(this.report || this.paired) || !Object.keys(this.run.stamps).length;
    this.views.hidden = hidden || this.other || place.at !== undefined || place.pair !== undefined;
    const tabs = [["", "Report", report], ["rollouts", "Rollouts", !report]];
    replace(this.views, tabs.map(([view, title, chosen]) => h("button", {type: "button", "aria-pressed": Boolean(chosen), onclick: () => this.go({view})}, title)));
  }

  // What was found, what changed from before to after; below the curves the tables, and the settings.
  async showReport() {
    replace(this.detail, this.paired ? await this.changed() : null);
    replace(this.rest, this.report && reportParts(this.report), this.run.config && h("details", {class: "about"}, h("summary", {}, "Settings"), settingsTable([this.run])));
  }

  async showRollout(place) {
    const row = Number(place.row), group = await this.source.group(this.run.name, place.at, row);
    const at = group.rows.indexOf(row), record = group.records[at];
    const tab = place.tab === "group" ? "group" : "rollout";
    const picture = this.picture(this.run, place.at, row, record);
    const tabs = [["rollout", `Rollout #${record.member}`], ["group", `Group of ${group.records.length}`]];
    replace(this.detail, h("nav", {class: "crumbs"},
      h("button", {type: "button", name: "back", onclick: () => this.close()}, "← all rollouts"),
      h("span", {}, `${segmentTitle(place.at)} · group ${record.group}`),
      h("span", {class: "tabs", role: "tablist"}, tabs.map(([name, title]) => h("button", {type: "button", role: "tab",
        "aria-selected": name === tab, onclick: () => this.go({tab: name})}, title))),
      h("span", {class: "space"}),
      h("button", {type: "button", "aria-label": "Previous rollout", onclick: () => this.step(-1)}, "↑"),
      h("button", {type: "button", "aria-label": "Next rollout", onclick: () => this.step(1)}, "↓")),
    tab === "group" ? groupView(group, at, (other) => this.go({row: other, tab: "rollout"})) : rolloutView(group, at, this.run, picture));
    window.scrollTo(0, 0);
  }

  // The address of a rollout's picture; `null` where it has none.
  picture(run, segment, row, record) {
    return record.picture || (run.picture && record.options.data === undefined ? this.source.picture(run.name, segment, row) : null);
  }

  // The Tasks of two sides: of this run before and after, or of two runs.
  async sides() {
    const runs = this.other ? [this.run, this.other] : [this.run, this.run];
    const names = this.other ? runs.map((run) => run.name) : ["before", "after"];
    const segments = this.other ? runs.map((run) => lastEvaluation(run.stamps)) : SIDES;
    const rows = await Promise.all(runs.map(async (run, side) => {
      const name = segments[side];
      if (name === undefined) return [];
      if (run === this.run && name in this.tables) return this.rows.filter((row) => row.segment === name);
      return rowsOf(await this.source.tables(run.name, [name]));
    }));
    return {runs, names, segments, pairs: pairsOf(...rows)};
  }

  async changed() {
    const {names, pairs} = await this.sides();
    if (!pairs.length) return h("p", {class: "hint"}, "Reading the evaluations…");
    const whole = SIDES.every((name) => !this.run.all_rows || this.run.all_rows[name] === this.run.tables[name].return.length);
    return changesTable(pairs, names, this.pairState, (pair) => this.go({pair: pairPlace(pair)}), () => this.paint(this.place), whole);
  }

  async showPairs(place) {
    const {runs, names, segments, pairs} = await this.sides();
    if (place.pair === undefined) {
      replace(this.detail, compareView(runs, pairs, this.pairState, (pair) => this.go({pair: pairPlace(pair)}), () => this.showPairs(place)));
      return;
    }
    const pair = pairs.find((one) => pairPlace(one) === place.pair);
    if (!pair) throw new Error(`There is no pair of rollouts ${place.pair}.`);
    const groups = await Promise.all(runs.map((run, side) => this.source.group(run.name, segments[side], pair.sides[side].row)));
    const records = groups.map((group, side) => group.records[group.rows.indexOf(pair.sides[side].row)]);
    const pictures = records.map((record, side) => this.picture(runs[side], segments[side], pair.sides[side].row, record));
    replace(this.detail, h("nav", {class: "crumbs"}, h("button", {type: "button", name: "back", onclick: () => this.close()}, "← all Tasks")),
      pairView(names, pair, records, pictures));
    window.scrollTo(0, 0);
  }

  close() {
    if (this.place.pair !== undefined) return this.go({pair: ""});
    this.go(Object.fromEntries(DETAILED.map((name) => [name, ""])));
  }

  step(by) {
    this.table.move(by);
    const row = this.table.rows[this.table.selected];
    if (row) this.go({at: row.segment, row: row.row});
  }

  fail(message) {
    this.problem.textContent = message;
    this.problem.hidden = !message;
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const typing = event.target.matches("input[type=search], input[type=number], select");
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else if (this.place.at !== undefined || this.place.pair !== undefined) this.close();
      return;
    }
    if (typing) return;
    const open = this.place.at !== undefined;
    if (this.list.hidden && !open && event.key !== "?") return;
    const keys = {
      "/": () => { if (!open) this.bar.elements.words.focus(); },
      "?": () => this.help.showModal(),
      x: () => this.clear(),
      j: () => open ? this.step(1) : this.table.move(1),
      k: () => open ? this.step(-1) : this.table.move(-1),
      g: () => { if (open) this.go({tab: this.place.tab === "group" ? "rollout" : "group"}); },
      Enter: () => { if (!open && event.target === document.body && this.table.rows.length) this.table.open(this.table.rows[this.table.selected]); },
    };
    if (event.key in keys) {
      keys[event.key]();
      if (event.key === "/") event.preventDefault();
    }
  }
}

const app = new App(document.getElementById("app"), openSource());
app.start().catch((error) => { document.getElementById("app").textContent = error.message; });
