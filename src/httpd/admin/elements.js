// Parts of the page. All text becomes text nodes, never markup.

import { count, num, shortened } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function setText(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

export function make(tag, className, value) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (value !== undefined) element.textContent = value;
  return element;
}

export function makeSvg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// pairs: [name, value, bad?]. Elements stay while only values change, so that a selection does.
export function showFacts(target, pairs) {
  while (target.children.length > pairs.length) target.lastChild.remove();
  pairs.forEach(([name, value, bad], i) => {
    let row = target.children[i];
    if (!row) {
      row = make("div");
      row.append(make("dt"), make("dd"));
      target.append(row);
    }
    row.className = bad ? "bad" : "";
    setText(row.children[0], name);
    setText(row.children[1], value);
  });
}

// rows: {cells: [{value, className?, title?}], className?}; the first cell is the row's header.
export function showRows(name, rows, total) {
  const body = byId(name);
  while (body.children.length > rows.length) body.lastChild.remove();
  rows.forEach((row, i) => {
    let element = body.children[i];
    if (!element) {
      element = make("tr");
      row.cells.forEach((_, column) => {
        const cell = make(column === 0 ? "th" : "td");
        if (column === 0) cell.scope = "row";
        element.append(cell);
      });
      body.append(element);
    }
    element.className = row.className || "";
    row.cells.forEach((cell, column) => {
      const target = element.children[column];
      setText(target, cell.value);
      target.className = cell.className || "";
      if (cell.title) target.title = cell.title;
      else target.removeAttribute("title");
    });
  });
  body.closest(".scroll").hidden = rows.length === 0;
  byId(`${name}-empty`).hidden = rows.length > 0;
  const shown = byId(`${name}-count`);
  if (!shown) return;
  const all = Math.max(num(total), rows.length);
  setText(shown, all > rows.length ? `${count(all)}, ${rows.length} shown` : all ? count(all) : "");
}

export const plain = (value) => ({ value });
export const number = (value) => ({ value, className: "n" });
export const wide = (value) => ({ value: shortened(value), className: "wide", title: value });
