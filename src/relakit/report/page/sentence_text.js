// The shown sentence as text: source, reference, tags, and what the models wrote, against the reference.

/** @param {number[]} shown models @param {Array<View|null>} references their views of the reference */
function showSentenceText(shown, references) {
  const { index, source, target } = sentences[state.sentence];
  const entries = IS_OF_TEXTS
    ? [[`Text ${count(index + 1)}`, textOrNothing(source)]]
    : [[`Source ${count(index + 1)}`, textOrNothing(source)], ["Reference", textOrNothing(target)]];
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

function textOrNothing(text) {
  return text.trim() ? [text] : [el("span", { class: "muted", text: "nothing" })];
}

function outputEntry(model, view, target) {
  const name = [modelDot(model), `${models[model].name} writes`];
  const chrf = sentences[state.sentence].chrfs[model];
  const score = chrf === null ? [] : ["\u2002", el("span", { class: "score", dir: "ltr" }, term("chrf", "chrF"), ` ${fixed(chrf, 0)}`)];
  if (view.output === target) {
    return [name, [...textOrNothing(target), "\u2002", el("span", { class: "score", dir: "ltr", text: "✓ the reference" })]];
  }
  const empty = view.output.trim() ? [] : textOrNothing(view.output);
  return [name, [...empty, ...(view.difference ?? [["same", view.output]]).map(differencePiece), ...score]];
}

function differencePiece([status, text]) {
  if (status === "same") return text;
  return status === "added"
    ? el("ins", { text, title: "Not in the reference" })
    : el("del", { text, title: "In the reference, but not written", dir: "auto" }); // no say in the output's direction
}

function differenceLegend() {
  const legend = [el("ins", { text: "not in the reference" }), " ", el("del", { text: "in the reference, but not written" })];
  return [el("dt", { class: "unseen", text: "Marks" }), el("dd", { class: "difference-legend" }, ...legend)];
}
