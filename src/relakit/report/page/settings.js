// How the numbers were made, for those who ask.

function showSettings() {
  byId("settings").replaceChildren(
    el(
      "details",
      { class: "card" },
      el("summary", { text: "How these numbers were made" }),
      ...models.map(modelSettings),
      definitions(),
    ),
  );
}

function modelSettings(model, number) {
  const { settings, kinds, alignment, shuffled, classes, inputs } = model;
  const entries = [
    ["Attention", KINDS.map((kind) => `${kind} ${kinds[kind].attention}`).join(", ")],
    ["Size", KINDS.map((kind) => `${kind} ${kinds[kind].layers} × ${kinds[kind].heads}`).join(", ") + " (layers × heads)"],
    ["Test set", `${count(model.pairs)} pairs, ${count(model.sourceTokens)} source and ${count(model.targetTokens)} target tokens with ends`],
    ["Temperatures", settings.temperatures.join(", ")],
    ["Shuffled targets", shuffled ? `${count(shuffled.pairs)} pairs, seed ${settings.shuffle_seed}, intervals at ${100 * settings.confidence} %` : "none"],
    ["Word classes", classes.origin],
    ["BLEU", model.bleuSignature ?? "not measured"],
    ["Alignment", alignment ? `${count(alignment.pairs)} pairs with gold links; weight on the end of the sentence: ${alignment.end}` : "no gold links were given"],
    ...Object.entries(inputs).map(([name, value]) => [capitalised(name), String(value)]),
  ];
  const list = el("dl", {}, ...entries.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
  return el("div", {}, el("h3", {}, el("br"), modelDot(number), model.name), list);
}

function capitalised(name) {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function definitions() {
  const entries = [
    ["Sparsity rate", "Share of weights that are exactly 0, among the keys that the query may see."],
    ["Null rate", "Share of queries whose weights are all 0. Of the mean of heads: those that are null in every head of the layer."],
    ["Shuffled targets", "The same targets, each with the source of another pair. Where the interval of the difference includes 0, the data show no difference."],
    ["Head diversity", "Entropy of the heads' mean distribution minus the mean of their entropies. Weights that do not sum to 1 go through a softmax of weight^τ first; a null row is a distribution of its own."],
    ["AER", "1 − (|A∩S| + |A∩P|) / (|A| + |S|), with found links A, sure S and possible P. A target word links to the source word that it attends to most; it has no link if all its weights are 0."],
    ["Normal and shifted", "Attention of a target word is read in the step that predicts it (normal), or in the next, of which it is the input (shifted)."],
    ["Words and tokens", "Between words, weights are summed over a source word's tokens and averaged over a target word's."],
    ["Weights on this page", "Kept in 255 steps of each head's largest weight. An empty cell is a weight of exactly 0: smaller weights than a step count as one. Links are found from the exact weights."],
  ];
  const list = el("dl", {}, ...entries.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
  return el("div", {}, el("h3", {}, el("br"), "What the words mean"), list);
}
