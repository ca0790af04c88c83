// What ranks planted noise best, and what the probability is made of.

function areaTable() {
  const columns = [
    { name: "ranked by", words: true, value: ({ name }) => name },
    ...calibration.kinds.flatMap(({ name }) => [
      { name, value: ({ kinds }) => kinds[name].value, text: (value) => fixed(value, 3), term: "area", heat: true, mark: (row) => row.kinds[name].value === bestArea(name) },
    ]),
    ...calibration.kinds.flatMap(({ name }) => [
      { name: `${name}, P at 90 %`, value: ({ kinds }) => kinds[name].precision, text: (value) => fixed(value, 3), term: "precision" },
    ]),
  ];
  const caption = "AUC of each number against each kind of planted noise that was held out, and its precision at a recall of 90 %. The best AUC of a kind is bold.";
  return sortableTable("areas", columns, heldOutAreas(), { caption });
}

function bestArea(kind) {
  return Math.max(...heldOutAreas().map(({ kinds }) => kinds[kind].value));
}

function weightTable() {
  const columns = [
    { name: "feature", words: true, value: ({ name }) => name },
    { name: "unusually high", words: true, value: ({ above }) => above || null, text: (text) => text ?? "" },
    ...calibration.kinds.map(({ name }, place) => ({
      name,
      value: ({ weights }) => weights[place],
      text: (value) => signed(value, 2),
      term: "weight",
      tint: true,
    })),
    { name: "strongest", value: ({ weights }) => Math.max(...weights.map(Math.abs)), text: (value) => fixed(value) },
  ];
  const caption = "Weight of each feature in the log-odds of each kind of noise against a clean pair, for one standard deviation. Positive: it speaks for that noise.";
  return sortableTable("weights", columns, calibration.features, { caption });
}

function showCalibration() {
  const section = byId("calibration");
  if (!calibration) {
    section.remove();
    document.querySelector('[data-section="calibration"]').remove();
    return;
  }
  section.replaceChildren(
    el("h2", { text: "Calibration" }),
    el("p", { class: "lead" }, ...withTerms(calibrationInWords())),
    doubtedChoice() ?? "",
    el(
      "div",
      { class: "chart-grid" },
      el(
        "div",
        { class: "card" },
        el("h3", {}, ...withTerms("Precision and recall on planted noise that was held out")),
        el("p", { class: "muted small", text: "Point at the picture, or move the slider, to read the curves at another recall." }),
        curvePicture(),
      ),
      el(
        "div",
        { class: "card" },
        el("h3", { text: "By kind of noise" }),
        el("div", { class: "legend" }, el("span", {}, swatch(KEPT), "clean pairs"), el("span", {}, swatch(REJECTED), "the noise"), el("span", { text: "across: probability of being clean; up: share of pairs (root scale)" })),
        kindHistograms(),
      ),
      el("div", { class: "card wide" }, el("div", { class: "scroll" }, areaTable())),
      el("div", { class: "card wide" }, el("div", { class: "scroll" }, weightTable())),
    ),
  );
}

/** Which held-out pairs the numbers are of, where it is not known which of them are clean. */
function doubtedChoice() {
  if (!calibration.areasWithoutDoubted) return null;
  const options = [
    { value: "all", text: "all of the sample", title: "rather too bad" },
    { value: "undoubted", text: "without those that look like noise", title: "too good" },
  ];
  const choose = (value) => {
    heldOut.pairs = value;
    showCalibration();
  };
  return el("div", { class: "toolbar doubted" }, segmented("Held-out pairs that count as clean", options, heldOut.pairs, choose, "heldOut"));
}

function calibrationInWords() {
  const { isOfCorpus, clean, dropped, noise, heldOut: held } = calibration;
  const fit = `A logistic model for each kind of planted noise, fitted on ${count(clean)} pairs and ${count(noise)} that were spoilt on purpose; what a rejected pair looks like is told by others, of each kind against the other kinds.`;
  if (!isOfCorpus) return `${fit} The clean pairs were given. All numbers below are of ${count(held.clean.length)} other clean pairs and their noise, held out.`;
  const sample = clean + dropped;
  return (
    `${fit} The pairs are a sample of the corpus itself; ${count(dropped)} of ${count(sample)} looked like noise and were left out of the fit. ` +
    "The held-out pairs are such a sample, too. With all of them the numbers below are too low, most of all those of the probability, as noise of the corpus that it finds counts as a mistake; without those that look like noise to it, they are too high. Pairs that are known to be clean (--clean) give exact ones."
  );
}
