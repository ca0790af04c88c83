// The main picture: a sparse matrix with words on its axes, as SVG that can be saved as it is.

const LABEL_SIZE = 12;
const LONGEST_LABEL = 150;
const TILT = 60; // degrees of the keys' labels
const MANY_CELLS = 4000;
const FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'Liberation Sans', sans-serif";

const measuring = document.createElement("canvas").getContext("2d");

function textWidth(text, size = LABEL_SIZE) {
  measuring.font = `${size}px ${FONT}`;
  return measuring.measureText(text).width;
}

/** The text, cut with an ellipsis if it is wider than allowed. */
function shortened(text, width = LONGEST_LABEL) {
  if (textWidth(text) <= width) return text;
  let end = text.length - 1;
  while (end > 1 && textWidth(`${text.slice(0, end)}…`) > width) end--;
  return `${text.slice(0, end)}…`;
}

/**
 * Draw a picture.
 * @param {Picture} picture
 * @param {{cell: number, label: string, titled?: boolean}} options size of a cell; what is shown;
 *   whether the label stands above the picture, as in saved ones
 * @returns {SVGSVGElement}
 */
function drawHeatMap(picture, { cell, label, titled = false }) {
  const title = titled ? label : null;
  const place = heatMapPlaces(picture, cell, title);
  const { left, top, width, height } = place;
  const svg = svgEl("svg", {
    xmlns: SVG,
    class: "heat-map",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
    "font-family": FONT,
    "font-size": LABEL_SIZE,
    "data-cell": cell,
    "data-left": left,
    "data-top": top,
  });
  svg.append(
    svgEl("rect", { width, height, fill: colour("surface") }),
    sheet(picture, place),
    cells(picture, place),
    columnLabels(picture, place),
    rowLabels(picture, place),
    svgEl("g", { class: "cursor", "pointer-events": "none" }),
    heatMapLegend(picture, place),
  );
  if (title) svg.append(svgEl("text", { x: 8, y: 20, fill: colour("ink"), "font-size": 14, "font-weight": 600, text: title }));
  return svg;
}

function heatMapPlaces(picture, cell, title) {
  const widest = (labels) => Math.max(...labels.map((label) => textWidth(shortened(label))));
  const radians = (TILT * Math.PI) / 180;
  const titleHeight = title ? 30 : 0;
  const left = Math.ceil(widest(picture.rows)) + 34;
  const top = titleHeight + Math.ceil(widest(picture.columns) * Math.sin(radians)) + 18;
  const overhang = Math.ceil(textWidth(shortened(picture.columns.at(-1))) * Math.cos(radians));
  const right = left + picture.columns.length * cell;
  const bottom = top + picture.rows.length * cell;
  const width = Math.ceil(Math.max(right + overhang + 10, 330, title ? textWidth(title, 14) * 1.1 + 16 : 0));
  return { cell, left, top, right, bottom, titleHeight, width, height: bottom + 46 };
}

/** The ground under the cells: keys that are hidden, rows that attend to nothing, a grid. */
function sheet({ rows, columns, nullRows, seen }, { cell, left, top, right, bottom }) {
  const group = svgEl("g", { class: "sheet" });
  let hidden = "";
  seen.forEach(([first, after], row) => {
    const span = (from, to) => (from < to ? `M${left + from * cell} ${top + row * cell}h${(to - from) * cell}v${cell}h-${(to - from) * cell}z` : "");
    hidden += span(0, first) + span(after, columns.length);
  });
  if (hidden) group.append(svgEl("path", { class: "hidden-keys", d: hidden, fill: colour("masked") }));
  nullRows.forEach((isNull, row) => {
    if (!isNull) return;
    const band = { x: left, y: top + row * cell, width: right - left, height: cell, fill: colour("null-tint") };
    group.append(svgEl("rect", { class: "null-row", ...band }));
  });
  let lines = "";
  for (let row = 0; row <= rows.length; row++) lines += `M${left} ${top + row * cell}H${right}`;
  for (let column = 0; column <= columns.length; column++) lines += `M${left + column * cell} ${top}V${bottom}`;
  group.append(svgEl("path", { d: lines, stroke: colour("grid"), fill: "none" }));
  return group;
}

/** A rectangle for each weight that is not 0; as many as are too slow one by one, by colour. */
function cells({ rows, columns, weights, shades }, { cell, left, top }) {
  const scales = currentScales();
  const group = svgEl("g", { class: "cells" });
  const gap = cell >= 10 ? 1 : 0;
  const side = cell - gap;
  /** @type {Map<number[], string>} outlines of all cells of a colour */
  const outlines = new Map();
  const areMany = weights.reduce((drawn, weight) => drawn + (weight !== 0), 0) > MANY_CELLS;
  for (let row = 0; row < rows.length; row++) {
    for (let column = 0; column < columns.length; column++) {
      const weight = weights[row * columns.length + column];
      if (weight === 0) continue;
      const rgb = scaleColour(scales, shades[row * columns.length + column]);
      const [x, y] = [left + column * cell + gap / 2, top + row * cell + gap / 2];
      if (areMany) outlines.set(rgb, `${outlines.get(rgb) ?? ""}M${x} ${y}h${side}v${side}h-${side}z`);
      else group.append(svgEl("rect", { x, y, width: side, height: side, fill: rgbText(rgb) }));
    }
  }
  for (const [rgb, d] of outlines) group.append(svgEl("path", { d, fill: rgbText(rgb) }));
  return group;
}

function rgbText(rgb) {
  return `rgb(${rgb.join(",")})`;
}

/** Labels keep a ground of their own, because they stay in place while the matrix is scrolled. */
function columnLabels({ columns }, { cell, left, top, width, titleHeight }) {
  const group = svgEl("g", { class: "column-labels" });
  group.append(svgEl("rect", { y: titleHeight, width, height: top - titleHeight, fill: colour("surface") }));
  columns.forEach((label, column) => {
    const x = left + (column + 0.5) * cell;
    const turned = { transform: `translate(${x + 3} ${top - 6}) rotate(-${TILT})` };
    group.append(svgEl("text", { ...turned, fill: labelColour(label), text: shortened(label) }));
  });
  return group;
}

function rowLabels({ rows, nullRows }, { cell, left, top, bottom }) {
  const group = svgEl("g", { class: "row-labels", "text-anchor": "end" });
  group.append(svgEl("rect", { y: top, width: left, height: bottom - top, fill: colour("surface") }));
  rows.forEach((label, row) => {
    const y = top + (row + 0.5) * cell + LABEL_SIZE * 0.35;
    const fillColour = nullRows[row] ? colour("null") : labelColour(label);
    group.append(svgEl("text", { x: left - 24, y, fill: fillColour, text: shortened(label) }));
    if (nullRows[row]) {
      group.append(svgEl("text", { class: "null-mark", x: left - 6, y, fill: colour("null"), text: "∅" }));
    }
  });
  return group;
}

function labelColour(label) {
  return label === BEGIN || label === END ? colour("muted") : colour("ink");
}

function heatMapLegend({ range, nullRows, negative }, { left, bottom, height }) {
  const group = svgEl("g", { class: "legend-marks", "font-size": 11, fill: colour("muted") });
  const y = bottom + 18;
  const start = Math.min(left, 90);
  const { positive, negative: below } = currentScales();
  group.append(svgEl("text", { x: start - 8, y: y + 10, "text-anchor": "end", text: "0 (empty)" }));
  positive.forEach((rgb, step) => {
    if (step % 2) return;
    group.append(svgEl("rect", { x: start + step * 2, y, width: 4.2, height: 12, fill: rgbText(rgb) }));
  });
  const nulls = nullRows.filter(Boolean).length;
  group.append(svgEl("text", { x: start + 136, y: y + 10, text: range }));
  if (negative) {
    const place = start + 148 + textWidth(range, 11);
    group.append(svgEl("rect", { x: place, y, width: 12, height: 12, fill: rgbText(below.at(-1)) }));
    group.append(svgEl("text", { x: place + 18, y: y + 10, text: "below 0" }));
  }
  const text = nulls ? `∅ attends to nothing (${nulls} of ${nullRows.length})` : "no null rows";
  group.append(svgEl("text", { x: 8, y: height - 3, fill: nulls ? colour("null") : colour("muted"), text }));
  return group;
}

/** The cell under a point of the picture's own coordinates, or null. */
function cellAt(picture, svg, x, y) {
  const { cell, left, top } = svg.dataset;
  const column = Math.floor((x - left) / cell);
  const row = Math.floor((y - top) / cell);
  return row >= 0 && column >= 0 && row < picture.rows.length && column < picture.columns.length
    ? { row, column }
    : null;
}

/** Show which cell is looked at. @param {{row: number, column: number}|null} at */
function markCell(picture, svg, at) {
  const group = svg.querySelector(".cursor");
  group.replaceChildren();
  if (!at) return;
  const { cell, left, top } = Object.fromEntries(Object.entries(svg.dataset).map(([k, v]) => [k, Number(v)]));
  const x = left + at.column * cell;
  const y = top + at.row * cell;
  const band = { fill: colour("accent"), opacity: 0.1 };
  group.append(
    svgEl("rect", { x: left, y, width: picture.columns.length * cell, height: cell, ...band }),
    svgEl("rect", { x, y: top, width: cell, height: picture.rows.length * cell, ...band }),
    svgEl("rect", { x, y, width: cell, height: cell, fill: "none", stroke: colour("accent"), "stroke-width": 2 }),
  );
}
