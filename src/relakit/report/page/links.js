// Cross-attention as lines between the words of the two sentences, with the gold links behind.

const WORD_SIZE = 13;
const WORD_GAP = 12;
const LINKS_HEIGHT = 150;
const FAINTEST = 0.02; // share of the largest weight; fainter lines could not be seen

/**
 * @param {View} view
 * @param {Picture} picture between words: rows are target words and a special token
 * @param {{title?: string, layer: number, head: number, reading: string}} options what the picture is of
 * @returns {SVGSVGElement}
 */
function drawLinks(view, picture, { title, layer, head, reading }) {
  const firstRow = reading === "shifted" ? 1 : 0; // the row of the begin token is no word
  const titleHeight = title ? 30 : 0;
  const source = wordPlaces(view.sourceWords);
  const target = wordPlaces(view.targetWords);
  const width = Math.ceil(Math.max(source.width, target.width, title ? textWidth(title, 14) * 1.1 : 0)) + 16;
  const height = titleHeight + LINKS_HEIGHT;
  const [top, bottom] = [titleHeight + 30, titleHeight + LINKS_HEIGHT - 30];
  const svg = svgEl("svg", {
    xmlns: SVG,
    class: "links",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": title ?? "Links between source words, above, and target words, below",
    "font-family": FONT,
    "font-size": WORD_SIZE,
  });
  const curve = (from, to) => {
    const [x, y] = [8 + source.middles[from], 8 + target.middles[to]];
    return `M${x.toFixed(1)} ${top}C${x.toFixed(1)} ${top + 45} ${y.toFixed(1)} ${bottom - 45} ${y.toFixed(1)} ${bottom}`;
  };
  svg.append(svgEl("rect", { width, height, fill: colour("surface") }));
  if (title) svg.append(svgEl("text", { x: 8, y: 20, "font-weight": 600, fill: colour("ink"), text: title }));
  svg.append(goldLines(view.gold, curve), attentionLines(view, picture, firstRow, wordLinks(view, layer, head, reading), curve));
  view.sourceWords.forEach((word, number) => svg.append(linkWord(word, 8 + source.middles[number], top - 10, "source", number)));
  view.targetWords.forEach((word, number) => {
    const isNull = picture.nullRows[firstRow + number];
    svg.append(linkWord(word, 8 + target.middles[number], bottom + 20, "target", number, isNull));
  });
  if (!title) followWords(svg);
  return svg;
}

function wordPlaces(words) {
  let x = 0;
  const middles = words.map((word) => {
    const width = textWidth(word, WORD_SIZE);
    x += width + WORD_GAP;
    return x - WORD_GAP - width / 2;
  });
  return { middles, width: x };
}

function linkWord(word, x, y, side, number, isNull = false) {
  return svgEl("text", {
    class: `word ${side}`,
    x,
    y,
    "text-anchor": "middle",
    fill: colour(isNull ? "null" : "ink"),
    "data-side": side,
    "data-word": number,
    text: word,
  });
}

function goldLines(gold, curve) {
  const group = svgEl("g", { class: "gold", fill: "none", stroke: colour("gold") });
  for (const [from, to] of gold?.possible ?? []) {
    const line = { "stroke-width": 5, "stroke-opacity": 0.45, "stroke-dasharray": "3 5" };
    group.append(svgEl("path", { d: curve(from, to), ...line, "data-source": from, "data-target": to }));
  }
  for (const [from, to] of gold?.sure ?? []) {
    const line = { "stroke-width": 6, "stroke-opacity": 0.3 };
    group.append(svgEl("path", { d: curve(from, to), ...line, "data-source": from, "data-target": to }));
  }
  return group;
}

/** @returns {Int16Array} the source word of each target word's link, or -1 */
function wordLinks(view, layer, head, reading) {
  const [layers, heads] = view.kinds.cross.shape;
  const words = view.targetWords.length;
  const place = (READINGS.indexOf(reading) * layers + layer) * (heads + 1) + head;
  return view.links.subarray(place * words, (place + 1) * words);
}

/** A line for each weight between words; that of a target word's link is thick. */
function attentionLines(view, { weights, columns, max }, firstRow, links, curve) {
  const group = svgEl("g", { class: "weights", fill: "none", stroke: colour("accent") });
  const width = columns.length;
  view.targetWords.forEach((_, target) => {
    const row = Array.from(weights.subarray((firstRow + target) * width, (firstRow + target) * width + view.sourceWords.length));
    row.forEach((weight, source) => {
      const isLink = source === links[target];
      if (!isLink && (weight <= 0 || weight < FAINTEST * max)) return;
      group.append(svgEl("path", {
        d: curve(source, target),
        "stroke-width": isLink ? 2.2 : 1.2,
        "stroke-opacity": Math.max(0.05, weight / max).toFixed(3),
        "data-source": source,
        "data-target": target,
        "data-best": isLink,
      }));
    });
  });
  return group;
}

/** Over a word, only its own lines stay. */
function followWords(svg) {
  const show = (side, word) => {
    for (const line of svg.querySelectorAll("path")) {
      line.setAttribute("visibility", side === null || line.dataset[side] === word ? "visible" : "hidden");
    }
  };
  svg.addEventListener("pointerover", ({ target }) => {
    if (target.dataset.side) show(target.dataset.side, target.dataset.word);
  });
  svg.addEventListener("pointerout", ({ target }) => {
    if (target.dataset.side) show(null, null);
  });
}

function linksLegend(hasGold) {
  const entries = ["— line: weight (the stronger, the darker); thick: the word's link"];
  if (hasGold) entries.push("green band: gold link, sure; dotted: possible");
  return el("div", { class: "links-legend" }, ...entries.map((text) => el("span", { text })));
}
