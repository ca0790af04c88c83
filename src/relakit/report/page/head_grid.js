// A number of all heads of a model at a glance: a row for each layer, a cell for each head.

/** @param {number} model @param {string} key of the numbers @param {string} name of the number */
function headGrid(model, key, name) {
  const { width, height, left, right, top, bottom } = CHART;
  const { layers, heads } = models[model].kinds[MAIN_KIND];
  const values = models[model].kinds[MAIN_KIND][key];
  const [cellWidth, cellHeight] = [(width - left - right) / heads, (height - top - bottom) / layers];
  const title = `${models[model].name}, by head`;
  const svg = svgEl("svg", { class: "chart head-grid", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": gridText(title, name, values) });
  svg.append(svgEl("text", { class: "panel-title", x: 0, y: 12, text: shortened(title, width - 10) }));
  values.forEach((row, layer) =>
    row.forEach((value, head) => {
      const place = { x: left + head * cellWidth, y: top + layer * cellHeight, width: cellWidth, height: cellHeight };
      svg.append(gridCell(model, layer, head, value, place));
    }),
  );
  for (let layer = 0; layer < layers; layer += Math.ceil(layers / MOST_TICKS)) {
    svg.append(svgEl("text", { x: left - 6, y: top + (layer + 0.5) * cellHeight + 3.5, "text-anchor": "end", text: String(layer + 1) }));
  }
  for (let head = 0; head < heads; head += Math.ceil(heads / MOST_TICKS)) {
    svg.append(svgEl("text", { x: left + (head + 0.5) * cellWidth, y: height - 16, "text-anchor": "middle", text: String(head + 1) }));
  }
  svg.append(svgEl("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle", text: "head" }));
  svg.append(svgEl("text", { x: 0, y: height - 16, text: "layer" }));
  return svg;
}

/** The darker, the closer to 1; without a value, the cell is empty. */
function gridCell(model, layer, head, value, place) {
  const cell = svgEl("rect", { class: "grid-cell", ...place, "data-place": `${layer}-${head}`, click: () => showHead(model, layer, head) });
  const share = Math.round(100 * Math.min(1, Math.max(0, value ?? 0)));
  cell.style.fill = `color-mix(in srgb, var(--accent) ${share}%, var(--surface))`;
  cell.append(svgEl("title", { text: `${models[model].name}, layer ${layer + 1}, head ${head + 1}: ${percent(value)}` }));
  return cell;
}

/** Show a head of a model in the explorer; the other model stays beside it. */
function showHead(model, layer, head) {
  if (!sentences.length) return;
  update({ model, other: model === state.other ? state.model : state.other, layer, head });
  byId("explorer").scrollIntoView();
}

function gridText(title, name, values) {
  const rows = values.map((row, layer) => `layer ${layer + 1}: ${row.map((value) => percent(value, 0)).join(", ")}`);
  return `${name}, ${title}. ${rows.join(". ")}`;
}
