// A report as Python laid it out: beside its picture the sentence, tables and charts below.
"use strict";

function reportHead(report) {
  const [first, ...others] = report.lines;
  return h("section", {class: "report"},
    report.warning && h("p", {class: "collapse"}, report.warning),
    first && h("p", {class: "lead"}, first),
    others.map((line) => h("p", {class: "finding"}, line)));
}

// Charts that follow each other stand side by side.
function reportParts(report) {
  const shown = [];
  let row = null;
  for (const part of report.parts) {
    if (part.part !== "chart") row = null;
    else if (!row) shown.push(row = h("div", {class: "panels"}));
    if (part.part === "chart") row.append(chartPanel(part, [`${part.ylabel}${part.xlabel && ` by ${part.xlabel}`}.`, part.note].filter(Boolean).join(" ")));
    else if (part.part === "table") shown.push(tablePart(part));
    else shown.push(h("details", {class: "about"}, h("summary", {}, part.title), h("pre", {class: "text"}, part.text)));
  }
  return shown;
}

function tablePart({title, header, rows, note}) {
  const cell = (value, at) => h(at ? "td" : "th", {scope: at ? null : "row"}, typeof value === "string" ? value : [value[0], h("small", {}, value[1])]);
  return h("section", {class: "part"}, title && h("h2", {}, title), h("div", {class: "scrolled"}, h("table", {class: header.some(Boolean) ? null : "findings"},
    header.some(Boolean) && h("thead", {}, h("tr", {}, header.map((name) => h("th", {scope: "col"}, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))))), note && h("p", {class: "hint"}, note));
}
