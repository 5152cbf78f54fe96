// One rollout as a conversation, and the members of its group side by side.
"use strict";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const TIE = 1e-6;

// Eight shades from certain to surprising: a token at least this probable has the shade's number.
const SHADES = [0.9, 0.6, 0.35, 0.2, 0.1, 0.04, 0.01];

function shadeOf(logprob) {
  const chance = Math.exp(logprob);
  const found = SHADES.findIndex((least) => chance >= least);
  return found < 0 ? SHADES.length : found;
}

// By number of the member the letter of its tie, for those that tie with another.
function tieLetters(records) {
  const order = records.map((_, at) => at).sort((a, b) => records[a].return - records[b].return);
  const buckets = [];
  for (const at of order) {
    const last = buckets[buckets.length - 1];
    if (last && records[at].return - records[last[0]].return <= TIE) last.push(at);
    else buckets.push([at]);
  }
  const letters = {};
  buckets.filter((bucket) => bucket.length > 1).forEach((bucket, n) => bucket.forEach((at) => { letters[at] = LETTERS[n % 26]; }));
  return letters;
}

function saidTokens(turn) {
  if (!turn.pieces.length) return h("div", {class: "text"}, turn.said || "");
  return h("div", {class: "text tokens"}, turn.pieces.map((piece, at) => {
    const logprob = turn.logprobs[at];
    const known = logprob !== undefined && logprob !== null;
    const shown = piece.replaceAll("\n", "↵\n");
    const about = known ? `log-probability ${logprob.toFixed(3)}, probability ${percent(Math.exp(logprob))}` : "log-probability not known";
    return h("span", {class: known ? `token shade${shadeOf(logprob)}` : "token", title: `token ${turn.tokens[at]}: ${JSON.stringify(piece)}\n${about}`}, shown);
  }));
}

// The call of a tool, where the world read one: its line, after whatever was said before it.
function callOf(turn) {
  const found = turn.said !== null && !turn.malformed && /(?:^|\n)\s*([a-z]\w*)\((.*)\)\s*$/.exec(turn.said);
  return found && h("span", {class: "mark call"}, "call ", h("code", {}, `${found[1]}(${found[2]})`));
}

function termsOf(turn) {
  const terms = Object.entries(turn.terms);
  return [
    callOf(turn),
    terms.length > 0 && h("p", {class: "terms"}, h("b", {}, `reward ${show(turn.reward, 4)}`), " = ",
      terms.map(([name, value], at) => [at > 0 && ", ", `${name} ${show(value, 4)}`])),
    turn.malformed && h("span", {class: "mark malformed"}, "malformed"),
    turn.said !== null && !turn.complete && h("span", {class: "mark cut_off"}, "cut off"),
  ];
}

function metricsTable(metrics, declared) {
  const known = Object.entries(metrics).filter(([, value]) => value !== null);
  if (!known.length) return null;
  return h("details", {class: "metrics"}, h("summary", {}, `What the world reported (${known.length})`),
    h("table", {}, h("tbody", {}, known.map(([name, value]) => {
      const about = declared[name];
      const shown = about ? `${show(about.scale * value)}${about.unit ? ` ${about.unit}` : ""}` : show(value, 4);
      return h("tr", {}, h("th", {scope: "row"}, about ? about.title : name, about && h("small", {}, about.meaning)), h("td", {}, shown));
    }))));
}

function conversation(record) {
  return h("ol", {class: "conversation"}, record.turns.map((turn) => h("li", {class: turn.role === record.role ? "own" : "other"},
    h("div", {class: "read"}, h("span", {class: "who"}, `${turn.role} reads`), h("div", {class: "text"}, turn.read)),
    h("div", {class: "said"}, h("span", {class: "who"}, turn.said === null ? ["the episode was cut short", turn.finish].filter(Boolean).join(": ") : `${turn.role} replies`,
      turn.completion_tokens !== null && h("small", {}, ` ${plural(turn.completion_tokens, "token")}`)),
      turn.said !== null && saidTokens(turn), termsOf(turn)))));
}

// What the replies earn on average over outcomes, where the world knows it and it is not the return.
function expectedOf(record) {
  const last = record.turns[record.turns.length - 1], found = last && last.metrics[`expected_return/${record.role}`];
  return found === undefined || found === null || Math.abs(found - record.return) <= TIE ? null : found;
}

function factsOf(record, letter, dead) {
  return h("p", {class: "facts"},
    h("b", {}, `return ${show(record.return, 4)}`),
    expectedOf(record) !== null && h("span", {}, `expected ${show(expectedOf(record), 4)}`),
    record.advantage !== null && h("span", {}, `advantage ${show(record.advantage, 4)}`),
    h("span", {}, record.stop_reason.replaceAll("_", " ")),
    letter && h("span", {class: `tie tie${LETTERS.indexOf(letter) % 6}`}, dead ? "tie: all members" : `tie ${letter}`));
}

function titleOf(record) {
  const task = `${record.world.split("/").pop()} ${record.level}, ${record.split} Task ${record.index}`;
  return `${task} · ${record.role}`;
}

// group: {rows, records}; at: which of them; picture: address of its picture, or null.
function rolloutView(group, at, summary, picture) {
  const record = group.records[at], letters = tieLetters(group.records);
  const last = record.turns[record.turns.length - 1];
  const dead = Object.values(letters).filter((letter) => letter === letters[at]).length === group.records.length;
  return h("article", {class: "rollout"}, h("h2", {}, titleOf(record)), factsOf(record, letters[at], dead),
    conversation(record), last && metricsTable(last.metrics, summary.metrics), picture && pictureOf(picture), legend(record), aboutOf(record));
}

function pictureOf(address, title = "The episode") {
  const problem = h("p", {class: "hint"});
  const image = h("img", {src: address, alt: "The world's picture of this rollout", loading: "lazy",
    onerror: () => { image.remove(); problem.textContent = "This rollout has no picture: its Task cannot be drawn here."; }});
  return h("section", {class: "picture"}, h("h3", {}, title), image, problem);
}

function legend(record) {
  if (!record.turns.some((turn) => turn.logprobs.length)) return null;
  return h("p", {class: "legend"}, "Probability of a token when it was sampled: ",
    [...SHADES, 0].map((least, at) => h("span", {class: `token shade${at}`}, at === SHADES.length ? "< 1%" : `≥ ${100 * least}%`)));
}

function aboutOf(record) {
  const fields = {policy: record.policy, opponents: Object.entries(record.opponents).map((pair) => pair.join(": ")).join(", "),
    temperature: record.temperature, "max tokens": record.max_tokens, seed: record.seed, options: JSON.stringify(record.options), fingerprint: record.fingerprint};
  return h("details", {class: "about"}, h("summary", {}, "How it was played"), h("table", {}, h("tbody", {},
    Object.entries(fields).filter(([, value]) => value !== null && value !== "" && value !== "{}").map(([name, value]) =>
      h("tr", {}, h("th", {scope: "row"}, name), h("td", {}, value))))));
}

// All members of a group: what they read first once, then what each said. open(row) shows one.
function groupView(group, at, open) {
  const {records, rows} = group, letters = tieLetters(records);
  const apart = new Set(Object.values(letters)).size + records.length - Object.keys(letters).length;
  const dead = apart === 1 && records.length > 1;
  const first = records[0].turns[0];
  const verdict = records.length < 2 ? "One rollout." : dead
    ? `All ${records.length} members earned ${show(records[0].return, 4)}: no advantage, nothing to learn.`
    : `${records.length} members, ${plural(apart, "different return")}.`;
  const order = records.map((_, n) => n).sort((a, b) => records[b].return - records[a].return || a - b);
  return h("article", {class: "group"}, h("h2", {}, titleOf(records[0])),
    h("p", {class: dead ? "verdict bad" : "verdict"}, verdict),
    first && h("details", {class: "prompt", open: true}, h("summary", {}, "What all members read first"), h("div", {class: "text"}, first.read)),
    h("div", {class: records.some((record) => record.turns.length > 1) ? "members" : "members wrapped"}, order.map((n) => memberCard(records[n], `#${records[n].member}`, letters[n], dead, n === at, () => open(rows[n])))),
    legend(records[0]));
}

function memberCard(record, title, letter = null, dead = false, chosen = false, open = null) {
  return h("section", {class: `member${chosen ? " chosen" : ""}`},
    h("h3", {}, open ? h("button", {type: "button", onclick: open}, title) : title), factsOf(record, letter, dead),
    record.turns.map((turn, n) => [
      n > 0 && h("details", {class: "later"}, h("summary", {}, `${turn.role} reads`), h("div", {class: "text"}, turn.read)),
      turn.role !== record.role && h("span", {class: "who"}, `${turn.role} replies`),
      turn.said !== null && saidTokens(turn), termsOf(turn)]));
}
