// The table of rollouts: filters, sorting, and as many rows as are in view.
"use strict";

const ROW_HEIGHT = 30, MARGIN_ROWS = 6, PRINTED_ROWS = 300;

const COLUMNS = [
  {name: "place", title: "where", get: (row) => row.order, text: (row) => `${segmentTitle(row.segment)} · ${row.group}.${row.member}`},
  {name: "role", title: "role", get: (row) => row.role},
  {name: "level", title: "level", get: (row) => row.level},
  {name: "policy", title: "policy", get: (row) => row.policy},
  {name: "index", title: "Task", number: true, get: (row) => row.index},
  {name: "question", title: "question", get: (row) => row.question},
  {name: "target", title: "exact or best", get: targetOf},
  {name: "said", title: "last reply", get: (row) => row.said},
  {name: "return", title: "return", number: true, get: (row) => row.return, text: (row) => row.return.toFixed(3)},
  {name: "advantage", title: "advantage", number: true, get: (row) => row.advantage, text: (row) => show(row.advantage)},
  {name: "tie", title: "ties", number: true, get: (row) => row.tie, text: (row) => row.dead ? "all" : row.tie || ""},
  {name: "stop", title: "ended", get: (row) => row.stop.replaceAll("_", " ")},
  {name: "turns", title: "turns", number: true, get: (row) => row.turns},
  {name: "said_tokens", title: "tokens", number: true, get: (row) => row.said_tokens, text: (row) => row.said_tokens || ""},
  {name: "flags", title: "", get: (row) => FLAGS.filter((flag) => flag.has(row)).length, flags: true},
];

// The oracle's reply where it is on record, else what a forecast was scored against.
function targetOf(row) {
  return row.best || (row.label === null || row.label === undefined ? "" : show(row.label));
}

const FLAGS = [
  {name: "malformed", mark: "malformed", has: (row) => row.malformed > 0},
  {name: "cut_off", mark: "cut off", has: (row) => row.cut_off > 0},
  {name: "violation", mark: "violation", has: (row) => row.violation > 0},
  {name: "dead", mark: "dead group", has: (row) => row.dead > 0},
];

// Rows of all segments as objects; the columns of a segment come as arrays.
function rowsOf(tables) {
  const rows = [], groups = new Map();
  Object.keys(tables).forEach((segment) => {
    const {stamp, ...columns} = tables[segment];
    const names = Object.keys(columns);
    const count = columns.return.length;
    for (let at = 0; at < count; at++) {
      const row = {segment, row: at, order: rows.length};
      for (const name of names) row[name] = columns[name][at];
      const group = `${segment}/${row.world}/${row.level}/${row.role}/${row.group}`;
      if (!groups.has(group)) groups.set(group, {number: groups.size, question: row.question, size: 0});
      row.inGroup = groups.get(group);
      row.inGroup.size += 1;
      row.groupNumber = row.inGroup.number;
      row.question = row.inGroup.question;
      rows.push(row);
    }
  });
  return rows;
}

// filters: {segment, world, level, role, policy, stop, flags: Set, low, high, found: Map or null}
function filterRows(rows, filters) {
  const flags = FLAGS.filter((flag) => filters.flags.has(flag.name));
  const exact = ["segment", "world", "level", "role", "policy", "stop"].filter((name) => filters[name]);
  return rows.filter((row) =>
    exact.every((name) => row[name] === filters[name])
    && flags.every((flag) => flag.has(row))
    && (filters.low === null || row.return >= filters.low)
    && (filters.high === null || row.return <= filters.high)
    && (filters.found === null || (filters.found.get(row.segment) || NOTHING).has(row.row)));
}

const NOTHING = new Set();

// One reply to nearly everything is the first sign of a collapse.
function commonestReply(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(row.said, (counts.get(row.said) || 0) + 1);
  const most = Math.max(...counts.values(), 0);
  return most > 1 && ` · commonest reply ${percent(most / rows.length)}`;
}

function sortRows(rows, sort) {
  if (!sort.name) return rows;
  const {get} = COLUMNS.find((column) => column.name === sort.name);
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = get(a), right = get(b);
    if (left === right) return a.order - b.order;
    if (left === null) return 1;
    if (right === null) return -1;
    return left < right ? -sign : sign;
  });
}

const OPTIONAL = ["role", "level", "policy", "question", "target", "advantage", "tie", "turns", "said_tokens", "flags"];

// A column in which all rows are alike; and the policy of a training run, which is always its own.
function saysNothing(column, rows) {
  if (!OPTIONAL.includes(column.name)) return false;
  if (column.name === "policy" && rows.some((row) => row.step !== null)) return true;
  return rows.every((row) => column.get(row) === column.get(rows[0]));
}

class RolloutTable {
  // open(row) shows a rollout; sorted(name) asks for another order.
  constructor(open, sorted) {
    this.open = open;
    this.rows = [];
    this.selected = 0;
    this.hidden = new Set();
    this.body = h("div", {class: "rows", role: "rowgroup"});
    this.head = h("div", {class: "row head", role: "row"});
    this.view = h("div", {class: "table", role: "grid", tabindex: 0, "aria-label": "rollouts",
      onscroll: () => this.draw(), onkeydown: (event) => this.press(event)}, this.head, this.body);
    this.sorted = sorted;
    window.addEventListener("resize", () => this.draw());
    window.addEventListener("beforeprint", () => this.draw(true));
    window.addEventListener("afterprint", () => this.draw());
  }

  // all: every row there is, where they have changed; columns that say nothing are left out.
  set(rows, sort, all) {
    this.rows = rows;
    this.selected = Math.min(this.selected, Math.max(rows.length - 1, 0));
    if (all) this.hidden = new Set(COLUMNS.filter((column) => saysNothing(column, all)).map((column) => column.name));
    this.shown = COLUMNS.filter((column) => !this.hidden.has(column.name));
    this.view.classList.toggle("sorted", Boolean(sort.name));
    replace(this.head, this.shown.map((column) => h("div", {class: this.kind(column), role: "columnheader",
      "aria-sort": sort.name === column.name ? (sort.down ? "descending" : "ascending") : null},
      column.title && h("button", {type: "button", onclick: () => this.sorted(column.name)}, column.title,
        sort.name === column.name && (sort.down ? " ↓" : " ↑")))));
    this.view.setAttribute("aria-rowcount", rows.length + 1);
    this.body.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.draw();
  }

  kind(column) {
    return `cell c-${column.name}${column.number ? " number" : ""}`;
  }

  draw(printed = false) {
    const first = printed ? 0 : Math.max(0, Math.floor(this.view.scrollTop / ROW_HEIGHT) - MARGIN_ROWS);
    const count = printed ? PRINTED_ROWS : Math.ceil(this.view.clientHeight / ROW_HEIGHT) + 2 * MARGIN_ROWS;
    const seen = this.rows.slice(first, first + count);
    replace(this.body, seen.map((row, at) => this.line(row, first + at)));
    if (!this.rows.length) replace(this.body, h("p", {class: "empty"}, "No rollout to show."));
  }

  line(row, at) {
    const line = h("div", {class: `row${at === this.selected ? " selected" : ""}`, role: "row", "aria-rowindex": at + 2,
      "aria-selected": at === this.selected, onclick: () => { this.selected = at; this.open(row); }},
      this.shown.map((column) => h("div", {class: this.kind(column), role: "gridcell"},
        column.flags ? flagMarks(row) : column.text ? column.text(row) : column.get(row))));
    line.style.top = `${at * ROW_HEIGHT}px`;
    return line;
  }

  move(by) {
    this.selected = Math.max(0, Math.min(this.rows.length - 1, this.selected + by));
    const top = this.selected * ROW_HEIGHT, seen = this.view.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    if (top > this.view.scrollTop + seen) this.view.scrollTop = top - seen;
    this.draw();
  }

  press(event) {
    const page = Math.floor(this.view.clientHeight / ROW_HEIGHT) - 2;
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in steps) {
      this.move(steps[event.key]);
      event.preventDefault();
    } else if (event.key === "Enter" && event.target === this.view && this.rows.length) {
      this.open(this.rows[this.selected]);
      event.preventDefault();
    }
  }
}

function flagMarks(row) {
  return FLAGS.filter((flag) => flag.has(row)).map((flag) => h("span", {class: `mark ${flag.name}`}, flag.mark));
}
