// Precision and recall on planted noise that was held out, as if half of all pairs were noise.

const CURVES = { width: 560, height: 300, left: 44, right: 14, top: 14, bottom: 40 };
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 2"];

/** Points of a curve: the lowest log-odds that are rejected, recall and precision. */
function curvePoints(clean, noise) {
  const sorted = [...noise].sort((a, b) => b - a);
  const cleanSorted = [...clean].sort((a, b) => b - a);
  const points = [];
  let above = 0;
  sorted.forEach((cut, place) => {
    if (place + 1 < sorted.length && sorted[place + 1] === cut) return;
    while (above < cleanSorted.length && cleanSorted[above] >= cut) above++;
    const [recall, wrong] = [(place + 1) / sorted.length, above / cleanSorted.length];
    points.push({ cut, recall, precision: recall / (recall + wrong) });
  });
  return points;
}

function curves() {
  const { noise } = calibration.heldOut;
  return calibration.kinds.map(({ name }, place) => ({ name, place, points: curvePoints(heldOutClean(), noise[name]) }));
}

function curvePicture() {
  const all = curves();
  const { width, height, left, right, top, bottom } = CURVES;
  const low = Math.min(0.9, ...all.flatMap(({ points }) => points.map(({ precision }) => precision)));
  const floor = Math.floor(low * 10) / 10;
  const x = (recall) => left + recall * (width - left - right);
  const y = (precision) => height - bottom - ((precision - floor) / (1 - floor)) * (height - top - bottom);
  const text = all.map(({ name, points }) => `${name}: precision ${fixed(atRecall(points, 0.9).precision)} at a recall of 0.9`).join("; ");
  const svg = svgEl("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text });
  for (const tick of axisTicks(floor, 1, 5).filter((value) => value >= floor && value <= 1)) {
    svg.append(svgEl("line", { class: "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
    svg.append(svgEl("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end", text: String(tick) }));
  }
  for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) svg.append(svgEl("text", { x: x(tick), y: height - 22, "text-anchor": "middle", text: String(tick) }));
  svg.append(svgEl("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle", text: "recall: share of the noise that is rejected" }));
  for (const { name, place, points } of all) {
    const path = points.map(({ recall, precision }, step) => `${step ? "L" : "M"}${x(recall)} ${y(precision)}`).join("");
    const line = svgEl("path", { class: "line", d: path, "stroke-dasharray": DASHES[place] || null }, svgEl("title", { text: name }));
    line.style.stroke = `var(${modelColour(place)})`;
    svg.append(line);
  }
  const marker = svgEl("line", { class: "cut", x1: x(0.9), x2: x(0.9), y1: top, y2: height - bottom });
  svg.append(marker);
  const readout = el("table", { class: "readout" });
  const show = (recall) => {
    marker.setAttribute("x1", x(recall));
    marker.setAttribute("x2", x(recall));
    fillReadout(readout, all, recall);
  };
  const slider = el("input", { type: "range", min: 1, max: 100, value: 90, "aria-label": "Recall, in percent", input: () => show(slider.value / 100) });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const recall = Math.min(1, Math.max(0.01, (place - left) / (width - left - right)));
    slider.value = Math.round(100 * recall);
    show(recall);
  });
  show(0.9);
  return el("div", { class: "curves" }, svg, el("div", {}, el("label", { class: "field" }, el("span", { class: "name", text: "Recall" }), slider), readout));
}

/** The first point with at least this recall. */
function atRecall(points, recall) {
  return points.find((point) => point.recall >= recall - 1e-9) ?? points.at(-1);
}

function fillReadout(table, all, recall) {
  const rows = all.map(({ name, place, points }) => {
    const { cut, precision } = atRecall(points, recall);
    return el("tr", {}, el("td", { class: "words" }, lineSample(place), name), el("td", { text: fixed(precision, 3) }), el("td", { text: fixed(toProbability(cut), 3) }));
  });
  const heads = [["words", "recall " + percent(recall, 0)], [null, "precision"], [null, "threshold"]];
  table.replaceChildren(
    el("thead", {}, el("tr", {}, ...heads.map(([kind, text]) => el("th", { scope: "col", class: kind }, el("span", { text }))))),
    el("tbody", {}, ...rows),
  );
}

function lineSample(place) {
  const svg = svgEl("svg", { class: "line-sample", viewBox: "0 0 30 8", "aria-hidden": "true" });
  const line = svgEl("line", { x1: 0, x2: 30, y1: 4, y2: 4, "stroke-width": 2, "stroke-dasharray": DASHES[place] || null });
  line.style.stroke = `var(${modelColour(place)})`;
  svg.append(line);
  return svg;
}
