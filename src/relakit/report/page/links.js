// Cross-attention as lines between the words of the two sentences, with the gold links behind.

const WORD_SIZE = 13;
const WORD_GAP = 12;
const LINKS_HEIGHT = 150;
const LINE_HEIGHT = 22; // of words below each other
const NARROWEST = 90; // between words below each other
const WIDEST = 300;
const FAINTEST = 0.02; // share of the strongest colour; fainter lines could not be seen
const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/**
 * Where the words stand, and how a line goes from one to another.
 * @typedef {Object} Layout
 * @property {number} width
 * @property {number} height
 * @property {(side: "source"|"target", number: number) => Object<string, any>} word place of a word
 * @property {(source: number, target: number) => string} curve
 */

/**
 * @param {View} view
 * @param {Picture} picture between words, with shades: rows are target words and a special token
 * @param {{title?: string, room: number, layer: number, head: number, reading: string}} options what the
 *   picture is of, and how wide it may be
 * @returns {SVGSVGElement}
 */
function drawLinks(view, picture, { title, room, layer, head, reading }) {
  const firstRow = reading === "shifted" ? 1 : 0; // the row of the begin token is no word
  const top = title ? 30 : 0;
  const flat = wordsBesideEachOther(view, top);
  const layout = flat.width <= room ? flat : wordsBelowEachOther(view, top, room);
  const width = Math.ceil(Math.max(layout.width, title ? textWidth(title, 14) * 1.1 + 16 : 0));
  const { height } = layout;
  const svg = svgEl("svg", {
    xmlns: SVG,
    class: "links",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": title ?? "Links between source words, first, and target words",
    "font-family": FONT,
    "font-size": WORD_SIZE,
  });
  svg.append(svgEl("rect", { width, height, fill: colour("surface") }));
  if (title) svg.append(svgEl("text", { x: 8, y: 20, "font-weight": 600, fill: colour("ink"), text: title }));
  svg.append(goldLines(view.gold, layout.curve), attentionLines(view, picture, firstRow, wordLinks(view, layer, head, reading), layout.curve));
  view.sourceWords.forEach((word, number) => svg.append(linkWord(word, "source", number, layout)));
  view.targetWords.forEach((word, number) => svg.append(linkWord(word, "target", number, layout, picture.nullRows[firstRow + number])));
  if (!title) followWords(svg);
  return svg;
}

/** The source above the target, each in one line: the best to read, if there is room. @returns {Layout} */
function wordsBesideEachOther(view, start) {
  const lines = { source: wordPlaces(view.sourceWords), target: wordPlaces(view.targetWords) };
  const [top, bottom] = [start + 30, start + LINKS_HEIGHT - 30];
  const width = Math.ceil(Math.max(lines.source.width, lines.target.width)) + 16;
  const x = (side, number) => 8 + lines[side].middles[number];
  return {
    width,
    height: start + LINKS_HEIGHT,
    word: (side, number) => ({ x: x(side, number), y: side === "source" ? top - 10 : bottom + 20, "text-anchor": "middle" }),
    curve: (source, target) => {
      const [from, to] = [x("source", source).toFixed(1), x("target", target).toFixed(1)];
      return `M${from} ${top}C${from} ${top + 45} ${to} ${bottom - 45} ${to} ${bottom}`;
    },
  };
}

/** The source on the left, the target on the right: no sentence is too long. @returns {Layout} */
function wordsBelowEachOther(view, start, room) {
  const widest = (words) => Math.ceil(Math.max(0, ...words.map((word) => textWidth(shortened(word), WORD_SIZE))));
  const [before, after] = [widest(view.sourceWords), widest(view.targetWords)];
  const between = Math.max(NARROWEST, Math.min(WIDEST, room - before - after - 32));
  const [left, right] = [before + 8, before + 24 + between];
  const tall = Math.max(view.sourceWords.length, view.targetWords.length) * LINE_HEIGHT;
  const y = (words, number) => start + 4 + ((number + 0.5) * tall) / words.length;
  return {
    width: right + after + 8,
    height: start + tall + 8,
    word: (side, number) =>
      side === "source"
        ? { x: left, y: y(view.sourceWords, number) + WORD_SIZE * 0.35, "text-anchor": "end" }
        : { x: right, y: y(view.targetWords, number) + WORD_SIZE * 0.35, "text-anchor": "start" },
    curve: (source, target) => {
      const [from, to] = [y(view.sourceWords, source).toFixed(1), y(view.targetWords, target).toFixed(1)];
      const bend = between * 0.4;
      return `M${left + 6} ${from}C${left + 6 + bend} ${from} ${right - 6 - bend} ${to} ${right - 6} ${to}`;
    },
  };
}

/** Middles of words beside each other, in the direction of the writing. */
function wordPlaces(words) {
  let x = 0;
  const middles = words.map((word) => {
    const width = textWidth(shortened(word), WORD_SIZE);
    x += width + WORD_GAP;
    return x - WORD_GAP - width / 2;
  });
  const width = Math.max(0, x - WORD_GAP);
  return { width, middles: RIGHT_TO_LEFT.test(words.join(" ")) ? middles.map((middle) => width - middle) : middles };
}

function linkWord(word, side, number, layout, isNull = false) {
  return svgEl("text", {
    class: `word ${side}`,
    ...layout.word(side, number),
    fill: colour(isNull ? "null" : "ink"),
    "data-side": side,
    "data-word": number,
    "data-text": word,
    text: shortened(word),
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
function attentionLines(view, { shades, columns }, firstRow, links, curve) {
  const group = svgEl("g", { class: "weights", fill: "none", stroke: colour("accent") });
  const width = columns.length;
  view.targetWords.forEach((_, target) => {
    const row = Array.from(shades.subarray((firstRow + target) * width, (firstRow + target) * width + view.sourceWords.length));
    row.forEach((shade, source) => {
      const isLink = source === links[target];
      if (!isLink && shade < FAINTEST) return;
      group.append(svgEl("path", {
        d: curve(source, target),
        "stroke-width": isLink ? 2.2 : 1.2,
        "stroke-opacity": Math.max(isLink ? 0.15 : 0.05, shade).toFixed(3),
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
