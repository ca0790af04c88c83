// How many pairs there are by the number that counts, and how clean pairs and planted noise differ in it.

const report = JSON.parse(byId("report-data").textContent);
const calibration = report.calibration;
const BARS = { width: 720, height: 230, left: 58, right: 12, top: 26, bottom: 36 };
const SMALL_BARS = { width: 240, height: 150, left: 30, right: 8, top: 24, bottom: 28 };
const SMALL_BINS = 20;
const KEPT = "--accent";
const REJECTED = "--null";

/** How bars are scaled; logarithms show a few pairs beside many. */
const bars = { scale: mostlyAtOneEnd() ? "logarithmic" : "linear" };

function mostlyAtOneEnd() {
  const totals = barTotals();
  const sorted = [...totals].filter(Boolean).sort((a, b) => a - b);
  return sorted.length > 0 && sorted.at(-1) > 30 * sorted[Math.floor(sorted.length / 2)];
}

function barTotals() {
  const { kept, rejected } = report.histogram;
  return kept.map((number, bin) => number + rejected[bin]);
}

function showHistogram() {
  const scales = ["linear", "logarithmic"].map((value) => ({ value, text: value }));
  const choose = (value) => {
    bars.scale = value;
    showHistogram();
  };
  byId("histogram").replaceChildren(
    el("div", { class: "part-head" }, el("h3", { text: `Pairs by ${report.by}` }), segmented("Scale", scales, bars.scale, choose)),
    el("div", { class: "scroll" }, histogramPicture()),
    el(
      "div",
      { class: "legend" },
      el("span", {}, swatch(KEPT), "kept"),
      el("span", {}, swatch(REJECTED, true), "rejected"),
      el("span", { text: `┆ cut at ${number(report.cut)}` }),
      report.histogram.isCutOff ? el("span", { text: "the outermost bars hold all that is beyond them" }) : null,
    ),
  );
}

function swatch(variable, isHatched = false) {
  const box = el("span", { class: isHatched ? "swatch hatched" : "swatch", "aria-hidden": "true" });
  box.style.setProperty("--swatch", `var(${variable})`);
  return box;
}

/** A number of a column, short. */
function number(value) {
  return value === null || value === undefined ? NOTHING : String(Number(value.toPrecision(4)));
}

function histogramPicture() {
  const { width, height, left, right, top, bottom } = BARS;
  const { edges, kept, rejected } = report.histogram;
  const [low, high] = [edges[0], edges.at(-1)];
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const most = Math.max(1, ...barTotals());
  const share = bars.scale === "logarithmic" ? (value) => Math.log10(1 + value) / Math.log10(1 + most) : (value) => value / most;
  const y = (value) => height - bottom - share(value) * (height - top - bottom);
  const text = `Pairs by ${report.by}: ${count(report.kept)} kept, ${count(report.rejected)} rejected, cut at ${number(report.cut)}`;
  const svg = svgEl("svg", { class: "chart histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text });
  svg.append(hatching());
  for (const tick of countTicks(most)) {
    svg.append(svgEl("line", { class: "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
    svg.append(svgEl("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end", text: count(tick) }));
  }
  for (const tick of axisTicks(low, high, 8).filter((value) => value >= low && value <= high)) {
    svg.append(svgEl("text", { x: x(tick), y: height - 18, "text-anchor": "middle", text: String(tick) }));
  }
  svg.append(svgEl("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle", text: report.by }));
  for (let bin = 0; bin < kept.length; bin++) {
    const about = `${report.by} ${number(edges[bin])} to ${number(edges[bin + 1])}: ${count(kept[bin])} kept, ${count(rejected[bin])} rejected`;
    svg.append(bar(x(edges[bin]), x(edges[bin + 1]), y(0), y(rejected[bin]), REJECTED, about, "hatched-bar"));
    svg.append(bar(x(edges[bin]), x(edges[bin + 1]), y(rejected[bin]), y(rejected[bin] + kept[bin]), KEPT, about));
  }
  const cut = x(Math.min(high, Math.max(low, report.cut)));
  const isRight = cut > width * 0.7;
  svg.append(svgEl("line", { class: "cut", x1: cut, x2: cut, y1: top - 8, y2: height - bottom }));
  svg.append(svgEl("text", { class: "panel-title", x: cut + (isRight ? -5 : 5), y: top - 10, "text-anchor": isRight ? "end" : "start", text: `cut ${number(report.cut)}` }));
  return svg;
}

/** Stripes, so that what is rejected is told by more than its colour. */
function hatching() {
  const pattern = svgEl("pattern", { id: "hatching", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(svgEl("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 }));
  return svgEl("defs", {}, pattern);
}

function bar(from, to, bottom, top, variable, about, kind) {
  const place = { x: from + 0.5, width: Math.max(0.5, to - from - 1), y: top, height: Math.max(0, bottom - top) };
  const group = svgEl("g", {}, svgEl("title", { text: about }));
  const filled = svgEl("rect", { ...place, class: "bar" });
  filled.style.fill = `var(${variable})`;
  group.append(filled);
  if (kind) group.append(svgEl("rect", { ...place, class: kind, fill: "url(#hatching)" }));
  return group;
}

function countTicks(most) {
  if (bars.scale === "linear") return axisTicks(0, most).filter((tick) => tick <= most && Number.isInteger(tick));
  const ticks = [0];
  for (let tick = 1; tick <= most; tick *= 10) ticks.push(tick);
  return ticks;
}

/** For each kind, how likely held-out pairs with and without that noise are clean. */
function kindHistograms() {
  const clean = heldOutClean().map(toProbability);
  return el(
    "div",
    { class: "charts kinds" },
    ...calibration.kinds.map(({ name, looks }) => smallHistogram(name, looks, clean, calibration.heldOut.noise[name].map(toProbability))),
  );
}

/** Whether held-out pairs of the corpus that look like noise count as clean, too. */
const heldOut = { pairs: "all" };

/** The log-odds of noise of held-out pairs that count as clean. */
function heldOutClean() {
  const { clean } = calibration.heldOut;
  return heldOut.pairs === "all" ? clean : clean.filter((logOdds) => logOdds <= 0);
}

function heldOutAreas() {
  return heldOut.pairs === "all" ? calibration.areas : calibration.areasWithoutDoubted;
}

/** From the log-odds of noise, where it is as likely as not, to the probability with the noise that is expected. */
function toProbability(logOdds) {
  const expected = calibration.expectedNoise;
  return 1 / (1 + Math.exp(logOdds + Math.log(expected / (1 - expected))));
}

function smallHistogram(name, looks, clean, noise) {
  const { width, height, left, right, top, bottom } = SMALL_BARS;
  const shares = [clean, noise].map(binShares);
  const most = Math.max(...shares.flat());
  const x = (value) => left + value * (width - left - right);
  const y = (share) => height - bottom - Math.sqrt(share / most) * (height - top - bottom);
  const found = noise.filter((value) => value < 0.5).length / noise.length;
  const wrong = clean.filter((value) => value < 0.5).length / clean.length;
  const text = `${name}: ${percent(found)} of the noise and ${percent(wrong)} of the clean pairs are below a probability of 0.5`;
  const svg = svgEl("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text });
  svg.append(svgEl("title", { text }), svgEl("text", { class: "panel-title", x: 0, y: 12, text: name }));
  svg.append(svgEl("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) }));
  for (let bin = 0; bin < SMALL_BINS; bin++) {
    const [from, to] = [x(bin / SMALL_BINS), x((bin + 1) / SMALL_BINS)];
    const middle = (from + to) / 2;
    svg.append(bar(from, middle + 0.5, y(0), y(shares[0][bin]), KEPT, `clean, ${percent(shares[0][bin])}`));
    svg.append(bar(middle - 0.5, to, y(0), y(shares[1][bin]), REJECTED, `${name}, ${percent(shares[1][bin])}`));
  }
  for (const tick of [0, 0.5, 1]) svg.append(svgEl("text", { x: x(tick), y: height - 12, "text-anchor": "middle", text: String(tick) }));
  svg.append(svgEl("text", { x: (left + width - right) / 2, y: height - 1, "text-anchor": "middle", text: `found at 0.5: ${percent(found)}` }));
  return svg;
}

function binShares(values) {
  const shares = new Array(SMALL_BINS).fill(0);
  for (const value of values) shares[Math.min(SMALL_BINS - 1, Math.floor(value * SMALL_BINS))] += 1 / values.length;
  return shares;
}
