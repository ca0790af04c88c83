// Making elements. Text of the corpus only ever becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element.
 * @param {string} tag
 * @param {Object<string, any>} [properties] attributes; functions are event listeners ("click"),
 *   `text` is the text content; null, undefined and false leave an attribute out
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element; otherwise as `el`. @returns {SVGElement} */
function svgEl(tag, properties = {}, ...children) {
  const allowed = Object.entries(properties).map(([name, value]) => [name, typeof value === "string" ? xmlText(value) : value]);
  return fill(document.createElementNS(SVG, tag), Object.fromEntries(allowed), children);
}

/** The text with a replacement character for each that no XML file, such as a saved SVG, may hold. */
function xmlText(text) {
  return text.replace(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, "\uFFFD");
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** @returns {HTMLElement} */
function byId(id) {
  return document.getElementById(id);
}

/**
 * Buttons of which one is pressed.
 * @param {string} label what is chosen
 * @param {Array<{value: any, text: string, title?: string}>} options
 * @param {any} current
 * @param {(value: any) => void} choose
 * @param {string} [key] of the glossary
 */
function segmented(label, options, current, choose, key) {
  const buttons = options.map(({ value, text, title }) =>
    el("button", {
      type: "button",
      text,
      title,
      "data-value": value,
      "aria-pressed": String(value === current),
      click: () => choose(value),
    }),
  );
  return field(label, el("div", { class: "segmented", role: "group", "aria-label": label }, ...buttons), key);
}

/** A drop-down list, as `segmented`. */
function dropDown(label, options, current, choose) {
  const select = el(
    "select",
    { "aria-label": label, change: () => choose(options[select.selectedIndex].value) },
    ...options.map(({ value, text }) => el("option", { text, selected: value === current })),
  );
  return field(label, select);
}

function field(label, control, key) {
  return el("div", { class: "field" }, el("span", { class: "name" }, key ? term(key, label) : label), control);
}

/** A coloured dot that stands for a model. */
function modelDot(number) {
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  dot.style.background = `var(${modelColour(number)})`;
  return dot;
}

/** The name of the CSS variable that holds a model's colour. */
function modelColour(number) {
  return `--model-${number % 6}`;
}
