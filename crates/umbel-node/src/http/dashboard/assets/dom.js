// Elements from values. Text is only ever set as text: there is no way from here to markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child);
  }
}

/** An element of HTML: h("p", { class: "muted" }, "text", other). */
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** An element of SVG. */
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Puts these children in the place of those that an element has. */
export function replace(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/** Sets an element's text unless it is the same already. */
export function text(element, value) {
  const now = String(value);
  if (element.textContent !== now) element.textContent = now;
}

let ids = 0;
/** An id for a label to name. */
export const newId = () => `id-${(ids += 1)}`;

/** A field with its label and, if need be, a hint below. */
export function field(label, input, hint) {
  const id = input.id || newId();
  input.id = id;
  const hintId = hint ? newId() : null;
  if (hintId) input.setAttribute("aria-describedby", hintId);
  return h("div", { class: "field" },
    h("label", { for: id }, label), input,
    hint ? h("p", { class: "hint", id: hintId }, hint) : null);
}

/** A number with its name and what it means. */
export function tile(label, value, note, tone) {
  const shown = h("div", { class: "tile-value" }, value);
  const noted = h("div", { class: "tile-note" }, note ?? "");
  const element = h("div", { class: `tile ${tone ?? ""}` },
    h("div", { class: "tile-label" }, label), shown, noted);
  return {
    element,
    set(value, note, tone) {
      text(shown, value);
      if (note !== undefined) text(noted, note);
      const name = `tile ${tone ?? ""}`;
      if (element.className !== name) element.className = name;
    },
  };
}

/** What is shown where there is nothing yet. */
export const empty = (title, ...words) =>
  h("div", { class: "empty" }, h("h3", null, title), h("p", null, ...words));
