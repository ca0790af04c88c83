// What is shown. It stands in the address, so that a picture can be linked to and found again.

const SORTS = ["number", "null", "sparsity", "aer"];
const UNITS = ["words", "tokens"];
const TEXTS = ["reference", "own"];

/** Models and sentences by their place in the lists; layers and heads from 0. */
const state = {
  model: 0,
  other: models.length > 1 ? 1 : null,
  sentence: 0,
  kind: MAIN_KIND,
  layer: 0,
  head: 0,
  units: IS_OF_TEXTS ? "tokens" : "words",
  reading: "normal",
  text: "reference",
  scale: null, // until one is chosen
  sort: "number",
};

/** @type {Array<() => void>} called after every change */
const listeners = [];

function notify() {
  for (const listener of listeners) listener();
}

/** Change what is shown; values out of range become the nearest that exist. */
function update(changes) {
  Object.assign(state, changes);
  const numbers = models[state.model].kinds[state.kind];
  state.layer = clamp(state.layer, numbers.layers - 1);
  state.head = clamp(state.head, numbers.heads); // one more than there are: the mean
  state.sentence = clamp(state.sentence, Math.max(0, sentences.length - 1));
  if (state.other === state.model) state.other = null;
  history.replaceState(null, "", `#${stateText()}`);
  notify();
}

function clamp(value, last) {
  return Math.min(Math.max(value, 0), last);
}

function stateText() {
  const { heads } = models[state.model].kinds[state.kind];
  const parameters = new URLSearchParams({
    model: models[state.model].name,
    compare: state.other === null ? "" : models[state.other].name,
    sentence: sentences.length ? String(sentences[state.sentence].index + 1) : "",
    kind: state.kind,
    layer: String(state.layer + 1),
    head: state.head === heads ? "mean" : String(state.head + 1),
    units: state.units,
    reading: state.reading,
    text: state.text,
    scale: state.scale ?? "",
    sort: state.sort,
  });
  return parameters.toString();
}

/** Take over what the address says; what it does not say, or says wrongly, stays. */
function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const said = (name, known) => (known.includes(parameters.get(name)) ? { [name]: parameters.get(name) } : {});
  const changes = {
    ...said("kind", KINDS),
    ...said("units", UNITS),
    ...said("reading", READINGS),
    ...said("text", hasOutputs ? TEXTS : ["reference"]),
    ...said("scale", ["own", "shared", "row"]),
    ...said("sort", SORTS),
  };
  const model = models.findIndex(({ name }) => name === parameters.get("model"));
  if (model >= 0) changes.model = model;
  if (parameters.has("compare")) {
    const other = models.findIndex(({ name }) => name === parameters.get("compare"));
    changes.other = other >= 0 ? other : null;
  }
  const sentence = sentences.findIndex(({ index }) => String(index + 1) === parameters.get("sentence"));
  if (sentence >= 0) changes.sentence = sentence;
  const layer = parseInt(parameters.get("layer"), 10);
  if (layer > 0) changes.layer = layer - 1;
  const head = parseInt(parameters.get("head"), 10);
  if (head > 0) changes.head = head - 1;
  if (parameters.get("head") === "mean") changes.head = Infinity;
  update(changes);
}

/** Whether any model translated. */
const hasOutputs = sentences.some(({ chrfs }) => chrfs.some((chrf) => chrf !== null));

const TELLING_LENGTH = 75; // characters

/**
 * Where a first look is worth most: on a sentence, or text, of middle length, the cross-attention head that aligns
 * best; without gold links the one that points most clearly; without sentences the layer whose heads differ most.
 * @returns {{place: Object<string, any>, reason: string}}
 */
function startingPoint() {
  const { alignment, clarity, kinds } = models[0];
  const main = kinds[MAIN_KIND];
  const distances = sentences.map(({ source }) => Math.abs(source.length - TELLING_LENGTH));
  const sentence = Math.max(0, distances.indexOf(Math.min(...distances)));
  if (alignment) {
    const [layer, head] = alignment[alignment.bestReading].bestHead;
    const aer = fixed(alignment[alignment.bestReading].heads[layer][head]);
    const reason = `with the lowest alignment error rate (${aer}, ${alignment.bestReading} reading)`;
    return { place: { sentence, layer, head, reading: alignment.bestReading }, reason };
  }
  if (clarity) {
    const values = clarity.flat();
    const best = values.indexOf(Math.max(...values));
    const [layer, head] = [Math.floor(best / main.heads), best % main.heads];
    const rate = percent(main.nullRate[layer][head]);
    const why = IS_OF_TEXTS ? "" : ", as there are no gold links to choose by";
    const reason = `that points most clearly (clarity ${fixed(values[best])}, null rate ${rate})${why}`;
    return { place: { sentence, layer, head }, reason };
  }
  const variances = main.nullVariance.map((variance) => variance ?? -1);
  const layer = variances.indexOf(Math.max(...variances));
  return { place: { sentence, layer, head: 0 }, reason: "that is the first of the layer whose heads differ most in null rate" };
}
