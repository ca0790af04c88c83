// Put the page together.

/** Nothing is drawn again for another theme: all colours are variables. */
function notify() {}

function showOverview() {
  const { kept, rejected, reasons, cutInWords } = report;
  const total = kept + rejected;
  byId("title").textContent = report.title;
  byId("summary").textContent = `${count(kept)} of ${count(total)} pairs kept (${percent(kept / total)}): ${cutInWords}`;
  const cards = [
    overviewCard("Kept", count(kept), `${percent(kept / total)} of ${count(total)} pairs`),
    overviewCard("Rejected", count(rejected), `${percent(rejected / total)} of all`),
    overviewCard("Cut", number(report.cut), cutInWords),
  ];
  if (calibration) {
    const kinds = Object.entries(heldOutAreas()[0].kinds);
    const [kind, worst] = kinds.reduce((a, b) => (b[1].value < a[1].value ? b : a));
    const doubted = calibration.areasWithoutDoubted;
    const bound = doubted ? `; ${fixed(doubted[0].kinds[kind].value, 3)} without pairs of the corpus that look like noise` : "";
    cards.push(overviewCard("Lowest AUC", fixed(worst.value, 3), `of the probability, on held-out ${kind} noise${bound}`));
  }
  byId("overview").replaceChildren(
    el("div", { class: "cards" }, ...cards),
    el("div", { class: "overview-grid" }, el("div", { class: "card", id: "histogram" }), el("div", { class: "card" }, el("h3", { text: "Why pairs were rejected" }), reasonList(reasons, rejected))),
  );
  showHistogram();
}

function overviewCard(name, value, detail) {
  return el("div", { class: "card" }, el("h3", {}, ...withTerms(name)), el("div", { class: "number" }, el("span", { class: "value", text: value }), el("span", { class: "detail" }, ...withTerms(detail))));
}

function reasonList(reasons, rejected) {
  if (!reasons.length) return el("p", { class: "muted", text: "None was." });
  return el(
    "ul",
    { class: "reasons" },
    ...reasons.map(({ name, count: pairs, words }) => {
      const meter = el("span", { class: "meter", "aria-hidden": "true" }, el("span", {}));
      meter.firstChild.style.width = percent(pairs / rejected).replace(" ", "");
      return el("li", {}, el("span", { class: "name", text: name, title: words }), el("span", { class: "pairs", text: `${count(pairs)} (${percent(pairs / rejected)})` }), meter, el("span", { class: "muted small words", text: words }));
    }),
  );
}

function showSettings() {
  const list = el("dl", {}, ...report.settings.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
  byId("settings").replaceChildren(
    el("details", { class: "card" }, el("summary", { text: "How this was made, and what the words mean" }), list, el("h3", {}, el("br"), "What the words mean"), glossaryList()),
  );
}

function listenToPage() {
  byId("theme-button").addEventListener("click", toggleTheme);
  systemDark.addEventListener("change", applyTheme);
  for (const button of document.querySelectorAll("[data-section]")) {
    button.addEventListener("click", () => {
      byId(button.dataset.section).scrollIntoView();
      byId(button.dataset.section).focus({ preventScroll: true });
    });
  }
}

applyTheme();
showOverview();
makeSamples();
showCalibration();
showSettings();
listenToTerms();
listenToPage();
document.documentElement.dataset.drawn = "1";
