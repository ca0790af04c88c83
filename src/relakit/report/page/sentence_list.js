// The list of sentences: find one by its words, or sort by how much of it is null.

const SENTENCE_ORDERS = {
  file: "as in the file",
  high: "highest null rate first",
  low: "lowest null rate first",
  long: "longest first",
};

const listing = { query: "", order: "file", shown: sentences.map((_, number) => number) };

function makeSentenceList() {
  const search = el("input", {
    type: "search",
    placeholder: "Search sentences",
    "aria-label": "Search sentences",
    input: () => {
      listing.query = search.value;
      fillSentenceList();
    },
  });
  const order = el(
    "select",
    {
      "aria-label": "Order of sentences",
      change: () => {
        listing.order = Object.keys(SENTENCE_ORDERS)[order.selectedIndex];
        fillSentenceList();
      },
    },
    ...Object.values(SENTENCE_ORDERS).map((text) => el("option", { text })),
  );
  const list = el("ol", { id: "sentence-list", "aria-label": "Sentences" });
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
      el("span", { class: "actions" }, step(-1, "↑", "Previous sentence (k)"), step(1, "↓", "Next sentence (j)")),
    ),
  );
}

function fillSentenceList() {
  const wanted = listing.query.trim().toLowerCase();
  const rate = (number) => sentences[number].nullRates[state.model] ?? -1;
  const length = (number) => sentences[number].source.length;
  const orders = { file: () => 0, high: (a, b) => rate(b) - rate(a), low: (a, b) => rate(a) - rate(b), long: (a, b) => length(b) - length(a) };
  listing.shown = sentences
    .map((_, number) => number)
    .filter((number) => `${sentences[number].source}\n${sentences[number].target}`.toLowerCase().includes(wanted))
    .sort((a, b) => orders[listing.order](a, b) || a - b);
  byId("sentence-list").replaceChildren(...listing.shown.map(sentenceEntry));
  const given = report.givenSentences;
  const unit = given === 1 ? "sentence" : "sentences";
  const all = sentences.length < given ? `${count(sentences.length)} of ${count(given)} ${unit}` : `${count(given)} ${unit}`;
  byId("sentence-count").textContent = wanted ? `${count(listing.shown.length)} found in ${all}` : all;
  markSentence();
}

function sentenceEntry(number) {
  const { index, source, nullRates } = sentences[number];
  const rate = nullRates[state.model];
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", "data-sentence": number, title: source, click: () => update({ sentence: number }) },
      el("span", { class: "number-label", text: String(index + 1) }),
      el(
        "span",
        { class: "text" },
        source,
        el("br"),
        el("span", { class: "about", text: rate === null ? "not kept for this model" : `null ${percent(rate, 0)}` }),
      ),
    ),
  );
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
