// The shown sentence as text: source, reference, tags, and what the models wrote, against the reference.

/** @param {number[]} shown models @param {Array<View|null>} references their views of the reference */
function showSentenceText(shown, references) {
  const { index, source, target } = sentences[state.sentence];
  const entries = [[`Source ${count(index + 1)}`, [source]], ["Reference", [target]]];
  const tagged = references.find((view) => view?.tags);
  if (tagged) entries.push(["Tags", [tagged.targetWords.map((word, number) => `${word}/${tagged.tags[number]}`).join(" ")]]);
  references.forEach((view, number) => {
    if (view && view.output !== null) entries.push(outputEntry(shown[number], view, target));
  });
  byId("sentence-text").replaceChildren(
    ...entries.flatMap(([name, parts]) => [el("dt", {}, ...[name].flat()), el("dd", { dir: "auto" }, ...parts)]),
    ...(references.some((view) => view?.difference) ? differenceLegend() : []),
  );
}

function outputEntry(model, view, target) {
  const name = [modelDot(model), `${models[model].name} writes`];
  const chrf = sentences[state.sentence].chrfs[model];
  const score = chrf === null ? [] : ["\u2002", el("span", { class: "score" }, term("chrf", "chrF"), ` ${fixed(chrf, 0)}`)];
  if (view.output === target) return [name, [view.output, el("span", { class: "score", text: "\u2002✓ the reference" })]];
  const text = view.difference ? view.difference.map(differencePiece) : [view.output];
  const empty = view.output.trim() ? [] : [el("span", { class: "muted", text: "nothing " })];
  return [name, [...empty, ...text, ...score]];
}

function differencePiece([status, text]) {
  if (status === "same") return text;
  return status === "added"
    ? el("ins", { text, title: "Not in the reference" })
    : el("del", { text, title: "In the reference, but not written" });
}

function differenceLegend() {
  const legend = [el("ins", { text: "not in the reference" }), " ", el("del", { text: "in the reference, but not written" })];
  return [el("dt", { class: "unseen", text: "Marks" }), el("dd", { class: "difference-legend" }, ...legend)];
}
