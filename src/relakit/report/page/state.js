// What is shown. It stands in the address, so that a picture can be linked to and found again.

const SORTS = ["number", "null", "sparsity", "aer"];
const UNITS = ["words", "tokens"];

/** Models and sentences by their place in the lists; layers and heads from 0. */
const state = {
  model: 0,
  other: models.length > 1 ? 1 : null,
  sentence: 0,
  kind: "cross",
  layer: 0,
  head: 0,
  units: "words",
  reading: "normal",
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

const TELLING_LENGTH = 75; // characters

/**
 * Where a first look is worth most: the cross-attention's best aligning head, or the layer whose
 * heads differ most, on a sentence of middle length.
 */
function startingPoint() {
  const { alignment, kinds } = models[0];
  const distances = sentences.map(({ source }) => Math.abs(source.length - TELLING_LENGTH));
  const sentence = Math.max(0, distances.indexOf(Math.min(...distances)));
  if (alignment) {
    const [layer, head] = alignment[alignment.bestReading].bestHead;
    return { sentence, layer, head, reading: alignment.bestReading };
  }
  const variances = kinds.cross.nullVariance.map((variance) => variance ?? -1);
  return { sentence, layer: variances.indexOf(Math.max(...variances)), head: 0 };
}
