// The list of sentences: find one by its words, or sort by what the model makes of it.

/**
 * How the list can be sorted: by a number of each sentence, which it may lack, falling or rising.
 * @type {Object<string, {name: string, value?: (sentence: number) => number|null, falling?: boolean}>}
 */
const ALL_ORDERS = {
  file: { name: "as in the file" },
  chrfLow: { name: "lowest chrF first", value: (number) => sentences[number].chrfs[state.model] },
  chrfHigh: { name: "highest chrF first", value: (number) => sentences[number].chrfs[state.model], falling: true },
  chrfGap: { name: "models differ most in chrF", value: chrfGap, falling: true },
  lossHigh: { name: "highest loss first", value: (number) => sentences[number].losses[state.model], falling: true },
  lossLow: { name: "lowest loss first", value: (number) => sentences[number].losses[state.model] },
  nullHigh: { name: "highest null rate first", value: (number) => sentences[number].nullRates[state.model], falling: true },
  nullLow: { name: "lowest null rate first", value: (number) => sentences[number].nullRates[state.model] },
  long: { name: "longest first", value: (number) => sentences[number].source.length, falling: true },
  short: { name: "shortest first", value: (number) => sentences[number].source.length },
};

/** Those for which there are numbers. */
const SENTENCE_ORDERS = Object.fromEntries(
  Object.entries(ALL_ORDERS).filter(([name]) => {
    if (name === "chrfGap") return models.length > 1 && hasOutputs;
    if (name.startsWith("chrf")) return hasOutputs;
    return !name.startsWith("loss") || sentences.some(({ losses }) => losses.some((loss) => loss !== null));
  }),
);

/** How far the models' translations of a sentence are apart. */
function chrfGap(number) {
  const known = sentences[number].chrfs.filter((chrf) => chrf !== null);
  return known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
}

const listing = { query: "", order: "file", shown: sentences.map((_, number) => number) };

function makeSentenceList() {
  const search = el("input", {
    type: "search",
    placeholder: `Search ${UNIT}s`,
    "aria-label": `Search ${UNIT}s`,
    input: () => {
      listing.query = search.value;
      fillSentenceList();
    },
  });
  const order = el(
    "select",
    {
      "aria-label": `Order of ${UNIT}s`,
      change: () => {
        listing.order = Object.keys(SENTENCE_ORDERS)[order.selectedIndex];
        fillSentenceList();
      },
    },
    ...Object.values(SENTENCE_ORDERS).map(({ name }) => el("option", { text: name })),
  );
  const list = el("ol", { id: "sentence-list", "aria-label": IS_OF_TEXTS ? "Texts" : "Sentences" });
  const step = (by, text, name) =>
    el("button", { type: "button", class: "action", "aria-label": name, title: name, text, click: () => moveSentence(by) });
  return el(
    "div",
    { class: "card sentences" },
    search,
    order,
    list,
    el(
      "div",
      { class: "row" },
      el("span", { id: "sentence-count", class: "muted small" }),
      el("span", { class: "actions" }, step(-1, "↑", `Previous ${UNIT} (k)`), step(1, "↓", `Next ${UNIT} (j)`)),
    ),
  );
}

function fillSentenceList() {
  const wanted = listing.query.trim().toLowerCase();
  const { value, falling } = SENTENCE_ORDERS[listing.order];
  const compare = value ? comparing(value, falling) : () => 0;
  listing.shown = sentences
    .map((_, number) => number)
    .filter((number) => `${sentences[number].source}\n${sentences[number].target}`.toLowerCase().includes(wanted))
    .sort((a, b) => compare(a, b) || a - b);
  byId("sentence-list").replaceChildren(...listing.shown.map(sentenceEntry));
  const given = report.givenSentences;
  const unit = given === 1 ? UNIT : `${UNIT}s`;
  const all = sentences.length < given ? `${count(sentences.length)} of ${count(given)} ${unit}` : `${count(given)} ${unit}`;
  byId("sentence-count").textContent = wanted ? `${count(listing.shown.length)} found in ${all}` : all;
  markSentence();
}

function sentenceEntry(number) {
  const { index, source } = sentences[number];
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", "data-sentence": number, title: source, click: () => update({ sentence: number }) },
      el("span", { class: "number-label", text: String(index + 1) }),
      el("span", { class: "text" }, el("bdi", { text: source.trim() ? source : "(empty)" }), el("br"), el("span", { class: "about", text: aboutSentence(number) })),
    ),
  );
}

/** The numbers that the list can be sorted by. */
function aboutSentence(number) {
  const { nullRates, chrfs, losses } = sentences[number];
  const [rate, chrf, loss] = [nullRates, chrfs, losses].map((values) => values[state.model]);
  if (rate === null) return "not kept for this model";
  const isByLoss = listing.order.startsWith("loss");
  const parts = [chrf === null ? null : `chrF ${fixed(chrf, 0)}`, `null ${percent(rate, 0)}`, isByLoss && loss !== null ? `loss ${fixed(loss)}` : null];
  return parts.filter(Boolean).join(" · ");
}

function markSentence() {
  const list = byId("sentence-list");
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const current = list.querySelector(`[data-sentence="${state.sentence}"]`);
  if (!current) return;
  current.setAttribute("aria-current", "true");
  // Only the list may scroll, not the page.
  const [top, height] = [current.offsetTop - list.offsetTop, current.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
}

/** The next or previous sentence of the list as it is shown. */
function moveSentence(by) {
  const { shown } = listing;
  if (!shown.length) return;
  const place = shown.indexOf(state.sentence);
  update({ sentence: shown[place < 0 ? 0 : clamp(place + by, shown.length - 1)] });
}
