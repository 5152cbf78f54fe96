// Building the page: elements from data. Text from a run only ever becomes a text node.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || (value === false && !name.startsWith("aria-"))) continue;
    if (name.startsWith("aria-")) node.setAttribute(name, String(value));
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// h("div", {class: "x", onclick: f}, children...)
function h(name, props, ...children) {
  return fill(document.createElement(name), props, children);
}

function s(name, props, ...children) {
  return fill(document.createElementNS(SVG, name), props, children);
}

function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, null, children);
}

// A number for people: enough digits to tell values apart, never more than five.
function show(value, digits = 3) {
  if (value === null || value === undefined) return "";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return value.toFixed(digits);
}

function percent(value) {
  return value === null || value === undefined ? "" : `${(100 * value).toFixed(1)}%`;
}

function plural(count, one) {
  return `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
}

// A segment's name for people: "step 12", "before" for an evaluation before training.
function segmentTitle(name) {
  const step = /^train_0*(\d+)$/.exec(name);
  return step ? `step ${step[1]}` : name.replace(/^evaluation_/, "").replaceAll("_", " ");
}
