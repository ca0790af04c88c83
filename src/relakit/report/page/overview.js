// The numbers that are asked for first, model by model.

function showOverview() {
  const cards = [bleuCard(), sparsityCard(), nullCard(), sinkCard(), diversityCard(), alignmentCard()].filter(Boolean);
  byId("overview").replaceChildren(inWords(), el("div", { class: "cards" }, ...cards));
}

/** What the numbers say, model by model, and how the others differ from the first. */
function inWords() {
  const paragraphs = models.map(({ inWords: text }, number) => el("p", {}, modelDot(number), ...withTerms(text)));
  if (report.comparisons.length) paragraphs.push(el("p", {}, ...withTerms(report.comparisons.join(" "))));
  return el("div", { class: "card in-words" }, el("h2", { text: "In words" }), ...paragraphs);
}

function bleuCard() {
  if (models.every(({ bleu }) => bleu === null)) return null;
  return card("BLEU", "of the models' own translations", models.map(({ bleu, bleuSignature }) => ({
    value: bleu,
    text: fixed(bleu, 1),
    delta: (difference) => signed(difference, 1),
    title: bleuSignature,
  })));
}

function sparsityCard() {
  return card("Sparsity", `${MAIN_KIND}-attention weights that are 0`, models.map(({ kinds }) => rateNumber(kinds, "sparsity")));
}

function nullCard() {
  return card("Null rate", `${MAIN_KIND}-attention to nothing at all`, models.map(({ kinds }) => rateNumber(kinds, "nullRate")));
}

/** Of texts: translation models have sinks of three kinds, which the tables show. */
function sinkCard() {
  if (!IS_OF_TEXTS) return null;
  return card("First sink", "weight on the first token", models.map(({ kinds }) => rateNumber(kinds, "firstSink")));
}

function diversityCard() {
  if (!IS_OF_TEXTS) return null;
  return card("Head diversity", `in nats, ${report.diversityTemperatures}`, models.map(({ kinds }) => {
    const { diversity, temperature } = kinds[MAIN_KIND];
    const value = mean(diversity[temperature] ?? []);
    return { value, text: fixed(value), delta: (difference) => signed(difference, 2) };
  }));
}

function rateNumber(kinds, name) {
  const value = mean(kinds[MAIN_KIND][name].flat());
  const others = KINDS.slice(0, -1).map((kind) => `${kind} ${percent(mean(kinds[kind][name].flat()))}`);
  return { value, text: percent(value), delta: points, detail: others.join(" · ") || highestHead(kinds[MAIN_KIND][name]) };
}

/** Which head has most of it, if any has some. */
function highestHead(values) {
  const all = values.flatMap((heads, layer) => heads.map((value, head) => ({ value: value ?? 0, layer, head })));
  const most = all.reduce((best, one) => (one.value > best.value ? one : best));
  return most.value > 0 ? `most in layer ${most.layer + 1}, head ${most.head + 1}: ${percent(most.value)}` : "";
}

/** A difference of shares in percentage points. */
function points(difference) {
  return `${signed(100 * difference, 1)} pts`;
}

function alignmentCard() {
  if (models.every(({ alignment }) => alignment === null)) return null;
  return card("Alignment error rate", "best head; lower is better", models.map(({ alignment }) => {
    if (alignment === null) return { value: null, text: NOTHING };
    const scores = alignment[alignment.bestReading];
    const [layer, head] = scores.bestHead;
    const value = scores.heads[layer][head];
    return {
      value,
      text: fixed(value),
      delta: (difference) => signed(difference, 2),
      detail: `layer ${layer + 1}, head ${head + 1}, ${alignment.bestReading} · AoL ${fixed(scores.aol)}`,
    };
  }));
}

/**
 * @param {string} name
 * @param {string} about what it is the number of
 * @param {Array<{value: number|null, text: string, delta?: function, detail?: string, title?: string}>} numbers
 */
function card(name, about, numbers) {
  const first = numbers[0].value;
  const rows = numbers.map(({ value, text, delta, detail, title }, model) => {
    const compared = model > 0 && delta && value !== null && first !== null;
    return el(
      "div",
      { class: "number", title },
      el("span", { class: "value", text }),
      el("span", { class: "whose" }, modelDot(model), models[model].name),
      el("span", { class: "delta", title: compared ? `against ${models[0].name}` : null, text: compared ? delta(value - first) : "" }),
      detail ? el("span", { class: "detail" }, ...withTerms(detail)) : null,
    );
  });
  return el("div", { class: "card" }, el("h3", {}, ...withTerms(name)), el("p", { class: "muted small", text: about }), ...rows);
}
