// One model's pictures of the shown sentence: heat map, all heads, links.

const SMALLEST_CELL = 13;
const LARGEST_CELL = 26;

/** The heat maps that are on the page, for the keyboard. @type {Array<{picture: Picture, svg: SVGSVGElement}>} */
const shownHeatMaps = [];

/**
 * What is shown of a model, which may have fewer layers or heads than the one it is beside: the
 * nearest there is. Beside the mean of heads stands the mean of heads.
 */
function shownHead(model) {
  const { layers, heads } = models[model].kinds[state.kind];
  const head = isMean(state.kind, state.model, state.head) ? heads : clamp(state.head, heads - 1);
  return { ...state, layer: clamp(state.layer, layers - 1), head };
}

/** Show a head, or the mean, that was chosen in a model's pane; the chosen model may lack it. */
function chooseHead(model, head) {
  const { heads } = models[state.model].kinds[state.kind];
  if (isMean(state.kind, model, head)) update({ head: heads });
  else if (head < heads) update({ head });
  else update({ model, other: state.model, head });
}

/**
 * The models' pictures beside each other; those of a kind share their colours.
 * @param {number[]} shown models
 * @param {Array<View|null>} loaded what there is of each
 * @returns {HTMLElement[]}
 */
function drawPanes(shown, loaded, width) {
  const pictures = loaded.map((view, number) => view && panePictures(shown[number], view));
  for (const part of ["main", "words"]) shade(pictures.map((ofPane) => ofPane?.[part]).filter(Boolean));
  shade(pictures.filter(Boolean).flatMap(({ tiles }) => [...tiles.values()]));
  return shown.map((model, number) => drawPane(model, loaded[number], pictures[number], width));
}

/** What is drawn of a view: the heat map's picture, that of the links if there are any, and those of all heads. */
function panePictures(model, view) {
  const chosen = shownHead(model);
  const words = chosen.kind === "cross" ? pictureOf(view, { ...chosen, units: "words" }) : null;
  return { main: pictureOf(view, chosen), words, tiles: tilePictures(model, view) };
}

/** @param {View|null} view @returns {HTMLElement} */
function drawPane(model, view, pictures, width) {
  const shown = shownHead(model);
  const pane = el("div", { class: "card pane", "data-model": model });
  const head = `layer ${shown.layer + 1}, ${headName(shown.kind, model, shown.head)}`;
  const own = state.text === "own" ? ", own translation" : "";
  const title = el("h3", {}, modelDot(model), `${models[model].name} `, el("span", { class: "muted", text: `· ${head}${own}` }));
  if (!view) {
    const what = state.text === "own" ? "Attention to this model's own translation of this sentence was not kept." : `This ${UNIT} was not kept for this model.`;
    pane.append(el("div", { class: "pane-head" }, title), el("p", { class: "muted", text: what }));
    return pane;
  }
  const numbers = headNumbers(model, shown.kind, shown.layer, shown.head, shown.reading);
  pane.append(
    el("div", { class: "pane-head" }, title, el("span", { class: "measures" }, ...withTerms(measures(pictures.main, numbers)))),
    heatMapPart(model, pictures.main, width),
    el("div", {}, el("div", { class: "part-head" }, el("h3", { text: "All heads of the layer" })), headTiles(model, pictures.tiles)),
  );
  if (shown.kind === "cross") pane.append(linksPart(model, view, shown, pictures.words, width));
  return pane;
}

/** This sentence's zeros, then what the whole test set says about the head. */
function measures(picture, numbers) {
  const nulls = picture.nullRows.filter(Boolean).length;
  const here = `here: ${percent(shareOfZeros(picture), 0)} zeros, ${nulls} of ${picture.rows.length} rows null`;
  const overall = [`null ${percent(numbers.null)}`];
  if (numbers.sparsity !== null) overall.push(`zeros ${percent(numbers.sparsity)}`);
  if (numbers.aer !== null) overall.push(`AER ${fixed(numbers.aer)}`);
  return `${here} · ${state.text === "own" ? "all references" : "overall"}: ${overall.join(", ")}`;
}

function pictureTitle(model) {
  const shown = shownHead(model);
  const reading = shown.kind === "cross" ? `, ${shown.reading}` : "";
  const head = headName(shown.kind, model, shown.head);
  const own = state.text === "own" ? ", own translation" : "";
  return `${models[model].name}: ${KIND_PHRASES[shown.kind]}, layer ${shown.layer + 1}, ${head}${reading}${own}`;
}

function pictureName(model, part) {
  const shown = shownHead(model);
  const head = headName(shown.kind, model, shown.head);
  const sentence = sentences[shown.sentence].index + 1;
  const own = state.text === "own" ? ["own"] : [];
  return fileName(models[model].name, UNIT, sentence, ...own, shown.kind, "layer", shown.layer + 1, head, part);
}

/** @param {() => SVGSVGElement} draw makes the picture anew, with a title */
function saveButtons(part, model, draw) {
  const button = (text, save) =>
    el("button", { type: "button", class: "action", "data-save": `${part}-${text}`, text: `Save ${text}`, click: () => save(draw(), pictureName(model, part)) });
  return el("span", { class: "actions" }, button("SVG", saveSvg), button("PNG", savePng));
}

function heatMapPart(model, picture, width) {
  const places = heatMapPlaces(picture, 0);
  const room = width - places.left - 24;
  const cell = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor(room / picture.columns.length)));
  const label = pictureTitle(model);
  const svg = drawHeatMap(picture, { cell, label });
  const holder = el("div", { class: "picture", tabindex: 0, role: "group", "aria-label": "Heat map; Shift and arrows move from cell to cell" }, svg);
  // The labels stay in sight while the matrix moves under them.
  holder.addEventListener("scroll", () => {
    svg.querySelector(".row-labels").setAttribute("transform", `translate(${holder.scrollLeft} 0)`);
    svg.querySelector(".column-labels").setAttribute("transform", `translate(0 ${holder.scrollTop})`);
  });
  const shown = { picture, svg, at: null };
  shownHeatMaps.push(shown);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    lookAt(shown, cellAt(picture, svg, event.clientX - box.left, event.clientY - box.top), event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => lookAt(shown, null));
  const names = state.kind === "cross" ? "rows: target, columns: source" : "rows: queries, columns: keys";
  const about = el("span", { class: "muted small" }, ...withTerms(names));
  const save = saveButtons("heat-map", model, () => drawHeatMap(picture, { cell, label, titled: true }));
  return el("div", {}, el("div", { class: "part-head" }, about, save), holder);
}

/** Tell the weight of a cell, beside it and to screen readers. */
function lookAt(shown, at, x, y) {
  shown.at = at;
  markCell(shown.picture, shown.svg, at);
  const tooltip = byId("tooltip");
  tooltip.hidden = !at;
  if (!at) return;
  const { rows, columns, rowTags, columnTags, weights, nullRows } = shown.picture;
  const weight = weights[at.row * columns.length + at.column];
  const tagged = (label, tag) => (tag ? `${label} (${tag})` : label);
  const words = `${tagged(rows[at.row], rowTags[at.row])} → ${tagged(columns[at.column], columnTags[at.column])}`;
  const share = rowShares(shown.picture)[at.row * columns.length + at.column];
  const note = nullRows[at.row]
    ? "attends to nothing"
    : `${percent(Math.abs(weight) / shown.picture.max, 0)} of the largest, ${percent(Math.abs(share), 0)} of its row`;
  tooltip.replaceChildren(el("strong", { text: weightText(weight) }), el("br"), words, el("br"), el("span", { class: "small", text: note }));
  tooltip.dataset.weight = weight;
  const left = Math.min(x + 16, innerWidth - tooltip.offsetWidth - 8);
  const above = y + 20 + tooltip.offsetHeight > innerHeight;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${above ? y - tooltip.offsetHeight - 12 : y + 18}px`;
}

/** Move the marked cell of the first heat map, for those without a mouse. */
function moveCell(rows, columns) {
  const [shown] = shownHeatMaps;
  if (!shown) return;
  const { picture, svg, at } = shown;
  const next = at
    ? { row: clamp(at.row + rows, picture.rows.length - 1), column: clamp(at.column + columns, picture.columns.length - 1) }
    : { row: 0, column: 0 };
  markCell(picture, svg, next);
  svg.querySelector(".cursor :last-child").scrollIntoView({ block: "nearest", inline: "nearest" });
  const box = svg.getBoundingClientRect();
  const { cell, left, top } = svg.dataset;
  lookAt(shown, next, box.left + Number(left) + (next.column + 1) * cell, box.top + Number(top) + (next.row + 1) * cell);
  byId("readout").textContent = byId("tooltip").textContent;
}

function linksPart(model, view, shown, picture, width) {
  const draw = (title) => drawLinks(view, picture, { ...shown, title, room: width });
  const save = saveButtons("links", model, () => draw(pictureTitle(model)));
  // Of the references alone: their words are those of the files.
  if (state.text === "reference") save.append(pharaohButton(model));
  return el(
    "div",
    {},
    el("div", { class: "part-head" }, el("h3", { text: "Links" }), save),
    el("div", { class: "picture", tabindex: 0, role: "group", "aria-label": "Links between words" }, draw()),
    linksLegend(view.gold !== null),
  );
}
