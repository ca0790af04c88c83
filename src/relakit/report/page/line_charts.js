// Figures 3 to 6, sinks, and what stands before the norm: a number by layer, a panel for each kind of attention, a line for
// each model. Where there is one kind of attention only, there is room for all heads beside it.

const CHART = { width: 240, height: 190, left: 42, right: 10, top: 24, bottom: 30 };
const MOST_TICKS = 12;

/**
 * @typedef {Object} Line
 * @property {number} model
 * @property {Array<number|null>} values by layer
 * @property {boolean} [dashed]
 * @property {Array<{low: number, high: number}>} [intervals] by layer
 * @property {string} name
 */

function showFigures() {
  const inPaper = (number) => (IS_OF_TEXTS ? "" : `Figure ${number}. `);
  const shuffled = IS_OF_TEXTS ? "" : "; dashed: shuffled targets, each with the source of another pair";
  const figures = [
    figure("Sparsity", `${inPaper(3)}Share of weights that are exactly 0, mean over heads.`, kindPanels(headLines("sparsity")), "sparsity"),
    figure("Null rate", `${inPaper(6)}Share of queries whose weights are all 0, mean over heads${shuffled}.`, [...kindPanels(nullLines), gapPanel()].filter(Boolean), "nullRate"),
    figure("First sink", "Share of the weight that lies on the first token, mean over heads.", kindPanels(headLines("firstSink")), "firstSink"),
    figure("Head diversity", `${inPaper(5)}Generalised Jensen-Shannon divergence of the heads, in nats, ${report.diversityTemperatures}.`, kindPanels(diversityLines)),
  ];
  if (models.some(({ alignment }) => alignment)) {
    const panels = READINGS.map((reading) => ({ title: reading === "normal" ? "Normal" : "Shifted", lines: alignmentLines(reading) }));
    figures.push(figure("Alignment", "Figure 4. Alignment error rate, lower is better; solid: the layer's best head, dashed: the mean of its heads.", panels));
  }
  figures.push(...outputFigures());
  byId("figures").replaceChildren(
    el("h2", { text: "By layer" }),
    el("p", { class: "lead", text: figuresLead() }),
    el("div", { class: IS_OF_TEXTS && models.length === 1 ? "chart-grid beside" : "chart-grid" }, ...figures),
  );
}

function figuresLead() {
  if (IS_OF_TEXTS) return "Point at a dot, or at a cell, for its number; a click on a cell shows the head in the explorer.";
  return "The paper's figures 3 to 6 for these models, their sinks, and whether their gates are open. Point at a dot for its number.";
}

/** @param {string} [byHead] the number's name, if each head has one of its own */
function figure(name, caption, panels, byHead) {
  const drawn = panels.map(({ title, lines, zero }) => lineChart(title, lines, zero));
  if (byHead && IS_OF_TEXTS) drawn.push(...models.map((_, model) => headGrid(model, byHead, name)));
  const names = models.map((model, number) => el("span", {}, modelDot(number), model.name));
  return el(
    "div",
    { class: "card figure" },
    el(
      "div",
      {},
      el("h3", {}, ...withTerms(name)),
      el("p", { class: "muted small" }, ...withTerms(caption)),
      el("div", { class: "legend" }, ...names),
    ),
    el("div", { class: "charts" }, ...drawn),
  );
}

function kindPanels(lines) {
  return KINDS.map((kind) => ({ title: KIND_NAMES[kind], lines: lines(kind) }));
}

/** Lines of the mean over heads. */
function headLines(key) {
  return (kind) => models.map(({ name, kinds }, model) => ({ model, name, values: kinds[kind][key].map(mean) }));
}

function diversityLines(kind) {
  return models.map(({ name, kinds }, model) => {
    const { diversity, temperature } = kinds[kind];
    return { model, name, values: diversity[temperature] ?? [] };
  });
}

function nullLines(kind) {
  const lines = headLines("nullRate")(kind);
  models.forEach(({ name, shuffled }, model) => {
    const rates = shuffled?.null_rate[kind];
    if (rates) lines.push({ model, name: `${name}, shuffled`, values: rates.map(mean), dashed: true });
  });
  return lines;
}

/** How much the null rate rises with shuffled targets, with its confidence interval. */
function gapPanel() {
  const lines = [];
  models.forEach(({ name, shuffled }, model) => {
    if (!shuffled) return;
    const gaps = shuffled.cross_gap;
    lines.push({ model, name, values: gaps.map((gap) => gap.mean), intervals: gaps });
  });
  if (!lines.length) return null;
  const level = Number((100 * models[0].settings.confidence).toPrecision(12));
  return { title: `Cross, shuffled − true (${level} % CI)`, lines, zero: true };
}

function alignmentLines(reading) {
  const lines = [];
  models.forEach(({ name, alignment }, model) => {
    if (!alignment) return;
    const { heads, bestHeads, layers } = alignment[reading];
    lines.push({ model, name: `${name}, best head`, values: heads.map((row, layer) => row[bestHeads[layer]]) });
    lines.push({ model, name: `${name}, mean of heads`, values: layers, dashed: true });
  });
  return lines;
}

/** Not in the paper: how large the heads' output z is before the norm, and what that does to the gates. */
function outputFigures() {
  const numbers = [
    ["RMS(z)", "outputRms", "Size of the heads' output before its norm."],
    ["Closed gates", "closedGates", "Share of the norm's gates that are below 0.01."],
  ];
  return numbers
    .map(([name, key, caption]) => [name, caption, kindPanels((kind) => layerLines(kind, key)).filter(({ lines }) => lines.length)])
    .filter(([, , panels]) => panels.length)
    .map(([name, caption, panels]) => figure(name, caption, panels));
}

function layerLines(kind, key) {
  return models
    .map(({ name, kinds }, model) => ({ model, name, values: kinds[kind][key] }))
    .filter(({ values }) => values !== null);
}

/** @param {Line[]} lines @param {boolean} zero draw a line at 0 */
function lineChart(title, lines, zero = false) {
  const { width, height, left, right, top, bottom } = CHART;
  const known = lines.flatMap(({ values, intervals }) => [...values, ...(intervals ?? []).flatMap(({ low, high }) => [low, high])]);
  const numbers = known.filter((value) => value !== null);
  const ticks = axisTicks(Math.min(0, ...numbers), Math.max(0.01, ...numbers));
  const layers = Math.max(...lines.map(({ values }) => values.length));
  const x = (layer) => left + ((layer + 0.5) / layers) * (width - left - right);
  const share = (value) => (value - ticks[0]) / (ticks.at(-1) - ticks[0]);
  const y = (value) => height - bottom - share(value) * (height - top - bottom);
  const svg = svgEl("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chartText(title, lines) });
  svg.append(svgEl("text", { class: "panel-title", x: 0, y: 12, text: title }));
  for (const tick of ticks) {
    svg.append(svgEl("line", { class: zero && tick === 0 ? "zero" : "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
    svg.append(svgEl("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end", text: String(tick) }));
  }
  for (let layer = 0; layer < layers; layer += Math.ceil(layers / MOST_TICKS)) {
    svg.append(svgEl("text", { x: x(layer), y: height - 16, "text-anchor": "middle", text: String(layer + 1) }));
  }
  svg.append(svgEl("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle", text: "layer" }));
  for (const line of lines) svg.append(chartLine(line, x, y));
  return svg;
}

function chartLine({ model, name, values, dashed, intervals }, x, y) {
  const stroke = `var(${modelColour(model)})`;
  const group = svgEl("g", {});
  const points = values.map((value, layer) => [value, layer]).filter(([value]) => value !== null);
  const shift = intervals ? (model - (models.length - 1) / 2) * 7 : 0; // intervals beside each other
  const path = points.map(([value, layer], number) => `${number ? "L" : "M"}${x(layer) + shift} ${y(value)}`).join("");
  if (!intervals) group.append(themed(svgEl("path", { class: dashed ? "line dashed" : "line", d: path }), { stroke }));
  intervals?.forEach(({ low, high }, layer) => {
    const ends = { x1: x(layer) + shift, x2: x(layer) + shift, y1: y(low), y2: y(high) };
    group.append(themed(svgEl("line", { class: "line", ...ends }), { stroke }));
  });
  for (const [value, layer] of points) {
    const dot = svgEl("circle", { class: "point", cx: x(layer) + shift, cy: y(value), r: dashed ? 2.6 : 3.6 });
    const interval = intervals ? ` (${fixed(intervals[layer].low, 3)} to ${fixed(intervals[layer].high, 3)})` : "";
    dot.append(svgEl("title", { text: `${name}, layer ${layer + 1}: ${fixed(value, 3)}${interval}` }));
    group.append(themed(dot, { fill: stroke }));
  }
  return group;
}

/** Colours by variable, so that charts follow the theme without being drawn again. */
function themed(element, styles) {
  Object.assign(element.style, styles);
  return element;
}

function chartText(title, lines) {
  const texts = lines.map(({ name, values }) => `${name}: ${values.map((value) => fixed(value, 3)).join(", ")}`);
  return `${title}, by layer. ${texts.join(". ")}`;
}
