// Pairs from both ends of the ranking and from around the cut, to judge by reading whether the cut is right.

const listing = { query: "", group: "all" };
const MARKS = {
  unsupported: "unsupported: nothing in the source supports this word",
  uncovered: "uncovered: nothing in the target covers this word",
  worst: "the word that the model expected least",
};

function makeSamples() {
  const search = el("input", {
    type: "search",
    placeholder: "Search pairs and reasons",
    "aria-label": "Search pairs and reasons",
    input: () => {
      listing.query = search.value;
      fillSamples();
    },
  });
  byId("samples").replaceChildren(
    el("h2", { text: "Pairs" }),
    el("p", { class: "lead" }, ...withTerms(samplesInWords())),
    el("div", { class: "card" }, el("div", { class: "toolbar" }, el("div", { class: "field" }, el("span", { class: "name", text: "Search" }), search), el("div", { id: "groups" }), el("span", { id: "sample-count", class: "muted small", role: "status" })), marksLegend(), el("div", { id: "sample-table", class: "scroll samples" })),
  );
  fillSamples();
}

function samplesInWords() {
  return `From both ends of the ranking, drawn at random, and those nearest to the cut on either side. Click on a pair's arrow for all its scores, on the head of a column to sort. Marked words are unsupported or uncovered, or were expected least.`;
}

function marksLegend() {
  const entries = [
    ["unsupported", "unsupported target word"],
    ["uncovered", "uncovered source word"],
    ["worst", "expected least"],
  ];
  return el("div", { class: "legend marks" }, ...entries.map(([kind, text]) => el("mark", { class: kind, title: MARKS[kind], text })));
}

function fillSamples() {
  const groups = ["all", ...report.groups].map((value) => ({ value, text: value }));
  const choose = (value) => {
    listing.group = value;
    fillSamples();
  };
  byId("groups").replaceChildren(segmented("Which", groups, listing.group, choose));
  const wanted = listing.query.trim().toLowerCase();
  const shown = report.samples.filter(
    ({ group, source, target, reason, line }) =>
      (listing.group === "all" || group === listing.group) && `${line}\n${source}\n${target}\n${reason}`.toLowerCase().includes(wanted),
  );
  byId("sample-count").textContent = `${count(shown.length)} of ${count(report.samples.length)} pairs`;
  byId("sample-table").replaceChildren(sortableTable("samples", sampleColumns(), shown, { detail: sampleDetail }));
}

function sampleColumns() {
  return [
    { name: "line", value: ({ line }) => line, text: count },
    { name: report.by, value: ({ value }) => value, text: number },
    { name: "verdict", words: true, value: (sample) => `${sample.kept ? "kept" : "rejected"}: ${sample.group}`, cell: verdict },
    { name: "source", words: true, value: ({ source }) => source, cell: ({ sourceParts, uncovered }) => markedText(sourceParts, { uncovered }) },
    { name: "target", words: true, value: ({ target }) => target, cell: ({ targetParts, unsupported, worst }) => markedText(targetParts, { unsupported, worst: worst === null ? [] : [worst] }) },
  ];
}

function verdict({ kept, group, reason }) {
  return el("div", {}, el("span", { class: kept ? "verdict kept" : "verdict rejected", text: kept ? "✓ kept" : "✕ rejected" }), el("span", { class: "muted small", text: ` ${group}` }), reason ? el("div", { class: "small", text: reason }) : null);
}

/** Words and what is between them, in turn, some words marked; all of it becomes text nodes. */
function markedText(parts, marks) {
  let word = -1;
  const nodes = parts.map((part, place) => {
    if (!part || place % 2) return part;
    word += 1;
    const kind = Object.keys(marks).find((name) => marks[name].includes(word));
    return kind ? el("mark", { class: kind, title: MARKS[kind] }, part, el("span", { class: "unseen", text: ` (${kind === "worst" ? "expected least" : kind})` })) : part;
  });
  return el("bdi", {}, ...nodes);
}

function sampleDetail({ scores, shares, source, target }) {
  const entries = Object.entries(scores).map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: number(value) })));
  const likely = Object.entries(shares).map(([name, share]) => el("div", {}, el("dt", { text: name }), el("dd", { text: percent(share) })));
  return el(
    "div",
    { class: "detail-parts" },
    likely.length ? el("div", {}, el("h4", { text: "How likely it is" }), el("dl", {}, ...likely)) : null,
    el("div", {}, el("h4", { text: "Scores" }), el("dl", {}, ...entries)),
    el("p", { class: "small muted", text: `${count(source.length)} and ${count(target.length)} characters are shown` }),
  );
}
