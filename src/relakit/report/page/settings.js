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
  const entries = [
    ...(IS_OF_TEXTS ? textSettings(model) : pairSettings(model)),
    ...Object.entries(model.inputs).map(([name, value]) => [capitalised(name), String(value)]),
  ];
  const list = el("dl", {}, ...entries.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
  return el("div", {}, el("h3", {}, el("br"), modelDot(number), model.name), list);
}

function textSettings({ settings, kinds, pairs, sourceTokens }) {
  const { attention, layers, heads, causal } = kinds.self;
  return [
    ["Attention", `${attention}, ${causal ? "causal: a token sees itself and those before it" : "in both directions"}`],
    ["Size", `${layers} × ${heads} (layers × heads)`],
    ["Texts", `${count(pairs)}, ${count(sourceTokens)} tokens with special ones`],
    ["Temperatures", settings.temperatures.join(", ")],
  ];
}

function pairSettings(model) {
  const { settings, kinds, alignment, shuffled, classes } = model;
  return [
    ["Attention", KINDS.map((kind) => `${kind} ${kinds[kind].attention}`).join(", ")],
    ["Size", KINDS.map((kind) => `${kind} ${kinds[kind].layers} × ${kinds[kind].heads}`).join(", ") + " (layers × heads)"],
    ["Test set", `${count(model.pairs)} pairs, ${count(model.sourceTokens)} source and ${count(model.targetTokens)} target tokens with ends`],
    ["Temperatures", settings.temperatures.join(", ")],
    ["Shuffled targets", shuffled ? `${count(shuffled.pairs)} pairs, seed ${settings.shuffle_seed}, intervals at ${100 * settings.confidence} %` : "none"],
    ["Word classes", classes.origin],
    ["BLEU", model.bleuSignature ?? "not measured"],
    ["Alignment", alignment ? `${count(alignment.pairs)} pairs with gold links; weight on the end of the sentence: ${alignment.end}` : "no gold links were given"],
  ];
}

function capitalised(name) {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function definitions() {
  return el("div", {}, el("h3", {}, el("br"), "What the words mean"), glossaryList());
}
